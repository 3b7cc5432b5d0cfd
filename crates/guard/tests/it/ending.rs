//! Tests of the ends of tickets: exactly once, however the attempt ends.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use reattempt::guard::GuardLayer;
use reattempt::guard::contract::{Admit, Arrival, End, Guard};
use reattempt::{Deadline, RetryLayer, RetryPolicy};
use reattempt_testing_layers::calls::{Act, ONE, Server, With, get, ms};
use reattempt_testing_layers::guard::{Recorder, attempt};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

// G-11
#[tokio::test(start_paused = true)]
async fn dropped_before_a_poll_is_unsent() {
    let recorder = Recorder::default();
    let mut client = GuardLayer::http(recorder.clone()).layer(service_fn(async |_: Request<Empty<bytes::Bytes>>| {
        Ok::<_, Infallible>(Response::new(Empty::<bytes::Bytes>::new()))
    }));
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

// G-25, C-10, trap 61
#[tokio::test(start_paused = true)]
async fn dropped_at_its_deadline_is_a_timeout() {
    // The usual latency of the server is not known, so a deadline below a second shows nothing about it.
    for (deadline, end) in [(999, "abandoned"), (1000, "Unavailable")] {
        let recorder = Recorder::default();
        let client = GuardLayer::http(recorder.clone()).layer(Server::by(|_, _| Act::Hang));
        let call = client.send(attempt(ONE).with(Deadline::after(ms(deadline))));
        assert!(tokio::time::timeout(ms(deadline), call).await.is_err());
        assert_eq!(recorder.log(), ["admitted", end]);
    }
}

/// The attempt timeout of a retry or guard layer further out counts as a timeout. A caller that hangs up afterwards
/// counts as hanging up.
// G-25, trap 57
#[tokio::test(start_paused = true)]
async fn dropped_by_a_layers_limit_is_a_timeout() {
    let recorder = Recorder::default();
    let inner = GuardLayer::http(recorder.clone());
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::http().max_attempts(2).attempt_timeout(ms(10))))
        .layer(inner.clone())
        .service(Server::by(|_, _| Act::Hang));
    client.oneshot(get()).await.unwrap_err();
    assert_eq!(recorder.log(), ["admitted", "Unavailable", "admitted", "Unavailable"]);

    let client = inner.clone().layer(Server::by(|_, _| Act::Hang));
    let outer = GuardLayer::http(Recorder::default()).attempt_timeout(ms(10)).layer(client.clone());
    outer.send(attempt(ONE)).await.unwrap_err();
    assert!(tokio::time::timeout(ms(10), client.send(attempt(ONE))).await.is_err());
    assert_eq!(recorder.log()[4..], ["admitted", "Unavailable", "admitted", "abandoned"]);
}

/// An attempt that a limit drops panics in its destructor, and the next one is abandoned by its caller.
// trap 57
#[tokio::test(start_paused = true)]
async fn limit_marks_no_attempt_after_a_panic() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the client's own bug");
        }
    }
    let recorder = Recorder::default();
    let layer = GuardLayer::http(recorder.clone());
    let slow = service_fn(async |_: Request<Empty<bytes::Bytes>>| {
        let _panics = Panics;
        std::future::pending::<Result<Response<Empty<bytes::Bytes>>, Infallible>>().await
    });
    let client = layer.clone().attempt_timeout(ms(10)).layer(layer.layer(slow));
    let call = client.send(Request::get(ONE).body(Empty::new()).unwrap());
    assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
    let hangs = layer.layer(Server::by(|_, _| Act::Hang));
    assert!(tokio::time::timeout(ms(10), hangs.send(attempt(ONE))).await.is_err());
    assert_eq!(recorder.log().last().unwrap(), "abandoned");
}

// G-11
#[tokio::test(start_paused = true)]
async fn panic_in_the_attempt_ends_the_ticket() {
    let recorder = Recorder::holding();
    let client = GuardLayer::http(recorder.clone()).layer(service_fn(async |_: Request<Empty<bytes::Bytes>>| {
        if true {
            panic!("the client's own bug");
        }
        Ok::<_, Infallible>(Response::new(Empty::<bytes::Bytes>::new()))
    }));
    let call = client.send(Request::get(ONE).body(Empty::new()).unwrap());
    assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
    assert_eq!(recorder.log(), ["admitted", "abandoned"]);
}

/// A guard's panic reaches the caller. While the thread unwinds, it would abort the process, so it ends at the attempt.
// G-11, trap 72
#[tokio::test(start_paused = true)]
async fn guard_panics_while_unwinding() {
    struct Panics;
    impl Guard for Panics {
        type Ticket = ();
        fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
            Admit::Admitted(())
        }
        fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
            resume_unwind(Box::new("the guard's"))
        }
    }
    let client = GuardLayer::http(Panics).layer(Server::by(|_, _| Act::Hang));
    for (unwinds, fault) in [(false, "the guard's"), (true, "the caller's")] {
        let mut call = Box::pin(client.send(attempt(ONE)));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            let _call = call;
            if unwinds {
                resume_unwind(Box::new("the caller's"));
            }
        }));
        assert_eq!(dropped.unwrap_err().downcast_ref::<&str>(), Some(&fault));
    }
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
    let client = GuardLayer::http(recorder.clone()).layer(service_fn(async |_: Request<Empty<bytes::Bytes>>| {
        let mut switching = Response::new(Empty::<bytes::Bytes>::new());
        *switching.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        switching.extensions_mut().insert(7_u8);
        Ok::<_, Infallible>(switching)
    }));
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
    let client = GuardLayer::classified(judge, recorder.clone()).layer(service_fn(async |number: u8| match number {
        9 => Err(std::fmt::Error),
        number => Ok(number),
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
    let client = GuardLayer::http(recorder.clone()).layer(service_fn(async |_: Request<Empty<bytes::Bytes>>| {
        Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::from("body")))
    }));
    let response = client.send(Request::get(ONE).body(Empty::new()).unwrap()).await.unwrap();
    assert_eq!(recorder.log(), ["admitted", "Served"]);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "body");
}
