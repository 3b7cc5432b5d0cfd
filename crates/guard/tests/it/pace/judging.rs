//! Tests of which outcomes move the interval.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Full};
use reattempt::Http;
use reattempt::classify::Outcome;
use reattempt::grpc::Grpc;
use reattempt::guard::{GuardLayer, Pace};
use reattempt_core::{Failure, FailureKind, Verdict};
use reattempt_grpc::Code;
use tower::Layer;

use super::support::{Answer, Server, answer, call, ms, pace};

const THROTTLED: Failure = Failure::new(FailureKind::Throttled);

/// Returns the interval after two calls with this outcome, starting at 0; and after two more, starting at 400 ms.
async fn moved(http: Http, status: u16) -> (Duration, Duration) {
    let server = Server::<Answer>::by(move |number| {
        let status = if (3..=5).contains(&number) { 429 } else { status };
        Ok(answer(status))
    });
    let mut client = GuardLayer::with(http, Pace::new(pace())).layer(server);
    let mut intervals = Vec::new();
    for _ in 0..7 {
        call(&mut client).await.unwrap();
        intervals.push(client.guard().responsive().interval());
    }
    (intervals[1], intervals[6])
}

#[tokio::test(start_paused = true)]
async fn status_429_alone_is_throttled() {
    let untouched = (ms(0), ms(400));
    let success = (ms(0), ms(200));
    for status in 200..600 {
        // Two before, three between, two after.
        let expected = match status {
            429 => (ms(200), ms(100 << 6)),
            408 | 425 => untouched,
            // The service has done its work, even if the caller caused the error.
            200..=499 | 501 | 505 => success,
            _ => untouched,
        };
        let found = moved(Http::new(), status).await;
        assert_eq!(found, expected, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_can_be_made_to_count() {
    let up = (ms(200), ms(100 << 6));
    for verdict in [Verdict::NotProcessed(THROTTLED), Verdict::Transient(THROTTLED)] {
        let http = Http::new().on_status(StatusCode::SERVICE_UNAVAILABLE, verdict);
        assert_eq!(moved(http, 503).await, up);
        let http = Http::new().classify(move |outcome: Outcome<'_>| (outcome.status()? == 503).then_some(verdict));
        assert_eq!(moved(http, 503).await, up);
    }
    let http = Http::new().on_status(StatusCode::BAD_GATEWAY, Verdict::Success);
    assert_eq!(moved(http, 502).await, (ms(0), ms(200)));
}

fn grpc_answer(code: Option<u16>) -> Answer {
    let mut answer = answer(200);
    answer.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    if let Some(code) = code {
        answer.headers_mut().insert("grpc-status", code.into());
    }
    answer
}

#[tokio::test(start_paused = true)]
async fn resource_exhausted_alone_is_throttled() {
    for code in 0..=16 {
        let pace = pace();
        let server = Server::<Answer>::by(move |number| {
            Ok(if number <= 2 { grpc_answer(Some(8)) } else { grpc_answer(Some(code)) })
        });
        let mut client = GuardLayer::grpc(Pace::new(pace.clone())).layer(server);
        for _ in 0..4 {
            call(&mut client).await.unwrap();
        }
        let expected = match code {
            8 => ms(800),
            // CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE and DATA_LOSS.
            1 | 2 | 4 | 13..=15 => ms(200),
            _ => ms(100),
        };
        assert_eq!(pace.interval(), expected, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn grpc_counts_at_its_trailers() {
    let pace = pace();
    let server = Server::by(|number| {
        let code = if number <= 2 { 8 } else { 0 };
        let trailers = HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), code.into())]);
        let body = Full::new(Bytes::from_static(b"message"));
        let body = body.with_trailers(async { Some(Ok(trailers)) });
        Ok::<_, Infallible>(grpc_answer(None).map(|_| body))
    });
    let mut client = GuardLayer::grpc(Pace::new(pace.clone())).layer(server);
    for interval in [100, 200, 200, 100] {
        let before = pace.interval();
        let answer = call(&mut client).await.unwrap();
        assert_eq!(pace.interval(), before);
        answer.into_body().collect().await.unwrap();
        assert_eq!(pace.interval(), ms(interval));
    }
}

#[tokio::test(start_paused = true)]
async fn a_grpc_code_can_be_made_to_count() {
    let pace = pace();
    let server = Server::<Answer>::by(|_| Ok(grpc_answer(Some(Code::Unavailable.number()))));
    let grpc = Grpc::new().on_code(Code::Unavailable, Verdict::NotProcessed(THROTTLED));
    let layer = GuardLayer::with(grpc, Pace::new(pace.clone()));
    call(&mut layer.layer(server)).await.unwrap();
    assert_eq!(pace.interval(), ms(100));
}

#[tokio::test(start_paused = true)]
async fn undefined_grpc_status_is_not_throttled() {
    let pace = pace();
    let server = Server::<Answer>::by(|_| Ok(grpc_answer(Some(17))));
    let grpc = Grpc::new().on_code(Code::Unknown, Verdict::NotProcessed(THROTTLED));
    let layer = GuardLayer::with(grpc, Pace::new(pace.clone()));
    call(&mut layer.layer(server)).await.unwrap();
    assert_eq!(pace.interval(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn errors_move_nothing_unless_classified() {
    let kinds = [io::ErrorKind::ConnectionRefused, io::ErrorKind::TimedOut, io::ErrorKind::Other];
    for kind in kinds {
        let failing = || Server::<Answer, io::Error>::by(move |_| Err(kind.into()));
        let untouched = pace();
        let mut client = GuardLayer::http(Pace::new(untouched.clone())).layer(failing());
        let error = call(&mut client).await.unwrap_err();
        assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), kind);
        assert_eq!((untouched.interval(), untouched.metrics().invocations), (ms(0), 1));

        let moved = pace();
        let http = Http::new().classify(move |outcome: Outcome<'_>| {
            let error: &io::Error = outcome.find_error()?;
            (error.kind() == kind).then_some(Verdict::Transient(THROTTLED))
        });
        let layer = GuardLayer::with(http, Pace::new(moved.clone()));
        call(&mut layer.layer(failing())).await.unwrap_err();
        assert_eq!(moved.interval(), ms(100));
    }
}

#[tokio::test(start_paused = true)]
async fn any_service_can_be_paced() {
    let pace = pace();
    let classify = |outcome: Result<&u32, &(dyn Error + 'static)>| match outcome {
        Ok(0) => Verdict::NotProcessed(THROTTLED),
        Ok(_) => Verdict::Success,
        Err(_) => Verdict::Permanent,
    };
    let layer = GuardLayer::classified(classify, Pace::new(pace.clone()));
    let server = Server::<u32>::by(|number| Ok(u32::from(number > 2)));
    let mut client = layer.layer(server);
    for expected in [100, 200, 200, 100, 100, 0] {
        call(&mut client).await.unwrap();
        assert_eq!(pace.interval(), ms(expected));
    }
}
