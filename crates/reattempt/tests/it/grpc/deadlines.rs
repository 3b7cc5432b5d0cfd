//! Tests of a call's deadline, which is sent with every attempt, and ends whatever is in progress.

use std::future::pending;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use reattempt::guard::{GuardLayer, Limit, RateLimit};
use reattempt::hedge::HedgePolicy;
use reattempt::report::ReportSlot;
use reattempt::retry::AttemptContext;
use reattempt::{CallOptions, Deadline, Report, RetryLayer, RetryPolicy};
use reattempt_core::StopReason;
use reattempt_grpc::{Code, parse_grpc_timeout};
use tokio::time::{Instant, sleep, timeout};
use tonic::body::Body;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::grpc::support::{
    Answer, GrpcServer, Lost, Step, call, call_with, call_within, change, ends_with, lost, ms, policy, read, status,
    streaming, throttle, trailers_only, unmarked, with,
};

/// The header, extension and options of a row, and the resulting deadline, in milliseconds.
type Said = (Option<&'static str>, Option<u64>, Option<u64>, u64);

fn hangs() -> GrpcServer {
    GrpcServer::by(|_| (600_000, Ok(trailers_only(Code::Ok))))
}

/// Returns the time left in a header, in milliseconds.
fn left(field: &Option<String>) -> u128 {
    parse_grpc_timeout(field.as_deref().unwrap().as_bytes()).unwrap().as_millis()
}

// DL-1
#[tokio::test(start_paused = true)]
async fn dl_1_the_smallest_of_all_counts() {
    let policy = || policy(0).protocol(|grpc| grpc.timeout(ms(300)));
    let rows: [Said; 5] = [
        (None, None, None, 300),
        (Some("200m"), None, None, 200),
        (Some("400m"), Some(250), None, 250),
        (Some("400m"), Some(250), Some(100), 100),
        (Some("1S"), Some(1000), Some(1000), 300),
    ];
    for (field, extension, option, expected) in rows {
        let server = hangs();
        let mut call = call();
        if let Some(field) = field {
            call.headers_mut().insert("grpc-timeout", field.parse().unwrap());
        }
        if let Some(extension) = extension {
            call.extensions_mut().insert(Deadline::after(ms(extension)));
        }
        if let Some(option) = option {
            let deadline = Deadline::after(ms(option));
            call.extensions_mut().insert(CallOptions::new().deadline(deadline));
        }
        let began = Instant::now();
        let client = RetryLayer::new(policy()).layer(server.clone());
        let (code, _) = read(client.oneshot(call).await.unwrap()).await;
        assert_eq!(code, Some(Code::DeadlineExceeded));
        assert_eq!(began.elapsed().as_millis(), u128::from(expected));
        assert_eq!(left(&server.fields("grpc-timeout")[0]), u128::from(expected));
    }
}

// RET-6, DL-2
#[tokio::test(start_paused = true)]
async fn every_attempt_is_given_what_is_left() {
    let server = GrpcServer::by(|_| (50, Ok(trailers_only(Code::Unavailable))));
    let client = RetryLayer::new(policy(100)).layer(server.clone());
    client.oneshot(call_within("1S")).await.unwrap();
    let told: Vec<_> = server.fields("grpc-timeout").iter().map(left).collect();
    assert_eq!(told, [1000, 850, 700]);
}

// DL-2
#[tokio::test(start_paused = true)]
async fn dl_2_also_when_a_hook_has_taken_time() {
    let server = GrpcServer::at_once(|number| match number {
        1 => trailers_only(Code::Unavailable),
        _ => trailers_only(Code::Ok),
    });
    let slow = policy(0)
        .before_attempt(|_: &mut http::request::Parts, _: AttemptContext| Box::pin(sleep(Duration::from_millis(200))));
    RetryLayer::new(slow).layer(server.clone()).oneshot(call_within("1S")).await.unwrap();
    let told: Vec<_> = server.fields("grpc-timeout").iter().map(left).collect();
    assert_eq!(told, [800, 600]);
}

// DL-2
#[tokio::test(start_paused = true)]
async fn dl_2_also_when_a_guard_makes_it_wait() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Ok));
    let guarded = GuardLayer::grpc(RateLimit::new(Limit::every(ms(300)), 1)).layer(server.clone());
    let client = RetryLayer::new(policy(0)).layer(guarded);
    for timeout in ["1S", "1S"] {
        client.clone().oneshot(call_within(timeout)).await.unwrap();
    }
    let told: Vec<_> = server.fields("grpc-timeout").iter().map(left).collect();
    assert_eq!(told, [1000, 700]);
}

// DL-3
#[tokio::test(start_paused = true)]
async fn deadline_drops_attempt_under_way() {
    struct Dropped(std::sync::Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let flag = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
    let noted = std::sync::Arc::clone(&flag);
    let inner = service_fn(move |_: Request<Body>| {
        let dropped = Dropped(std::sync::Arc::clone(&noted));
        async move {
            let _dropped = dropped;
            pending::<Result<Answer, Lost>>().await
        }
    });
    let slot = ReportSlot::default();
    let client = RetryLayer::grpc().layer(inner).with_options(CallOptions::new().report_to(&slot));
    let began = Instant::now();
    let reply = client.oneshot(call_within("250m")).await.unwrap();
    assert_eq!(reply.headers()["grpc-status"], "4");
    assert_eq!(began.elapsed(), ms(250));
    assert!(flag.load(std::sync::atomic::Ordering::Relaxed), "the attempt is cancelled");
    let report = slot.take().unwrap();
    assert_eq!((report.stop_reason(), report.attempts().len()), (StopReason::DeadlineExceeded, 1));
}

// DL-3
#[tokio::test(start_paused = true)]
async fn call_past_its_deadline_is_not_sent() {
    let server = hangs();
    let slot = ReportSlot::default();
    let options = CallOptions::new().report_to(&slot);
    let client = RetryLayer::grpc().layer(server.clone()).with_options(options);
    let late = Deadline::after(ms(10));
    sleep(ms(20)).await;
    let reply = client.oneshot(call_with(late)).await.unwrap();
    assert_eq!((&reply.headers()["grpc-status"], server.count()), (&"4".parse().unwrap(), 0));
    let report = slot.take().unwrap();
    assert_eq!((report.stop_reason(), report.attempts().len()), (StopReason::DeadlineExceeded, 0));
}

// RET-3
#[tokio::test(start_paused = true)]
async fn deadline_ends_wait_for_readiness() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let client = RetryLayer::new(policy(100)).layer(OnlyOnce::new(server.clone()));
    let began = Instant::now();
    let reply = client.oneshot(call_within("250m")).await.unwrap();
    assert_eq!((&reply.headers()["grpc-status"], server.count()), (&"4".parse().unwrap(), 1));
    assert_eq!(began.elapsed(), ms(250));
    let report = reply.extensions().get::<Report>().unwrap();
    assert_eq!((report.stop_reason(), report.attempts().len()), (StopReason::DeadlineExceeded, 1));
}

/// A service whose clones are never ready after the first call.
#[derive(Clone)]
struct OnlyOnce {
    inner: GrpcServer,
    first: bool,
}

impl OnlyOnce {
    fn new(inner: GrpcServer) -> Self {
        Self { inner, first: true }
    }
}

impl Service<Request<Body>> for OnlyOnce {
    type Response = Answer;
    type Error = Lost;
    type Future = <GrpcServer as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        match self.first && self.inner.count() == 0 {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.first = false;
        self.inner.call(request)
    }
}

// RET-3, DL-8
#[tokio::test(start_paused = true)]
async fn pushback_past_deadline_ends_call() {
    let server = GrpcServer::at_once(|_| with(trailers_only(Code::Unavailable), "grpc-retry-pushback-ms", "2000"));
    let client = RetryLayer::new(policy(0)).layer(server.clone());
    let reply = client.oneshot(call_within("1S")).await.unwrap();
    assert_eq!((&reply.headers()["grpc-status"], server.count()), (&"4".parse().unwrap(), 1));
}

// DL-8
#[tokio::test(start_paused = true)]
async fn drop_in_wait_sends_nothing_more() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let client = RetryLayer::new(policy(100)).layer(server.clone());
    let cancelled = tokio::time::timeout(ms(50), client.oneshot(call())).await;
    assert!(cancelled.is_err());
    sleep(ms(1000)).await;
    assert_eq!(server.count(), 1);
}

// CALL-5, DL-3
#[tokio::test(start_paused = true)]
async fn deadline_ends_answer_being_read() {
    for steps in [
        || vec![Step::Data("a"), Step::Wait(100), Step::Data("b"), Step::Hang],
        || vec![Step::Data("a"), Step::Wait(100), Step::Data("b"), Step::Wait(300), Step::Data("c")],
    ] {
        let throttle = throttle();
        let client = RetryLayer::new(policy(0).budget(throttle.clone()));
        let client = client.layer(GrpcServer::at_once(move |_| streaming(steps())));
        let began = Instant::now();
        let reply = client.oneshot(call_within("250m")).await.unwrap();
        assert_eq!(read(reply).await, (Some(Code::DeadlineExceeded), "ab".to_owned()));
        assert_eq!(began.elapsed(), ms(250));
        assert_eq!(change(&throttle), 0, "no server has said so");
    }
}

/// The header sets the time, however late the reader is: the caller gets what has arrived by then, and no later
/// message.
// DL-3
#[tokio::test(start_paused = true)]
async fn message_after_deadline_is_not_delivered() {
    let answer = |_| streaming([Step::Data("a"), Step::Data("b"), Step::Trailers(status(Code::Ok))]);
    let client = RetryLayer::grpc().layer(GrpcServer::at_once(answer));
    let mut body = client.oneshot(call_within("250m")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    sleep(ms(300)).await;
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "4");
    assert!(body.frame().await.is_none());
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_a_status_that_came_in_time_stands() {
    let answer = |_| streaming([Step::Data("a"), Step::Trailers(status(Code::Ok))]);
    let client = RetryLayer::grpc().layer(GrpcServer::at_once(answer));
    let mut body = client.oneshot(call_within("250m")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    sleep(ms(300)).await;
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
}

// DL-4
#[tokio::test(start_paused = true)]
async fn server_deadline_exceeded_is_plain_code() {
    let server = GrpcServer::at_once(|number| match number {
        1 => trailers_only(Code::DeadlineExceeded),
        _ => ends_with(Code::Ok),
    });
    let client = RetryLayer::new(policy(10)).layer(server.clone());
    let mut call = call_within("1S");
    call.extensions_mut().insert(CallOptions::new().repeatable(true));
    let (code, _) = read(client.oneshot(call).await.unwrap()).await;
    assert_eq!((code, server.count()), (Some(Code::Ok), 2));
}

/// tonic's channel reads the same header, and its timer may fire a moment earlier.
// TN-4
#[tokio::test(start_paused = true)]
async fn channel_timer_at_deadline_is_deadline() {
    let server = GrpcServer::by(|_| (249, Err(lost(tonic::TimeoutExpired(())))));
    let client = RetryLayer::grpc().layer(server.clone());
    let reply = client.oneshot(call_within("250m")).await.unwrap();
    assert_eq!((&reply.headers()["grpc-status"], server.count()), (&"4".parse().unwrap(), 1));
}

// TN-4
#[tokio::test(start_paused = true)]
async fn channel_timer_before_it_is_a_failure() {
    let server = GrpcServer::by(|number| match number {
        1 => (100, Err(lost(tonic::TimeoutExpired(())))),
        _ => (0, Ok(ends_with(Code::Ok))),
    });
    let client = RetryLayer::new(policy(10)).layer(server.clone());
    let mut repeatable = call_within("1S");
    repeatable.extensions_mut().insert(CallOptions::new().repeatable(true));
    let (code, _) = read(client.clone().oneshot(repeatable).await.unwrap()).await;
    assert_eq!((code, server.count()), (Some(Code::Ok), 2));
    let server = GrpcServer::by(|_| (100, Err(lost(tonic::TimeoutExpired(())))));
    let client = RetryLayer::new(unmarked(10)).layer(server.clone());
    let (code, _) = read(client.oneshot(call_within("1S")).await.unwrap()).await;
    assert_eq!((code, server.count()), (Some(Code::DeadlineExceeded), 1));
}

// DL-9
#[tokio::test(start_paused = true)]
async fn unreadable_field_is_no_deadline() {
    for field in ["1", "S", "123456789S", "1s", "-1S", "1.5S", ""] {
        let server = GrpcServer::by(|_| (10_000, Ok(ends_with(Code::Ok))));
        let client = RetryLayer::grpc().layer(server.clone());
        let (code, _) = read(client.oneshot(call_within(field)).await.unwrap()).await;
        assert_eq!(code, Some(Code::Ok), "{field}");
    }
}

/// Outside a runtime, a timer would panic.
// trap 23
#[test]
fn call_without_deadline_has_no_timer() {
    let server = GrpcServer::at_once(|_| ends_with(Code::Ok));
    let client = RetryLayer::new(RetryPolicy::grpc()).layer(server);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut future = std::pin::pin!(client.oneshot(call()));
    assert!(future.as_mut().poll(&mut context).is_ready());
}

/// A server sends the status but does not end the stream. The status counts once, and the deadline ends the body.
// DL-3, ST-1
#[tokio::test(start_paused = true)]
async fn dl_3_deadline_ends_body_after_a_status() {
    type Row = (fn() -> Answer, Code, i64);
    let rows: [Row; 3] = [
        (|| with(streaming([Step::Hang]), "grpc-status", "0"), Code::Ok, 100),
        (|| with(streaming([Step::Data("a"), Step::Hang]), "grpc-status", "5"), Code::NotFound, 0),
        (|| not_found(streaming([Step::Wait(100), Step::Hang])), Code::Unimplemented, 0),
    ];
    for (answer, code, credit) in rows {
        let throttle = throttle();
        let server = GrpcServer::at_once(move |_| answer());
        let retried = RetryLayer::new(policy(0).budget(throttle.clone())).layer(server.clone());
        let hedged = HedgePolicy::grpc().budget(throttle.clone()).layer(server);
        let clients = [BoxCloneService::new(retried), BoxCloneService::new(hedged)];
        for (client, credits) in clients.into_iter().zip([credit, 2 * credit]) {
            let began = Instant::now();
            let reply = read(client.oneshot(call_within("250m")).await.unwrap()).await;
            assert_eq!((reply.0, began.elapsed()), (Some(code), ms(250)));
            assert_eq!(change(&throttle), credits);
        }
    }
}

/// A body that ended after its status stays valid, even if it is read after the deadline.
// DL-3, ST-1
#[tokio::test(start_paused = true)]
async fn dl_3_body_that_ended_in_time_stands() {
    let answer = |_| with(streaming([]), "grpc-status", "0");
    let reply = RetryLayer::grpc().layer(GrpcServer::at_once(answer)).oneshot(call_within("250m"));
    let mut body = reply.await.unwrap().into_body();
    sleep(ms(300)).await;
    assert!(timeout(ms(100), body.frame()).await.unwrap().is_none());
}

fn not_found(mut answer: Answer) -> Answer {
    *answer.status_mut() = http::StatusCode::NOT_FOUND;
    answer
}
