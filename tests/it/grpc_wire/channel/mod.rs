//! Calls of a bare tonic `Channel`: the status that the caller reads, the report, and the throttle.

mod ends;
mod lost;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use reattempt::budget::Budget;
use reattempt::grpc::Grpc;
use reattempt::grpc::service_config::{RetryThrottle, RetryThrottling};
use reattempt::grpc::{GrpcBody, GrpcCode as Code};
use reattempt::observe::Event;
use reattempt::report::ReportSlot;
use reattempt::schedule::{Constant, List};
use reattempt::{CallOptions, Report, RetryLayer, RetryPolicy, StopReason};
use tonic::body::Body;
use tower::{Layer, ServiceExt};

use super::server::{Server, Step, echo};
use super::{head, policy, refused, unmarked};

/// A message without content.
const EMPTY: Bytes = Bytes::from_static(&[0, 0, 0, 0, 0]);

fn call() -> Request<Body> {
    let message = Body::new(Full::from(EMPTY));
    Request::post("http://one.example/service/method")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(message)
        .unwrap()
}

fn repeatable() -> Request<Body> {
    let mut call = call();
    call.extensions_mut().insert(CallOptions::new().repeatable(true));
    call
}

/// The end of a call, for its caller.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Status(Code),
    NoStatus,
    /// The code that a generated client makes of it.
    BodyError(tonic::Code),
    Error(tonic::Code),
}

/// Calls once and reads the response to its end. Returns the end and the report.
async fn run<B: Budget + Clone>(
    server: &Server,
    policy: RetryPolicy<Grpc, Constant, B>,
    call: Request<Body>,
) -> (Ended, Report) {
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy).layer(server.channel());
    let client = client.with_options(CallOptions::new().report_to(&slot));
    let ended = match client.oneshot(call).await {
        Ok(reply) => read(reply).await,
        Err(error) => Ended::Error(tonic::Status::from_error(error.into()).code()),
    };
    (ended, slot.take().unwrap())
}

async fn read(reply: Response<GrpcBody<Body>>) -> Ended {
    let code = |headers: &HeaderMap| Some(Code::from_bytes(headers.get("grpc-status")?.as_bytes()));
    let mut seen = code(reply.headers());
    let mut body = reply.into_body();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => seen = seen.or(frame.trailers_ref().and_then(code)),
            Err(error) => return Ended::BodyError(tonic::Status::from_error(error).code()),
        }
    }
    seen.map_or(Ended::NoStatus, Ended::Status)
}

fn throttle() -> RetryThrottle {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(100.0, 0.1)));
    throttle.failed();
    throttle
}

/// The balance above that at the start, in thousandths.
fn change(throttle: &RetryThrottle) -> i64 {
    i64::from(throttle.tokens_thousandths().unwrap()) - 99_000
}

fn numbers(numbers: &[u32]) -> Vec<Option<String>> {
    numbers.iter().map(|number| (*number > 0).then(|| number.to_string())).collect()
}

const OK: Ended = Ended::Status(Code::Ok);
const UNAVAILABLE: Ended = Ended::Status(Code::Unavailable);

/// Returns the numbers of earlier attempts that the server has read.
fn previous(server: &Server) -> Vec<Option<String>> {
    server.fields("grpc-previous-rpc-attempts")
}

/// A message and this status.
fn answer(code: Code) -> Vec<Step> {
    vec![Step::Read, Step::Head(head(&[])), Step::Data(EMPTY), Step::Trailers(status(code))]
}

fn reset(reason: Reason) -> Vec<Step> {
    vec![Step::Read, Step::Reset(reason)]
}

/// A reset after the headers.
fn reset_later(reason: Reason) -> Vec<Step> {
    vec![Step::Read, Step::Head(head(&[])), Step::Reset(reason)]
}

/// UNAVAILABLE in trailers after the headers.
fn unavailable_later() -> Vec<Step> {
    vec![Step::Read, Step::Head(head(&[])), Step::Trailers(status(Code::Unavailable))]
}

fn unprocessed() -> Vec<Step> {
    reset(Reason::REFUSED_STREAM)
}

fn status(code: Code) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), code.number().into())])
}

// TR-2, TR-4
#[tokio::test]
async fn refused_stream_is_replaced_for_free() {
    let server = Server::start([unprocessed(), echo()]).await;
    let throttle = throttle();
    let (ended, report) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 0])));
    assert_eq!(change(&throttle), 100);
    assert_eq!((report.retries(), report.replacements()), (0, 1));
    let listed: Vec<_> = report.attempts().iter().map(|attempt| (attempt.number, attempt.replacement)).collect();
    assert_eq!(listed, [(1, false), (1, true)]);
    assert_eq!(report.stop_reason(), StopReason::Succeeded);
}

// TR-2
#[tokio::test]
async fn tr_2_further_one_is_ordinary_failure() {
    let server = Server::start(std::iter::repeat_n(unprocessed(), 4)).await;
    let throttle = throttle();
    let (ended, report) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, previous(&server)), (UNAVAILABLE, numbers(&[0, 0, 1, 2])));
    assert_eq!(change(&throttle), -3000);
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::AttemptsExhausted));
}

// TR-3
#[tokio::test]
async fn tr_3_once_at_any_attempt_of_the_call() {
    let script = [refused(), unprocessed(), unprocessed(), echo()];
    let server = Server::start(script).await;
    let (ended, report) = run(&server, policy(), call()).await;
    assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 1, 1, 2])));
    assert_eq!((report.retries(), report.replacements()), (2, 1));
}

// TR-4
#[tokio::test]
async fn tr_4_schedule_and_attempts_do_not_notice() {
    let script = [unprocessed(), refused(), echo()];
    let server = Server::start(script).await;
    // The first delay is that of a first retry.
    let schedule = List::ending([Duration::ZERO]);
    let policy = RetryPolicy::grpc().repeatable(true).backoff(schedule).max_attempts(2);
    let client = RetryLayer::new(policy).layer(server.channel());
    let ended = read(client.oneshot(call()).await.unwrap()).await;
    assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 0, 1])));
}

// THR-8
#[tokio::test]
async fn thr_8_a_replacement_is_not_throttled() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(2.0, 0.1)));
    throttle.failed();
    assert!(throttle.is_throttled());
    let server = Server::start([unprocessed(), echo()]).await;
    let (ended, _) = run(&server, policy().budget(throttle), call()).await;
    assert_eq!((ended, server.calls()), (OK, 2));
}

// TR-8
#[tokio::test]
async fn tr_8_two_switches() {
    let script = || [unprocessed(), echo()];
    // Configured retries off.
    let server = Server::start(script()).await;
    let (ended, _) = run(&server, policy().max_attempts(1), call()).await;
    assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 0])));
    // Transparent ones off: it is retried like any refusal.
    let server = Server::start(script()).await;
    let (ended, report) = run(&server, policy().protocol(|grpc| grpc.transparent_retries(false)), call()).await;
    assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 1])));
    assert_eq!(report.replacements(), 0);
    // All off.
    let none = policy().protocol(|grpc| grpc.transparent_retries(false)).max_attempts(1);
    for (policy, options) in [(none, CallOptions::new()), (policy(), CallOptions::new().never_retry())] {
        let server = Server::start(script()).await;
        let mut call = call();
        call.extensions_mut().insert(options);
        let (ended, _) = run(&server, policy, call).await;
        assert_eq!((ended, server.calls()), (UNAVAILABLE, 1));
    }
}

// TR-5
#[tokio::test]
async fn tr_5_not_after_the_commit() {
    let server = Server::start([reset_later(Reason::REFUSED_STREAM)]).await;
    let (ended, _) = run(&server, policy(), call()).await;
    assert_eq!((ended, server.calls()), (Ended::BodyError(tonic::Code::Unavailable), 1));
}

// TR-2, TN-12
#[tokio::test]
async fn goaway_without_the_stream_is_replaced() {
    let server = Server::start([vec![Step::GoAwayBelow(Reason::NO_ERROR)]]).await;
    let (ended, report) = run(&server, policy().max_attempts(1), call()).await;
    assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 0])));
    assert_eq!((report.retries(), report.replacements()), (0, 1));
}

// TR-7
#[tokio::test]
async fn tr_7_goaway_above_stream_leaves_it_alive() {
    let mut goaway = echo();
    goaway.insert(1, Step::GoAwayAbove(Reason::NO_ERROR));
    let server = Server::start([goaway, answer(Code::Internal)]).await;
    let (ended, report) = run(&server, policy(), call()).await;
    assert_eq!((ended, server.calls(), report.replacements()), (OK, 1, 0));
}

#[tokio::test]
async fn observer_is_notified_of_replacement() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let policy = policy().observe(move |_: &str, event: &Event<'_>| {
        events.lock().unwrap().push(match event {
            Event::AttemptFailed { attempt, .. } => format!("attempt {attempt} failed"),
            event => event.to_string(),
        });
    });
    let server = Server::start([unprocessed(), echo()]).await;
    run(&server, policy, call()).await;
    let replaced = "attempt 1 is replaced, because the server refused the stream";
    let expected = ["attempt 1 failed", replaced, "succeeded on attempt 1"];
    assert_eq!(*heard.lock().unwrap(), expected);
}
