//! Tests of the instance of the inner service that sends an attempt, and of waiting for its readiness.

use std::io::ErrorKind::ConnectionReset;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use reattempt::error::TimeLimit;
use reattempt::report::ReportSlot;
use reattempt::{Deadline, RetryLayer, TimedOut};
use reattempt_core::StopReason;
use reattempt_replay::ReplayBody;
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use crate::calls::support::{
    Act, Answer, Attempt, Broken, Mocked, Policy, Server, With, get, mocked, ms, options, policy, ready, tokens,
};

// trap 09
#[tokio::test(start_paused = true)]
async fn readied_instance_is_called() {
    // The server panics if it is not ready, and counts instances that were readied in vain.
    let server = Server::statuses([200]);
    let mut client = RetryLayer::new(policy()).layer(server.clone());
    for _ in 0..3 {
        ready(&mut client).await.call(get()).await.unwrap();
    }
    drop(client);
    assert_eq!((server.count(), server.unused()), (3, 0));
}

// trap 09
#[tokio::test(start_paused = true)]
async fn trap_09_retries_ready_their_own_clone() {
    let server = Server::statuses([503, 503, 200]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!((server.count(), server.unused()), (3, 0));
}

/// The readied instance is released, because the hook may need the place that it holds.
#[tokio::test(start_paused = true)]
async fn hook_instance_is_readied_after_it() {
    let server = Server::statuses([503, 200]);
    let policy =
        policy().before_attempt(|_: &mut http::request::Parts, _| Box::pin(async { tokio::time::sleep(ms(10)).await }));
    let mut client = RetryLayer::new(policy).layer(server.clone());
    ready(&mut client).await.call(get()).await.unwrap();
    drop(client);
    assert_eq!((server.times(), server.unused()), (vec![10, 120], 1));
}

// trap 09
#[tokio::test(start_paused = true)]
async fn wait_reserves_no_readiness() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(2);
    let mut client = RetryLayer::new(policy().boxed_errors()).layer(service.clone());
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, respond) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    respond.send_response(mocked(503));
    assert_pending!(call.poll());
    advance(ms(50)).await;
    assert_pending!(call.poll());

    // The remaining place is free for another call while this call waits.
    let mut other = service.clone();
    assert_ready_ok!(task::spawn(other.ready()).poll());
    let mut other = task::spawn(other.call(get().map(ReplayBody::passthrough)));
    let (_, respond) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    respond.send_response(mocked(200));
    assert_ready_ok!(other.poll());

    // Now there is none, and nothing is sent until there is one.
    advance(ms(50)).await;
    assert_pending!(call.poll());
    advance(ms(50)).await;
    assert_pending!(call.poll());
    assert_pending!(task::spawn(handle.next_request()).poll());
    handle.allow(1);
    assert!(call.is_woken());
    assert_pending!(call.poll());
    let (_, respond) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    respond.send_response(mocked(200));
    assert_eq!(assert_ready_ok!(call.poll()).status(), 200);
}

/// A server whose instances become ready as `gate` decides. The gate sees how many were polled before.
#[derive(Clone)]
struct Gated {
    server: Server,
    asked: Arc<AtomicUsize>,
    gate: Arc<dyn Fn(usize) -> Poll<Result<(), Broken>> + Send + Sync>,
}

/// The first poll for readiness belongs to the first attempt and succeeds; `later` decides all others.
fn gated(server: &Server, later: impl Fn() -> Poll<Result<(), Broken>> + Send + Sync + 'static) -> Gated {
    let gate = move |asked| if asked == 0 { Poll::Ready(Ok(())) } else { later() };
    Gated { server: server.clone(), asked: Arc::default(), gate: Arc::new(gate) }
}

impl Service<Attempt> for Gated {
    type Response = Answer;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Broken>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match (self.gate)(self.asked.fetch_add(1, Ordering::SeqCst)) {
            Poll::Ready(Ok(())) => Service::<Attempt>::poll_ready(&mut self.server, cx),
            other => other,
        }
    }

    fn call(&mut self, request: Attempt) -> Self::Future {
        self.server.call(request)
    }
}

fn not_ready() -> Poll<Result<(), Broken>> {
    Poll::Ready(Err(Broken::new(0, "no longer there")))
}

// trap 09
#[tokio::test(start_paused = true)]
async fn readiness_error_yields_attempts_error() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(gated(&server, not_ready));
    let slot = ReportSlot::default();
    let error = client.oneshot(get().with(options().report_to(&slot))).await.unwrap_err();
    assert_eq!((error.attempt, server.count()), (1, 1));
    let report = slot.take().unwrap();
    assert_eq!((report.stop_reason(), report.attempts().len()), (StopReason::NotReady, 1));
    assert_eq!(budget.balance("one.example"), 10.0, "the retry was never sent");
}

// trap 09
#[tokio::test(start_paused = true)]
async fn readiness_error_after_refusal_has_report() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(gated(&server, not_ready));
    let slot = ReportSlot::default();
    let error = client.oneshot(get().with(options().report_to(&slot))).await.unwrap_err();
    assert_eq!((error.attempt, server.count()), (0, 1));
    assert_eq!(
        slot.take().unwrap().to_string(),
        "attempt 1 at 0s: server (503), next in 100ms\nstopped: the service was not ready for another attempt"
    );
}

// trap 09
#[tokio::test(start_paused = true)]
async fn readiness_wait_ends_with_elapsed_time() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = RetryLayer::new(policy().max_elapsed(ms(700))).layer(gated(&server, || Poll::Pending));
    let began = Instant::now();
    let call = tokio::time::timeout(ms(5000), client.oneshot(get()));
    let error = call.await.expect("the call is over").unwrap_err();
    assert_eq!((error.attempt, server.count(), began.elapsed().as_millis()), (1, 1, 700));
}

// trap 09
#[tokio::test(start_paused = true)]
async fn readiness_wait_ends_with_deadline() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = RetryLayer::new(policy()).layer(gated(&server, || Poll::Pending));
    let began = Instant::now();
    let call = client.oneshot(get().with(Deadline::after(ms(300))));
    let call = tokio::time::timeout(ms(5000), call);
    let error = call.await.expect("the call is over").unwrap_err();
    assert_eq!((error.attempt, began.elapsed().as_millis()), (1, 300));
}

// trap 09
#[tokio::test(start_paused = true)]
async fn boxed_error_names_limit_of_readiness() {
    let cases = [(None, 700, TimeLimit::Elapsed), (Some(300), 300, TimeLimit::Deadline)];
    for (deadline, ends, limit) in cases {
        let server = Server::statuses([503]);
        let policy = policy().max_elapsed(ms(700)).boxed_errors();
        let client = RetryLayer::new(policy).layer(gated(&server, || Poll::Pending));
        // Not at a whole millisecond of the clock, where a timer could fire at once.
        advance(std::time::Duration::from_micros(1500)).await;
        let mut request = get();
        if let Some(deadline) = deadline {
            request = request.with(Deadline::after(ms(deadline)));
        }
        let began = Instant::now();
        let call = tokio::time::timeout(ms(5000), client.oneshot(request));
        let error = call.await.expect("the call is over").unwrap_err();
        let timed_out = error.downcast_ref::<TimedOut>().unwrap();
        assert_eq!(timed_out.limit(), limit);
        assert_eq!(timed_out.refused().unwrap().status, 503);
        assert!(began.elapsed() - ms(ends) <= ms(2), "{:?}", began.elapsed());
        assert!(timed_out.after() - ms(ends) <= ms(2), "{:?}", timed_out.after());
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_is_awaited_without_outcome() {
    let server = Server::statuses([503, 200]);
    let open = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&open);
    let gate = move || if *seen.lock().unwrap() { Poll::Ready(Ok(())) } else { Poll::Pending };
    let client = RetryLayer::new(policy().max_elapsed(ms(700))).layer(gated(&server, gate));
    let mut call = task::spawn(client.oneshot(get()));
    for _ in 0..20 {
        assert_pending!(call.poll());
        advance(ms(100)).await;
    }
    assert_eq!(server.count(), 1);
    *open.lock().unwrap() = true;
    assert_eq!(assert_ready_ok!(call.poll()).status(), 200, "the next real thing");
}

#[tokio::test(start_paused = true)]
async fn service_ready_in_time_is_called() {
    let server = Server::by(|arrival, _| if arrival == 1 { ConnectionReset.into() } else { 200.into() });
    let open = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&open);
    let gate = move || if *seen.lock().unwrap() { Poll::Ready(Ok(())) } else { Poll::Pending };
    let client = RetryLayer::new(policy().max_elapsed(ms(700))).layer(gated(&server, gate));
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    advance(ms(400)).await;
    assert_pending!(call.poll());
    assert_eq!(server.count(), 1);
    *open.lock().unwrap() = true;
    assert_eq!(assert_ready_ok!(call.poll()).status(), 200);
    assert_eq!(server.times(), [0, 500]);
}

#[tokio::test(start_paused = true)]
async fn client_readiness_is_inner_readiness() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(0);
    let mut client = RetryLayer::new(policy().boxed_errors()).layer(service);
    assert_pending!(task::spawn(client.ready()).poll());
    handle.allow(1);
    drop(assert_ready_ok!(task::spawn(client.ready()).poll()).call(get()));
    handle.send_error("out of order");
    let error = assert_ready_err!(task::spawn(client.ready()).poll());
    assert_eq!(error.to_string(), "out of order");
}

#[tokio::test(start_paused = true)]
async fn the_type_of_a_client_can_be_named() {
    let client: reattempt::Retry<Server, Policy> = RetryLayer::new(policy()).layer(Server::by(|_, _| Act::from(200)));
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
}
