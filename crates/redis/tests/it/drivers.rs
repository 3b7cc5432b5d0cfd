//! Tests of the drivers that cannot hold an outcome: the stock policy and threads. They send the retry, and its tokens
//! are taken. Their next retry is refused if this one was.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::body::ReplayLimits;
use reattempt::operation::retry_blocking;
use reattempt::schedule::Constant;
use reattempt::{ReplayBody, RetryPolicy};
use reattempt_redis::rule::TOKEN;
use reattempt_redis::{BudgetStore, FleetBudget, MemoryStore, Settling};
use tower::{ServiceBuilder, ServiceExt, service_fn};

/// A store with one answer. It counts the tokens requested.
#[derive(Clone)]
struct Fixed {
    answer: bool,
    requested: Arc<AtomicU64>,
}

impl Fixed {
    fn new(answer: bool) -> Self {
        Self { answer, requested: Arc::default() }
    }
}

impl BudgetStore for Fixed {
    fn settle<'a>(&'a self, _: &'a str, _: u64, cost: u64, _: u64) -> Settling<'a> {
        self.requested.fetch_add(cost, Ordering::Relaxed);
        Box::pin(async { Ok(self.answer) })
    }
}

/// Sends a call whose attempts all fail, with at most one retry, through tower's own retry layer. Returns the number of
/// attempts.
async fn stock(budget: &FleetBudget) -> u64 {
    let sent = AtomicU64::new(0);
    let policy = RetryPolicy::http().max_attempts(2).backoff(Constant::immediate()).budget(budget.clone());
    let client = ServiceBuilder::new()
        .map_request(|request: Request<_>| request.map(|body| ReplayBody::new(body, &ReplayLimits::default())))
        .retry(policy.stock())
        .service(service_fn(|_: Request<ReplayBody<Empty<Bytes>>>| {
            sent.fetch_add(1, Ordering::Relaxed);
            let refusal = Response::builder().status(503).body(Empty::<Bytes>::new());
            async { Ok::<_, Infallible>(refusal.unwrap()) }
        }));
    let request = Request::get("http://a.example/").body(Empty::new()).unwrap();
    assert_eq!(client.oneshot(request).await.unwrap().status(), 503);
    sent.into_inner()
}

/// Runs an operation that always fails on the present thread. Returns the number of attempts.
fn blocking(budget: &FleetBudget) -> u64 {
    let policy = RetryPolicy::operations().max_attempts(2).backoff(Constant::immediate()).budget(budget.clone());
    let mut sent = 0;
    let failing = || {
        sent += 1;
        Err::<(), _>("no")
    };
    retry_blocking(policy, failing).call_with(|_| {}).unwrap_err();
    sent
}

async fn settles() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn stock_policy_sends_and_remembers() {
    let store = Fixed::new(false);
    let budget = FleetBudget::new(store.clone());
    assert_eq!(stock(&budget).await, 2, "it does not wait for the answer");
    settles().await;
    assert_eq!((store.requested.load(Ordering::Relaxed), budget.stats().refused), (TOKEN, 1));
    assert_eq!(stock(&budget).await, 1, "the refusal is remembered");
    assert_eq!((budget.stats().asked, budget.stats().remembered), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn retry_of_the_stock_policy_is_debited() {
    let store = MemoryStore::new();
    let budget = FleetBudget::new(store.clone());
    assert_eq!(stock(&budget).await, 2);
    settles().await;
    let has = async |tokens| store.settle("reattempt:2:a.example", 0, tokens * TOKEN, 0).await.unwrap();
    assert!(!has(10).await && has(9).await);
}

#[tokio::test(start_paused = true)]
async fn blocking_retry_is_sent_and_remembered() {
    let store = Fixed::new(false);
    let budget = FleetBudget::new(store.clone());
    assert_eq!(blocking(&budget), 2);
    settles().await;
    assert_eq!((store.requested.load(Ordering::Relaxed), budget.stats().refused), (TOKEN, 1));
    assert_eq!(blocking(&budget), 1);
    assert_eq!((budget.stats().asked, budget.stats().remembered), (1, 1));
}

/// A thread outside of a runtime has nothing that carries a question, so its process decides alone.
#[test]
fn thread_without_a_runtime_is_alone() {
    let store = Fixed::new(false);
    let budget = FleetBudget::new(store.clone());
    assert_eq!((blocking(&budget), budget.stats().alone), (2, 1));
    assert_eq!(store.requested.load(Ordering::Relaxed), 0);
}
