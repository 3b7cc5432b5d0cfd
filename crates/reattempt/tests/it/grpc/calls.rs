//! Answers that end with their head: deadlines written, pushback, codes.

use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::classify::Outcome;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Deadline, Grpc, RetryLayer, RetryPolicy};
use reattempt_core::{Failure, FailureKind, StopReason, Verdict};
use reattempt_grpc::Code;
use reattempt_schedule_fixed::Constant;
use reattempt_testing::ms;
use tokio::time::Instant;
use tonic::body::Body;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, Service, ServiceExt, service_fn};

type Answer = Response<Empty<Bytes>>;

/// An answer that ends with its head.
fn trailers_only(code: Code) -> Answer {
    Response::builder().header("grpc-status", code.number()).body(Empty::new()).unwrap()
}

fn with_pushback(mut answer: Answer, milliseconds: &'static str) -> Answer {
    answer.headers_mut().insert("grpc-retry-pushback-ms", milliseconds.parse().unwrap());
    answer
}

/// Gives these answers in order, and goes on with the last.
#[derive(Clone)]
struct Server(Arc<State>);

struct State {
    began: Instant,
    answers: Vec<Answer>,
    /// The time of each attempt, and its `grpc-timeout`.
    seen: Mutex<Vec<(Duration, Option<String>)>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = answers.into_iter().collect();
        Self(Arc::new(State { began: Instant::now(), answers, seen: Mutex::default() }))
    }

    fn of_codes(codes: impl IntoIterator<Item = Code>) -> Self {
        Self::new(codes.into_iter().map(trailers_only))
    }

    fn count(&self) -> usize {
        self.0.seen.lock().unwrap().len()
    }

    fn times(&self) -> Vec<u128> {
        self.0.seen.lock().unwrap().iter().map(|(at, _)| at.as_millis()).collect()
    }

    /// The `grpc-timeout` of each attempt.
    fn timeouts(&self) -> Vec<Option<String>> {
        self.0.seen.lock().unwrap().iter().map(|(_, timeout)| timeout.clone()).collect()
    }
}

impl Service<Request<Body>> for Server {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let timeout = request.headers().get("grpc-timeout");
        let timeout = timeout.map(|value| value.to_str().unwrap().to_owned());
        let mut seen = self.0.seen.lock().unwrap();
        seen.push((self.0.began.elapsed(), timeout));
        let answer = self.0.answers.get(seen.len() - 1).or(self.0.answers.last());
        ready(Ok(answer.unwrap().clone()))
    }
}

fn call() -> Request<Body> {
    Request::post("http://one.example/service/method").body(Body::empty()).unwrap()
}

fn call_with<T: Clone + Send + Sync + 'static>(value: T) -> Request<Body> {
    let mut call = call();
    call.extensions_mut().insert(value);
    call
}

/// A call whose own client has set a timeout, as tonic does it.
fn call_within(timeout: &'static str) -> Request<Body> {
    let mut call = call();
    call.headers_mut().insert("grpc-timeout", timeout.parse().unwrap());
    call
}

/// The defaults, but for a delay of exactly so much.
fn policy(delay: Duration) -> RetryPolicy<Grpc, Constant> {
    RetryPolicy::grpc().backoff(Constant::new(delay))
}

/// The server hears of a deadline by the field alone.
#[tokio::test(start_paused = true)]
async fn options_deadline_is_written_for_server() {
    let server = Server::of_codes([Code::Unavailable, Code::Ok]);
    let client = RetryLayer::new(policy(ms(100))).layer(server.clone());
    let options = CallOptions::new().deadline(Deadline::after(ms(500)));
    client.clone().oneshot(call_with(options)).await.unwrap();
    assert_eq!(server.timeouts(), [Some("500000u".into()), Some("400000u".into())]);

    let handle = client.with_options(CallOptions::new().deadline(Deadline::after(ms(300))));
    handle.oneshot(call()).await.unwrap();
    assert_eq!(server.timeouts()[2..], [Some("300000u".into())]);
}

#[tokio::test(start_paused = true)]
async fn deadline_is_written_without_retries() {
    let server = Server::of_codes([Code::Ok]);
    let single = RetryLayer::new(policy(ms(100)).max_attempts(1)).layer(server.clone());
    single.clone().oneshot(call_with(Deadline::after(ms(500)))).await.unwrap();
    let never = CallOptions::new().never_retry().deadline(Deadline::after(ms(300)));
    single.oneshot(call_with(never)).await.unwrap();
    assert_eq!(server.timeouts(), [Some("500000u".into()), Some("300000u".into())]);
}

#[tokio::test(start_paused = true)]
async fn callers_timeout_is_handed_on_whole() {
    let rows = [("259200S", "259200S"), ("900u", "900000n"), ("1n", "1n"), ("2H", "7200000m")];
    for (first, second) in rows {
        let server = Server::of_codes([Code::Unavailable, Code::Ok]);
        let client = RetryLayer::new(RetryPolicy::grpc().backoff(Constant::immediate()))
            .layer(server.clone());
        client.oneshot(call_within(first)).await.unwrap();
        assert_eq!(server.timeouts(), [Some(first.into()), Some(second.into())]);
    }
}

// DL-1
#[tokio::test(start_paused = true)]
async fn server_gets_earlier_deadline() {
    for (field, told) in [("2S", "500000u"), ("100m", "100m")] {
        let server = Server::of_codes([Code::Ok]);
        let mut call = call_within(field);
        call.extensions_mut().insert(Deadline::after(ms(500)));
        RetryLayer::grpc().layer(server.clone()).oneshot(call).await.unwrap();
        assert_eq!(server.timeouts(), [Some(told.into())]);
    }
}

// RET-3, DL-3
#[tokio::test(start_paused = true)]
async fn no_retry_past_timeout_of_call() {
    for (timeout, times) in [("50m", vec![0]), ("100m", vec![0]), ("150m", vec![0, 100])] {
        let server = Server::of_codes([Code::Unavailable]);
        let slot = ReportSlot::default();
        let client = RetryLayer::new(policy(ms(100))).layer(server.clone());
        let client = client.with_options(CallOptions::new().report_to(&slot));
        let answer = client.oneshot(call_within(timeout)).await.unwrap();
        assert_eq!(answer.headers()["grpc-status"], "4", "not the last attempt's error");
        let message = answer.headers()["grpc-message"].to_str().unwrap();
        assert!(message.contains("server (14)"), "but that is told: {message}");
        assert_eq!(server.times(), times, "{timeout}");
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
    }
}

/// A deadline that a server has read from its own inbound call.
#[tokio::test(start_paused = true)]
async fn no_retry_past_inbound_deadline() {
    let inbound = Deadline::from_headers(call_within("150m").headers()).unwrap();
    let server = Server::of_codes([Code::Unavailable]);
    let client = RetryLayer::new(policy(ms(100))).layer(server.clone());
    client.oneshot(call_with(inbound)).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
    assert_eq!(server.timeouts(), [Some("150000u".into()), Some("50000000n".into())]);
}

#[tokio::test(start_paused = true)]
async fn classifier_of_call_is_asked_before_table() {
    let server = Server::of_codes([Code::Unavailable]);
    let options = CallOptions::new().classify(|_: Outcome<'_>| Some(Verdict::Permanent));
    RetryLayer::grpc().layer(server.clone()).oneshot(call_with(options)).await.unwrap();
    assert_eq!(server.count(), 1);
}

/// Pushback is no hint but a command: no jitter is added to it, and no cap cuts the call off.
// PB-4
#[tokio::test(start_paused = true)]
async fn pushback_is_waited_for_exactly() {
    for (pushback, wait) in [("0", 0), ("10000", 10_000), ("600000", 600_000)] {
        let refused = with_pushback(trailers_only(Code::Unavailable), pushback);
        let server = Server::new([refused, trailers_only(Code::Ok)]);
        let policy = RetryPolicy::grpc().max_elapsed(None).max_server_delay(ms(60_000));
        RetryLayer::new(policy).layer(server.clone()).oneshot(call()).await.unwrap();
        assert_eq!(server.times(), [0, wait]);
    }
}

#[tokio::test(start_paused = true)]
async fn timed_out_call_gets_deadline_exceeded() {
    let silent = service_fn(|_: Request<Body>| pending::<Result<Answer, tonic::Status>>());
    let timeout = policy(ms(100)).attempt_timeout(ms(50));
    let error = RetryLayer::new(timeout).layer(silent).oneshot(call()).await.unwrap_err();
    assert_eq!(tonic::Status::from_error(error).code(), tonic::Code::DeadlineExceeded);

    let deadline = policy(ms(100)).boxed_errors();
    let call = call_with(Deadline::after(ms(50)));
    let error = RetryLayer::new(deadline).layer(silent).oneshot(call).await.unwrap_err();
    assert_eq!(tonic::Status::from_error(error).code(), tonic::Code::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_code_can_be_given_a_verdict_of_its_own() {
    let aborted = Failure::new(FailureKind::Server).with_code(Code::Aborted.number());
    let policy = policy(ms(100)).protocol(|grpc| {
        grpc.on_code(Code::Aborted, Verdict::NotProcessed(aborted))
            .on_code(Code::Unavailable, Verdict::Permanent)
    });
    let rows = [
        (trailers_only(Code::Aborted), 2),
        (trailers_only(Code::Unavailable), 1),
        // What is not gRPC counts as the code that it stands for.
        (Response::builder().status(503).body(Empty::new()).unwrap(), 1),
        (trailers_only(Code::ResourceExhausted), 2),
        (trailers_only(Code::Internal), 1),
    ];
    for (answer, attempts) in rows {
        let server = Server::new([answer.clone(), trailers_only(Code::Ok)]);
        RetryLayer::new(policy.clone()).layer(server.clone()).oneshot(call()).await.unwrap();
        assert_eq!(server.count(), attempts, "{answer:?}");
    }
}

/// Over a tonic channel the requests of a generated client name a host only if the client has an origin.
#[tokio::test(start_paused = true)]
async fn destination_is_that_of_the_origin() {
    let destinations = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&destinations);
    let policy = RetryPolicy::grpc().max_attempts(1).observe(move |destination, _| {
        seen.lock().unwrap().push(destination.to_owned());
    });
    let channel = RetryLayer::new(policy).layer(Server::of_codes([Code::Unavailable]));
    HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await.unwrap_err();
    let origin = "http://stock.example:50051".parse().unwrap();
    let mut client = HealthClient::with_origin(channel, origin);
    client.check(HealthCheckRequest::default()).await.unwrap_err();
    let destinations = destinations.lock().unwrap();
    assert_eq!(destinations.first().unwrap(), "");
    assert_eq!(destinations.last().unwrap(), "stock.example:50051");
}
