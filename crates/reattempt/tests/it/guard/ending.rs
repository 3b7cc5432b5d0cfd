//! The ends of tickets: once each, however the attempt ends.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use reattempt::Deadline;
use reattempt::guard::GuardLayer;
use tower::{Layer, Service, service_fn};

use super::support::{Recorder, attempt};
use crate::calls::support::{Act, ONE, Server, With, ms};

// G-11
#[tokio::test(start_paused = true)]
async fn dropped_before_a_poll_is_unsent() {
    let recorder = Recorder::default();
    let mut client = GuardLayer::http(recorder.clone()).layer(service_fn(
        async |_: Request<Empty<bytes::Bytes>>| {
            Ok::<_, Infallible>(Response::new(Empty::<bytes::Bytes>::new()))
        },
    ));
    drop(client.call(Request::get(ONE).body(Empty::new()).unwrap()));
    assert_eq!(recorder.log(), ["admitted", "unsent"]);
}

// G-11
#[tokio::test(start_paused = true)]
async fn dropped_attempt_is_abandoned() {
    let recorder = Recorder::holding();
    let client = GuardLayer::http(recorder.clone()).layer(Server::by(|_, _| Act::Hang));
    let call = client.send(attempt(ONE));
    assert!(tokio::time::timeout(ms(10), call).await.is_err());
    assert_eq!(recorder.log(), ["admitted", "abandoned"]);
}

// G-25
#[tokio::test(start_paused = true)]
async fn dropped_at_its_deadline_is_a_timeout() {
    let recorder = Recorder::default();
    let client = GuardLayer::http(recorder.clone()).layer(Server::by(|_, _| Act::Hang));
    let call = client.send(attempt(ONE).with(Deadline::after(ms(10))));
    assert!(tokio::time::timeout(ms(10), call).await.is_err());
    assert_eq!(recorder.log(), ["admitted", "Unavailable"]);
}

// G-11
#[tokio::test(start_paused = true)]
async fn panic_in_the_attempt_ends_the_ticket() {
    let recorder = Recorder::holding();
    let client = GuardLayer::http(recorder.clone()).layer(service_fn(
        async |_: Request<Empty<bytes::Bytes>>| {
            if true {
                panic!("the client's own bug");
            }
            Ok::<_, Infallible>(Response::new(Empty::<bytes::Bytes>::new()))
        },
    ));
    let call = client.send(Request::get(ONE).body(Empty::new()).unwrap());
    assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
    assert_eq!(recorder.log(), ["admitted", "abandoned"]);
}

// G-11
#[tokio::test(start_paused = true)]
async fn panic_in_call_ends_the_ticket() {
    let recorder = Recorder::default();
    let mut client = GuardLayer::http(recorder.clone()).layer(service_fn(
        |_: Request<Empty<bytes::Bytes>>| -> std::future::Ready<Result<Response<Empty<bytes::Bytes>>, Infallible>> {
            panic!("the client's own bug")
        },
    ));
    let call = AssertUnwindSafe(|| client.call(Request::get(ONE).body(Empty::new()).unwrap()));
    assert!(std::panic::catch_unwind(call).is_err());
    assert_eq!(recorder.log(), ["admitted", "unsent"]);
}

// G-11
#[tokio::test(start_paused = true)]
async fn upgraded_response_gives_its_place_back() {
    let recorder = Recorder::holding();
    let client = GuardLayer::http(recorder.clone()).layer(service_fn(
        async |_: Request<Empty<bytes::Bytes>>| {
            let mut switching = Response::new(Empty::<bytes::Bytes>::new());
            *switching.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            switching.extensions_mut().insert(7_u8);
            Ok::<_, Infallible>(switching)
        },
    ));
    let response = client.send(Request::get(ONE).body(Empty::new()).unwrap()).await.unwrap();
    // hyper's OnUpgrade is such an extension.
    assert_eq!(response.extensions().get(), Some(&7_u8));
    assert_eq!(recorder.log(), ["admitted", "Served", "Complete"]);
}

#[tokio::test(start_paused = true)]
async fn clone_request_ends_the_place_at_once() {
    let recorder = Recorder::holding();
    let judge = |outcome: Result<&u8, &(dyn std::error::Error + 'static)>| match outcome {
        Ok(0) => reattempt::Verdict::Permanent,
        Ok(_) => reattempt::Verdict::Success,
        Err(_) => reattempt::Verdict::Permanent,
    };
    let client =
        GuardLayer::classified(judge, recorder.clone()).layer(service_fn(async |number: u8| {
            match number {
                9 => Err(std::fmt::Error),
                number => Ok(number),
            }
        }));
    for number in [1, 0, 9] {
        let _ = client.send(number).await;
    }
    let log = recorder.log();
    assert_eq!(log[..6], ["admitted", "Served", "Complete", "admitted", "Served", "Complete"]);
    assert_eq!(log[6..], ["admitted", "Failed", "Broken"]);
}

#[tokio::test(start_paused = true)]
async fn response_without_holder_is_passed_on() {
    let recorder = Recorder::default();
    let client = GuardLayer::http(recorder.clone()).layer(service_fn(
        async |_: Request<Empty<bytes::Bytes>>| {
            Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::from("body")))
        },
    ));
    let response = client.send(Request::get(ONE).body(Empty::new()).unwrap()).await.unwrap();
    assert_eq!(recorder.log(), ["admitted", "Served"]);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "body");
}
