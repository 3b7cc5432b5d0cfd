//! Tests of a retry that a budget confirms later: the outcome is held while the delay runs.

use std::future::ready;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use reattempt::ReplayBody;
use reattempt::RetryLayer;
use reattempt_core::StopReason;
use reattempt_schedule_fixed::Constant;
use tokio::time::timeout;
use tower::{Layer, ServiceExt, service_fn};

use crate::calls::support::{Act, Log, Server, endless, get, ms, of_frames, policy, report_of, watched};
use crate::confirming::Asking;

/// The retry is sent when its time has come and it is confirmed; the delay was fixed earlier.
// F-4
#[tokio::test(start_paused = true)]
async fn retry_leaves_when_due_and_confirmed() {
    for (delay, answer, leaves) in [(100, 30, 100), (20, 30, 30), (0, 30, 30), (100, 0, 100)] {
        let budget = Asking::new(ms(answer), true);
        let policy = policy().backoff(Constant::new(ms(delay))).budget(budget.clone());
        let server = Server::statuses([503, 200]);
        let response = RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(server.times(), [0, leaves], "{delay} {answer}");
        assert_eq!(budget.log(), ["asked", "succeeded"]);
    }
}

/// The caller gets the original response, with its body unread.
// F-5
#[tokio::test(start_paused = true)]
async fn refused_retry_returns_the_held_response() {
    for answer in [0, 30] {
        let (body, watch) = watched(of_frames::<io::Error>([Ok("a"), Ok("b")]));
        let body = Mutex::new(Some(body.boxed()));
        let server = Server::by(move |_, _| {
            let body = body.lock().unwrap().take().unwrap();
            Act::Answer(http::Response::builder().status(503).body(body).unwrap())
        });
        let (budget, log) = (Asking::new(ms(answer), false), Log::default());
        let policy = policy().budget(budget.clone()).observe_with(log.clone());
        let response = RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!((response.status().as_u16(), watch.polls()), (503, 0));
        let report = report_of(&response);
        assert_eq!(report.stop_reason(), StopReason::BudgetExhausted);
        assert_eq!((report.retries(), report.attempts()[0].delay), (0, None));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ab");
        assert_eq!((server.count(), budget.log()), (1, vec!["asked", "returned"]));
        assert_eq!(log.lines().len(), 2, "a failed attempt, and the end: {:?}", log.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn refused_retry_returns_the_held_error() {
    let budget = Asking::new(ms(30), false);
    let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
    let server = Server::by(move |_, _| Act::Error(reset()));
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server.clone());
    client.oneshot(get()).await.unwrap_err();
    assert_eq!((server.count(), budget.log()), (1, vec!["asked", "returned"]));
}

/// The drain time begins with the confirmation. Before it, nothing is read.
#[tokio::test(start_paused = true)]
async fn draining_begins_with_the_confirmation() {
    let (body, watch) = watched(endless(ms(10)));
    let body = Mutex::new(Some(body.boxed()));
    let server = Server::by(move |arrival, _| match arrival {
        1 => {
            let body = body.lock().unwrap().take().unwrap();
            Act::Answer(http::Response::builder().status(503).body(body).unwrap())
        }
        _ => 200.into(),
    });
    let policy = policy().backoff(Constant::immediate()).budget(Asking::new(ms(30), true));
    let mut call = tokio_test::task::spawn(RetryLayer::new(policy).layer(server.clone()).oneshot(get()));
    assert!(call.poll().is_pending());
    assert_eq!(watch.polls(), 0);
    call.await.unwrap();
    assert_eq!(server.times(), [0, 80]);
}

#[tokio::test(start_paused = true)]
async fn call_dropped_while_asking_returns_permit() {
    let budget = Asking::new(ms(30), true);
    let server = Server::statuses([503, 200]);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server.clone());
    timeout(ms(10), client.oneshot(get())).await.unwrap_err();
    assert_eq!((server.count(), budget.log()), (1, vec!["asked", "returned"]));
}

/// The upload continues while the outcome is held, because a refused retry must not cut off its response.
#[tokio::test(start_paused = true)]
async fn upload_goes_on_until_confirmed() {
    for confirms in [true, false] {
        let kept = Arc::new(Mutex::new(None));
        let keeps = Arc::clone(&kept);
        // The server responds early, and continues to read.
        let server = service_fn(move |request: http::Request<ReplayBody<BoxBody<Bytes, io::Error>>>| {
            let is_first = keeps.lock().unwrap().is_none();
            keeps.lock().unwrap().get_or_insert(Some(request.into_body()));
            let response = http::Response::builder().status(if is_first { 503 } else { 200 });
            ready(Ok::<_, io::Error>(response.body(Empty::<Bytes>::new()).unwrap()))
        });
        let policy = policy().backoff(Constant::new(ms(100))).budget(Asking::new(ms(30), confirms));
        let body = of_frames::<io::Error>([Ok("a"), Ok("b")]);
        let request = http::Request::put("http://one.example/").body(BodyExt::boxed(body)).unwrap();
        let mut call = tokio_test::task::spawn(RetryLayer::new(policy).layer(server).oneshot(request));
        assert!(call.poll().is_pending());
        let mut upload = kept.lock().unwrap().as_mut().and_then(Option::take).unwrap();
        let frame = upload.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "a");
        let response = call.await.unwrap();
        assert_eq!(response.status(), if confirms { 200 } else { 503 });
        assert_eq!(upload.frame().await.unwrap().is_ok(), !confirms);
    }
}

/// If the confirmation comes after the time limit of the call, the call ends with the held outcome.
#[tokio::test(start_paused = true)]
async fn late_confirmation_sends_no_retry() {
    let budget = Asking::new(ms(30), true);
    let policy = policy().backoff(Constant::immediate()).max_elapsed(ms(20)).budget(budget.clone());
    let server = Server::statuses([503, 200]);
    let response = RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::ElapsedExhausted);
    assert_eq!(budget.log(), ["asked", "returned"]);
}
