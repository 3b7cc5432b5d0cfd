//! Tests of the inner service's instances: which of them sends an attempt, and what an idle one holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::Request;
use http::request::Parts;
use reattempt::error::TimeLimit;
use reattempt::report::ReportSlot;
use reattempt::retry::AttemptContext;
use reattempt::{Deadline, RetryLayer, TimedOut};
use reattempt_core::StopReason;
use reattempt_replay::ReplayBody;
use tokio::time::{sleep, timeout};
use tokio_test::{assert_ready, assert_ready_ok, task};
use tower::buffer::BufferLayer;
use tower::limit::ConcurrencyLimitLayer;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use crate::calls::support::{Body, Log, Policy, Server, With, get, ms, options, policy};

type Attempt = Request<ReplayBody<Body>>;

/// Picks endpoints in turn. Each clone continues with its own count from its original's.
#[derive(Clone)]
struct RoundRobin {
    server: Server,
    next: usize,
    picked: Arc<Mutex<Vec<usize>>>,
}

impl RoundRobin {
    fn new(server: Server) -> Self {
        Self { server, next: 0, picked: Arc::default() }
    }

    fn picked(&self) -> Vec<usize> {
        std::mem::take(&mut self.picked.lock().unwrap())
    }
}

impl Service<Attempt> for RoundRobin {
    type Response = <Server as Service<Attempt>>::Response;
    type Error = <Server as Service<Attempt>>::Error;
    type Future = <Server as Service<Attempt>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Attempt>::poll_ready(&mut self.server, cx)
    }

    fn call(&mut self, request: Attempt) -> Self::Future {
        self.picked.lock().unwrap().push(self.next);
        self.next += 1;
        self.server.call(request)
    }
}

fn hooked(policy: Policy) -> Policy {
    policy.before_attempt(|_: &mut Parts, _: AttemptContext| Box::pin(async {}))
}

// trap 42
#[tokio::test(start_paused = true)]
async fn spare_serves_all_retries_of_a_call() {
    let inner = RoundRobin::new(Server::statuses([503]));
    let mut client = RetryLayer::new(policy()).layer(inner.clone());
    client.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(inner.picked(), [0, 0, 1]);
    // The next call's retries continue from there, also those of another handle.
    client.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(inner.picked(), [1, 2, 3]);
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(inner.picked(), [2, 4, 5]);
}

// trap 42
#[tokio::test(start_paused = true)]
async fn clone_per_call_goes_on_from_its_first() {
    let inner = RoundRobin::new(Server::statuses([503]));
    let policy = policy().clone_per_call(true);
    let mut client = RetryLayer::new(policy).layer(inner.clone());
    client.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(inner.picked(), [0, 1, 2]);
    client.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(inner.picked(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn hook_all_attempts_use_the_spare() {
    let inner = RoundRobin::new(Server::statuses([503]));
    let mut client = RetryLayer::new(hooked(policy())).layer(inner.clone());
    client.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(inner.picked(), [0, 1, 2]);
    client.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(inner.picked(), [3, 4, 5]);
}

/// A call that is dropped while its retry waits for readiness leaves the spare instance unchanged.
#[tokio::test(start_paused = true)]
async fn spare_readied_and_unused_is_not_kept() {
    let server = Server::statuses([503]);
    let limited = ServiceBuilder::new().layer(ConcurrencyLimitLayer::new(1)).service(server);
    let client = RetryLayer::new(policy().max_attempts(2)).layer(limited.clone());
    let mut call = task::spawn(client.clone().oneshot(get()));
    assert!(call.poll().is_pending());
    // Another call takes the only place for as long as the retry would need it.
    let mut other = limited.clone();
    assert_ready_ok!(task::spawn(ServiceExt::<Attempt>::ready(&mut other)).poll());
    sleep(ms(150)).await;
    assert!(call.poll().is_pending());
    drop(call);
    drop(other);
    let mut third = limited.clone();
    assert_ready_ok!(task::spawn(ServiceExt::<Attempt>::ready(&mut third)).poll());
}

/// A late call over a service with one place is not sent, and the place is free afterwards.
macro_rules! late_call_frees_its_place {
    ($layer:expr) => {{
        let server = Server::statuses([200]);
        let limited = ServiceBuilder::new().layer($layer).service(server.clone());
        let policy = policy().boxed_errors();
        let mut client = RetryLayer::new(policy).layer(limited);
        ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap();
        let late = client.call(get().with(Deadline::after(ms(0))));
        let error: BoxError = late.await.map(drop).unwrap_err();
        assert_eq!(error.downcast_ref::<TimedOut>().unwrap().limit(), TimeLimit::Deadline);
        assert_eq!(server.count(), 0);
        let other = timeout(ms(1000), client.clone().oneshot(get())).await;
        other.expect("the idle handle holds the place").unwrap();
    }};
}

// trap 20, trap 38
#[tokio::test(start_paused = true)]
async fn late_call_releases_the_concurrency_limit() {
    late_call_frees_its_place!(ConcurrencyLimitLayer::new(1));
}

// trap 20, trap 38
#[tokio::test(start_paused = true)]
async fn late_call_releases_the_buffer() {
    late_call_frees_its_place!(BufferLayer::<Attempt>::new(1));
}

#[tokio::test(start_paused = true)]
async fn late_call_is_reported_as_not_sent() {
    let server = Server::statuses([200]);
    let client = RetryLayer::new(policy().boxed_errors()).layer(server.clone());
    let slot = ReportSlot::default();
    let late = get().with(options().report_to(&slot).deadline(Deadline::after(ms(0))));
    let error = assert_ready!(task::spawn(client.oneshot(late)).poll()).map(drop).unwrap_err();
    assert!(error.is::<TimedOut>());
    assert_eq!(server.count(), 0);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn late_call_is_observed_by_destination() {
    let log = Log::default();
    let policy = policy().boxed_errors().observe_with(log.clone());
    let client = RetryLayer::new(policy).layer(Server::statuses([200]));
    client.oneshot(get().with(Deadline::after(ms(0)))).await.map(drop).unwrap_err();
    let lines = log.lines();
    let reason = StopReason::DeadlineExceeded;
    assert_eq!(lines, [format!("one.example: not sent: {reason}")]);
}

/// The deadline passes while the first attempt's hook runs.
#[tokio::test(start_paused = true)]
async fn late_after_the_hook_is_not_sent() {
    let server = Server::statuses([200]);
    let policy = policy().before_attempt(|_: &mut Parts, _: AttemptContext| Box::pin(async { sleep(ms(50)).await }));
    let client = RetryLayer::new(policy.boxed_errors()).layer(server.clone());
    let error = client.oneshot(get().with(Deadline::after(ms(20)))).await.map(drop).unwrap_err();
    assert!(error.is::<TimedOut>());
    assert_eq!(server.count(), 0);
}

/// The hook calls through the same client, which has one place.
#[tokio::test(start_paused = true)]
async fn hook_may_use_the_same_limited_client() {
    let server = Server::statuses([200]);
    let limited = ServiceBuilder::new().layer(ConcurrencyLimitLayer::new(1)).service(server.clone());
    let inner = limited.clone();
    let in_hook = Arc::new(AtomicBool::new(false));
    let ran = Arc::clone(&in_hook);
    let policy = policy().before_attempt(move |_: &mut Parts, _: AttemptContext| {
        let (inner, ran) = (inner.clone(), Arc::clone(&ran));
        Box::pin(async move {
            let token = get().map(ReplayBody::passthrough);
            ran.store(inner.oneshot(token).await.is_ok(), Ordering::SeqCst);
        })
    });
    let mut client = RetryLayer::new(policy).layer(limited);
    let client = ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap();
    let ended = timeout(ms(60_000), client.call(get())).await;
    assert_eq!(ended.expect("the hook waits for the place of its own call").unwrap().status(), 200);
    assert!(in_hook.load(Ordering::SeqCst));
    assert_eq!(server.count(), 2);
}
