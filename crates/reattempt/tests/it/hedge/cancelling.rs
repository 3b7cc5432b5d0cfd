//! Tests of dropped calls and panicking services: whatever was taken is returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_replay::ReplayBody;
use tokio::time::{advance, sleep};
use tokio_test::task;
use tower::{Layer, Service, ServiceExt};

use crate::hedge::policy;
use crate::hedge::support::{Body, get, ms, tokens};

/// A service that takes some polls to become ready and some time to respond. It counts what is in flight.
#[derive(Clone)]
struct Slow {
    polls: u32,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    calls: AtomicUsize,
    under_way: AtomicUsize,
    /// The number of the call that panics, if one does.
    panics: usize,
}

struct UnderWay(Arc<State>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Slow {
    fn new(panics: usize) -> Self {
        Self { polls: 0, state: Arc::new(State { panics, ..State::default() }) }
    }

    fn calls(&self) -> usize {
        self.state.calls.load(Ordering::SeqCst)
    }

    fn under_way(&self) -> usize {
        self.state.under_way.load(Ordering::SeqCst)
    }
}

impl Service<Request<ReplayBody<Body>>> for Slow {
    type Response = Response<Empty<Bytes>>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.polls += 1;
        if self.polls.is_multiple_of(4) {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<ReplayBody<Body>>) -> Self::Future {
        let number = self.state.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.state.under_way.fetch_add(1, Ordering::SeqCst);
        let held = UnderWay(Arc::clone(&self.state));
        Box::pin(async move {
            assert_ne!(number, held.0.panics, "as the test wants it");
            sleep(ms(250)).await;
            drop(held);
            Ok(Response::new(Empty::new()))
        })
    }
}

fn hedged(slow: &Slow) -> (impl Service<Request<Body>, Future: Send> + Clone + use<>, HedgePolicy) {
    let policy = policy().budget(tokens(5.0));
    (HedgeLayer::new(policy.clone()).layer(slow.clone()), policy)
}

/// Returns the tokens taken from the budget by a call that is over or dropped.
fn taken(policy: &HedgePolicy) -> f64 {
    5.0 - policy.budget_ref().balance("one.example")
}

#[tokio::test(start_paused = true)]
async fn dropped_call_cancels_all_and_keeps_none() {
    let mut points = 0;
    for polls in 0.. {
        let slow = Slow::new(0);
        let (client, policy) = hedged(&slow);
        let mut call = task::spawn(client.oneshot(get()));
        let ended = loop_for(polls, &mut call).await;
        let sent = slow.calls();
        drop(call);
        assert_eq!(slow.under_way(), 0, "after {polls} polls");
        if ended {
            break;
        }
        assert!((taken(&policy) - sent.saturating_sub(1) as f64).abs() < 1e-6, "{polls}, {sent}");
        points += 1;
    }
    assert!(points > 15, "{points}");
}

/// Polls this many times, 10 ms apart. Returns `true` if the call has ended.
async fn loop_for<F: Future>(polls: usize, call: &mut task::Spawn<F>) -> bool {
    for _ in 0..polls {
        if call.poll().is_ready() {
            return true;
        }
        advance(ms(10)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn panicking_attempt_ends_its_call_alone() {
    for panics in [1, 2] {
        let slow = Slow::new(panics);
        let (client, policy) = hedged(&slow);
        let mut call = task::spawn(client.clone().oneshot(get()));
        while let Ok(ended) = catch_unwind(AssertUnwindSafe(|| call.poll().is_ready())) {
            assert!(!ended, "it panics before there is an answer");
            advance(ms(10)).await;
        }
        assert_eq!(slow.calls(), panics);
        drop(call);
        assert_eq!(slow.under_way(), 0);
        assert!((taken(&policy) - (panics - 1) as f64).abs() < 1e-6);
        assert!(client.oneshot(get()).await.is_ok(), "the client goes on");
    }
}
