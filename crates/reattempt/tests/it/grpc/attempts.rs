//! Tests of attempts one after the other (§2, §7, §9, §13): the service that sends them, the limits of pushback, their
//! classification.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::Request;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryLayer};
use reattempt_core::StopReason;
use reattempt_grpc::{Code, RetryThrottle, RetryThrottling};
use tonic::body::Body;
use tower::{Layer, Service, ServiceExt};

use crate::grpc::support::{
    Answer, GrpcServer, Lost, Step, call, call_within, ends_with, field, ms, policy, read, status, streaming,
    trailers_only, with,
};

/// A balanced service, which picks the target of a call when it is readied.
#[derive(Clone)]
struct Balanced {
    picks: Arc<Mutex<usize>>,
    picked: Option<usize>,
    called: Arc<Mutex<Vec<usize>>>,
}

impl Service<Request<Body>> for Balanced {
    type Response = Answer;
    type Error = Lost;
    type Future = Ready<Result<Answer, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        let mut picks = self.picks.lock().unwrap();
        self.picked.get_or_insert_with(|| {
            *picks += 1;
            *picks
        });
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let picked = self.picked.take().unwrap();
        self.called.lock().unwrap().push(picked);
        ready(Ok(trailers_only(if picked < 3 { Code::Unavailable } else { Code::Ok })))
    }
}

#[tokio::test(start_paused = true)]
async fn report_names_the_codes() {
    let service = Balanced { picks: Arc::default(), picked: None, called: Arc::default() };
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy(0)).layer(service);
    client.with_options(CallOptions::new().report_to(&slot)).oneshot(call()).await.unwrap();
    let text = slot.take().unwrap().to_string();
    assert_eq!(text.matches("server (UNAVAILABLE), next in 0s").count(), 2, "{text}");
}

#[tokio::test(start_paused = true)]
async fn report_names_permanent_code() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::NotFound));
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy(0)).layer(server);
    client.with_options(CallOptions::new().report_to(&slot)).oneshot(call()).await.unwrap();
    let text = slot.take().unwrap().to_string();
    assert!(text.starts_with("attempt 1 at 0s: permanent failure (NOT_FOUND)\n"), "{text}");
}

// CALL-4
#[tokio::test(start_paused = true)]
async fn every_attempt_is_sent_by_fresh_pick() {
    let balanced = || Balanced { picks: Arc::default(), picked: None, called: Arc::default() };
    let service = balanced();
    RetryLayer::new(policy(0)).layer(service.clone()).oneshot(call()).await.unwrap();
    assert_eq!(*service.called.lock().unwrap(), [1, 2, 3]);
    let service = balanced();
    let hedged = HedgeLayer::new(HedgePolicy::grpc().max_attempts(3).delay(ms(10)));
    hedged.layer(service.clone()).oneshot(call()).await.unwrap();
    assert_eq!(*service.called.lock().unwrap(), [1, 2, 3]);
}

/// Returns how often a server that always responds this way is called, and why the call ends.
async fn end_of(
    answer: impl Fn() -> Answer + Send + Sync + 'static,
    policy: reattempt::RetryPolicy<reattempt::grpc::Grpc, reattempt_schedule_fixed::Constant, RetryThrottle>,
    request: Request<Body>,
) -> (usize, StopReason) {
    let server = GrpcServer::at_once(move |_| answer());
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy).layer(server.clone());
    let client = client.with_options(CallOptions::new().report_to(&slot));
    read(client.oneshot(request).await.unwrap()).await;
    (server.count(), slot.take().unwrap().stop_reason())
}

// PB-6
#[tokio::test(start_paused = true)]
async fn pushback_beats_no_other_limit() {
    let pushed = || with(trailers_only(Code::Unavailable), "grpc-retry-pushback-ms", "10");
    let open = || policy(0).max_attempts(4).budget(RetryThrottle::new(None));
    assert_eq!(end_of(pushed, open(), call()).await, (4, StopReason::AttemptsExhausted));
    let late = call_within("15m");
    assert_eq!(end_of(pushed, open(), late).await, (2, StopReason::DeadlineExceeded));
    let throttled = RetryThrottle::new(Some(RetryThrottling::new(4.0, 0.1)));
    let throttled = policy(0).max_attempts(4).budget(throttled);
    assert_eq!(end_of(pushed, throttled, call()).await, (2, StopReason::BudgetExhausted));
    let committed = || {
        let mut trailers = status(Code::Unavailable);
        trailers.extend(field("grpc-retry-pushback-ms", "10"));
        streaming([Step::Data("message"), Step::Trailers(trailers)])
    };
    assert_eq!(end_of(committed, open(), call()).await, (1, StopReason::Succeeded));
}

/// Pushback in response headers is ignored, both when they commit the call and when the trailers after them are peeked.
// PB-1
#[tokio::test(start_paused = true)]
async fn pushback_is_read_from_trailers() {
    for value in ["-1", "700"] {
        let server = || {
            GrpcServer::at_once(move |number| match number {
                1 => {
                    let trailers = Step::Trailers(status(Code::Unavailable));
                    with(streaming([trailers]), "grpc-retry-pushback-ms", value)
                }
                _ => ends_with(Code::Ok),
            })
        };
        let (committed, looked_at) = (server(), server());
        let client = RetryLayer::new(policy(20)).layer(committed.clone());
        let (code, _) = read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!((code, committed.count()), (Some(Code::Unavailable), 1), "{value}");
        let peeking = PeekTrailersLayer::new(ms(50)).layer(looked_at.clone());
        RetryLayer::new(policy(20)).layer(peeking).oneshot(call()).await.unwrap();
        assert_eq!(looked_at.times(), [0, 20], "{value}");
    }
}

/// A service below the layer may rewrite a status, and the layer reads the rewritten one.
// OUT-4
#[tokio::test(start_paused = true)]
async fn out_4_status_that_layer_sees_decides() {
    for (sent, seen, attempts) in [(Code::NotFound, Code::Unavailable, 2), (Code::Unavailable, Code::NotFound, 1)] {
        let server = GrpcServer::at_once(move |number| match number {
            1 => trailers_only(sent),
            _ => ends_with(Code::Ok),
        });
        let rewriting = server.clone().map_response(move |mut answer: Answer| {
            if answer.headers().contains_key("grpc-status") {
                answer.headers_mut().extend(status(seen));
            }
            answer
        });
        RetryLayer::new(policy(0)).layer(rewriting).oneshot(call()).await.unwrap();
        assert_eq!(server.count(), attempts, "{sent} as {seen}");
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Method(&'static str);

/// Extensions are cloned for each attempt, including the method name from a generated client. One attempt's changes do
/// not reach the next.
// TN-3
#[tokio::test(start_paused = true)]
async fn tn_3_each_attempt_has_extensions_of_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, method) = (Arc::clone(&seen), Method("service/method"));
    let server = tower::service_fn(move |mut request: Request<Body>| {
        let found = request.extensions_mut().remove::<Method>();
        noted.lock().unwrap().push((found, request.uri().clone(), request.method().clone()));
        ready(Ok::<_, Lost>(trailers_only(Code::Unavailable)))
    });
    let request = crate::grpc::support::call_with(method.clone());
    let expected = (Some(method), request.uri().clone(), request.method().clone());
    RetryLayer::new(policy(0)).layer(server).oneshot(request).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), vec![expected; 3]);
}

/// An attempt has a time limit only if code sets one. The attempt then fails, and the call continues.
// DL-5, DL-6
#[tokio::test(start_paused = true)]
async fn attempt_is_limited_by_client_only() {
    const DAYS: u64 = 10 * 24 * 3_600_000;
    let slow = || GrpcServer::by(|number| (if number == 1 { DAYS } else { 0 }, Ok(ends_with(Code::Ok))));
    let server = slow();
    RetryLayer::new(policy(0)).layer(server.clone()).oneshot(call()).await.unwrap();
    assert_eq!(server.count(), 1);
    let server = slow();
    let client = RetryLayer::new(policy(0).attempt_timeout(ms(500))).layer(server.clone());
    let options = CallOptions::new().repeatable(true);
    client.oneshot(crate::grpc::support::call_with(options)).await.unwrap();
    assert_eq!(server.times(), [0, 500]);
}
