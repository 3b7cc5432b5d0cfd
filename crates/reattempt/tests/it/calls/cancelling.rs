//! Tests that dropping a call drops everything that belongs to it: attempt, timer, hook, body and token.

use std::io::ErrorKind::ConnectionReset;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::Request;
use reattempt::RetryLayer;
use reattempt::retry::AttemptContext;
use reattempt_control::RetryBudget;
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt};

use crate::calls::support::{Act, Answer, Body, Broken, Server, get, ms, policy, put, tokens};

fn balance(budget: &RetryBudget) -> f64 {
    budget.balance("one.example")
}

// trap 11
#[tokio::test(start_paused = true)]
async fn drop_in_wait_gives_token_back() {
    let server = Server::statuses([503]);
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    assert_eq!(balance(&budget), 9.0, "taken when it was decided");
    advance(ms(50)).await;
    assert_pending!(call.poll());
    drop(call);
    assert_eq!((balance(&budget), server.count()), (10.0, 1));
    advance(ms(1000)).await;
    assert_eq!(server.count(), 1);
}

// trap 11
#[tokio::test(start_paused = true)]
async fn sent_retry_keeps_token() {
    let server = Server::by(|arrival, _| if arrival == 1 { 503.into() } else { Act::Hang });
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_eq!(server.count(), 2);
    drop(call);
    assert_eq!((balance(&budget), server.cancelled()), (9.0, 1));
}

// trap 11
#[tokio::test(start_paused = true)]
async fn drop_in_hook_gives_token_back() {
    let server = Server::statuses([503]);
    let budget = tokens(10.0);
    let hooks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hooks);
    let policy =
        policy().budget(budget.clone()).before_attempt(move |_: &mut http::request::Parts, attempt: AttemptContext| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                if attempt.number > 1 {
                    std::future::pending::<()>().await;
                }
            })
        });
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_eq!((hooks.load(Ordering::SeqCst), server.count(), balance(&budget)), (2, 1, 9.0));
    drop(call);
    assert_eq!(balance(&budget), 10.0);
}

/// A service that is ready once, and then as `readiness` decides.
#[derive(Clone)]
struct Once {
    server: Server,
    used: Arc<AtomicBool>,
    fails: bool,
}

impl Service<Request<ReplayBody<Body>>> for Once {
    type Response = Answer;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Broken>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match self.used.swap(true, Ordering::SeqCst) {
            false => Service::<Request<ReplayBody<Body>>>::poll_ready(&mut self.server, cx),
            true if self.fails => Poll::Ready(Err(Broken::new(0, "no longer there"))),
            true => Poll::Pending,
        }
    }

    fn call(&mut self, request: Request<ReplayBody<Body>>) -> Self::Future {
        self.server.call(request)
    }
}

fn once(server: &Server, fails: bool) -> Once {
    Once { server: server.clone(), used: Arc::default(), fails }
}

// trap 11
#[tokio::test(start_paused = true)]
async fn drop_in_readiness_gives_token_back() {
    let server = Server::statuses([503]);
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(once(&server, false));
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(200)).await;
    assert_pending!(call.poll());
    assert_eq!(balance(&budget), 9.0);
    drop(call);
    assert_eq!((balance(&budget), server.count()), (10.0, 1));
}

// trap 11
#[tokio::test(start_paused = true)]
async fn readiness_error_gives_token_back() {
    for act in [|| Act::from(503), || Act::Fail(ConnectionReset)] {
        let server = Server::by(move |_, _| act());
        let budget = tokens(10.0);
        let client = RetryLayer::new(policy().budget(budget.clone())).layer(once(&server, true));
        let mut call = task::spawn(client.oneshot(get()));
        assert_pending!(call.poll());
        advance(ms(100)).await;
        assert_ready!(call.poll()).unwrap_err();
        assert_eq!(balance(&budget), 10.0, "before the future is dropped, for that may be late");
    }
}

// trap 11
#[tokio::test(start_paused = true)]
async fn late_readiness_gives_token_back() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let budget = tokens(10.0);
    let policy = policy().budget(budget.clone()).max_elapsed(ms(500));
    let mut call = task::spawn(RetryLayer::new(policy).layer(once(&server, false)).oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    advance(ms(400)).await;
    assert_ready!(call.poll()).unwrap_err();
    assert_eq!(balance(&budget), 10.0);
}

/// Runs a call that is slow in every way and drops it after this many polls. Returns `true` if it had ended.
async fn dropped_after(polls: usize) -> bool {
    let memory = ReplayMemory::new(1 << 20);
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(10)),
        2 => Act::Fail(ConnectionReset).later(ms(10)),
        _ => Act::from(200).later(ms(10)),
    });
    let budget = tokens(10.0);
    let policy = policy()
        .budget(budget.clone())
        .protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())))
        .attempt_timeout(ms(1000))
        .before_attempt(|_: &mut http::request::Parts, _| Box::pin(async { tokio::time::sleep(ms(10)).await }));
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut call = task::spawn(client.oneshot(put()));
    let mut ended = false;
    for _ in 0..polls {
        if call.poll().is_ready() {
            ended = true;
            break;
        }
        advance(ms(5)).await;
    }
    drop(call);
    let sent = server.count();
    assert_eq!(memory.used(), 0, "after {polls} polls a body is still kept");
    // The instance that was readied for the call is released before the hook runs.
    assert_eq!(server.unused(), usize::from(polls > 0), "after {polls} polls");
    let paid = 10.0 - balance(&budget);
    let credit = if ended { 0.1 } else { 0.0 };
    let retries = sent.saturating_sub(1) as f64;
    assert!((paid - (retries - credit)).abs() < 1e-9, "after {polls} polls: {retries} retries, {paid} paid");
    advance(ms(10_000)).await;
    assert_eq!(server.count(), sent, "after {polls} polls something was sent after the end");
    ended
}

// trap 11
#[tokio::test(start_paused = true)]
async fn drop_at_any_moment_leaves_nothing() {
    let mut polls = 0;
    while !dropped_after(polls).await {
        polls += 1;
        assert!(polls < 1000, "the call never ends");
    }
    assert!(polls > 50, "every stage was met: {polls}");
}
