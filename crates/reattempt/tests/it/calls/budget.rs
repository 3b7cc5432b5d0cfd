//! Tests of the budget that must grant every retry.

use std::io;
use std::io::ErrorKind::ConnectionReset;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{RetryLayer, RetryPolicy, retry};
use reattempt_core::{Budget, Failure, Permit, PermitIssuer, StopReason, Unlimited, Verdict};
use reattempt_replay::{ReplayBody, ReplayLimits};
use tokio::task::JoinSet;
use tokio_test::{assert_ready, task};
use tower::retry::RetryLayer as StockLayer;
use tower::{Layer, ServiceExt};

use crate::calls::support::{
    Act, ONE, Server, TWO, With, answer, failing, get, ms, options, policy, post, report_of, request, server_failure,
    tokens, transient,
};

#[tokio::test(start_paused = true)]
async fn retry_takes_token_and_success_adds_tenth() {
    let server = Server::statuses([503, 503, 200]);
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server);
    client.clone().oneshot(get()).await.unwrap();
    assert!((budget.balance("one.example") - 8.1).abs() < 1e-9);
    for _ in 0..5 {
        client.clone().oneshot(get()).await.unwrap();
    }
    assert!((budget.balance("one.example") - 8.6).abs() < 1e-9);
}

// trap 14
#[tokio::test(start_paused = true)]
async fn permanent_failures_alone_are_credited() {
    let server = Server::by(|arrival, _| match arrival {
        1..=3 => 503.into(),
        4 => 404.into(),
        _ => 503.into(),
    });
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server);
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(budget.balance("one.example"), 8.0);
    client.clone().oneshot(get()).await.unwrap();
    assert!((budget.balance("one.example") - 8.1).abs() < 1e-9, "the host is there: it answered 404");
    client.oneshot(post()).await.unwrap();
    assert!((budget.balance("one.example") - 8.1).abs() < 1e-9, "a 503 not retried is a 503 still");
}

/// Half of the errors are of a type that the layer does not know, so they end their calls at once.
// trap 39
#[tokio::test(start_paused = true)]
async fn outage_of_unknown_errors_pays_no_retry() {
    let server = Server::by(|arrival, _| match arrival % 2 {
        0 => ConnectionReset.into(),
        _ => Act::Error(io::Error::other("of an unknown type")),
    });
    let client = RetryLayer::new(policy().budget(tokens(10.0))).layer(server.clone());
    for _ in 0..10_000 {
        client.clone().oneshot(get()).await.unwrap_err();
    }
    assert_eq!(server.count(), 10_000 + 10);
}

/// An error earns no credit, even if a classifier considers it a success, or if it comes from the caller's own body.
// trap 39
#[tokio::test(start_paused = true)]
async fn error_of_any_verdict_earns_no_credit() {
    let verdicts = [Verdict::Success, Verdict::Permanent, transient(1)];
    for verdict in verdicts {
        let server = Server::by(|_, _| Act::Error(io::Error::other("of an unknown type")));
        let budget = tokens(10.0);
        let policy = policy().max_attempts(2).protocol(|http| http.classify(move |_| Some(verdict)));
        let client = RetryLayer::new(policy.budget(budget.clone())).layer(server);
        drop(budget.acquire("one.example", &server_failure(503), ms(0)).unwrap().spend());
        client.oneshot(get()).await.unwrap_err();
        assert!(budget.balance("one.example") <= 9.0, "{verdict:?}");
    }
    let budget = tokens(10.0);
    let server = Server::statuses([200]);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server);
    drop(budget.acquire("one.example", &server_failure(503), ms(0)).unwrap().spend());
    let put = Request::put(ONE).body(failing()).unwrap();
    client.oneshot(put).await.unwrap_err();
    assert_eq!(budget.balance("one.example"), 9.0);
}

// trap 15
#[tokio::test(start_paused = true)]
async fn one_destination_does_not_starve_another() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().budget(tokens(3.0))).layer(server.clone());
    for _ in 0..10 {
        client.clone().oneshot(request("GET", ONE, "")).await.unwrap();
    }
    assert_eq!(server.count(), 10 + 3);
    client.oneshot(request("GET", TWO, "")).await.unwrap();
    assert_eq!(server.count(), 10 + 3 + 3);
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_budget_can_be_chosen() {
    let server = Server::statuses([503]);
    let policy = policy().budget(tokens(3.0)).protocol(|http| http.destination(|_| "cluster".into()));
    let client = RetryLayer::new(policy).layer(server.clone());
    for uri in [ONE, TWO, ONE, TWO] {
        client.clone().oneshot(request("GET", uri, "")).await.unwrap();
    }
    assert_eq!(server.count(), 4 + 3);
    assert_eq!(client.policy().budget_ref().balance("cluster"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn host_field_is_destination_if_asked() {
    let server = Server::statuses([503]);
    let budget = tokens(10.0);
    let policy = policy().protocol(|http| http.destination_by_host(true));
    let client = RetryLayer::new(policy.budget(budget.clone())).layer(server);
    let mut request = request("GET", "/path", "");
    request.headers_mut().insert("host", "three.example".parse().unwrap());
    client.oneshot(request).await.unwrap();
    assert_eq!(budget.balance("three.example"), 8.0);
}

// trap 16
#[tokio::test(start_paused = true)]
async fn empty_budget_returns_outcome_at_once() {
    let server = Server::by(|_, _| Act::Answer(answer(503, "the last word")));
    let client = RetryLayer::new(policy().budget(tokens(1.0))).layer(server.clone());
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 2);
    let mut call = task::spawn(client.clone().oneshot(get()));
    let response = assert_ready!(call.poll(), "without any sleeping").unwrap();
    assert_eq!(report_of(&response).stop_reason(), StopReason::BudgetExhausted);
    let body = assert_ready!(task::spawn(response.into_body().collect()).poll()).unwrap();
    assert_eq!((body.to_bytes(), server.count()), ("the last word".into(), 3));
    assert_eq!(client.policy().budget_ref().refusals(), 2);
}

// trap 16
#[tokio::test(start_paused = true)]
async fn trap_16_error_is_handed_back_at_once_too() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = RetryLayer::new(policy().budget(tokens(1.0))).layer(server.clone());
    client.clone().oneshot(get()).await.unwrap_err();
    let mut call = task::spawn(client.oneshot(get()));
    assert_eq!(assert_ready!(call.poll()).unwrap_err().attempt, 3);
}

#[tokio::test(start_paused = true)]
async fn call_refused_otherwise_takes_no_token() {
    let server = Server::by(|_, _| Act::from(503).header("retry-after", "3600"));
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server);
    client.clone().oneshot(get()).await.unwrap();
    client.oneshot(post()).await.unwrap();
    assert_eq!((budget.balance("one.example"), budget.refusals()), (10.0, 0));
}

// trap 13
#[tokio::test(start_paused = true)]
async fn two_hundred_calls_spend_what_there_is() {
    let server = Server::statuses([503]);
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server.clone());
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        calls.spawn(client.clone().oneshot(get()));
    }
    calls.join_all().await;
    assert_eq!(server.count(), 200 + 10);
    assert_eq!(budget.balance("one.example"), 0.0);
}

// trap 13
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn trap_13_on_several_threads_too() {
    for _ in 0..20 {
        // One call in four succeeds at the first attempt and adds a tenth of a token.
        let server = Server::by(|_, head| match head.headers.contains_key("good") {
            true => 200.into(),
            false => 503.into(),
        });
        let policy = policy().backoff(reattempt_schedule_fixed::Constant::new(std::time::Duration::ZERO));
        let client = RetryLayer::new(policy.budget(tokens(10.0))).layer(server.clone());
        let mut calls = JoinSet::new();
        for number in 0..200 {
            let mut request = get();
            if number % 4 == 0 {
                request.headers_mut().insert("good", "yes".parse().unwrap());
            }
            calls.spawn(client.clone().oneshot(request));
        }
        calls.join_all().await;
        let retries = server.count() - 200;
        // 10 at the start and at most 5 from 50 successes.
        assert!((10..=15).contains(&retries), "{retries}");
        let left = client.policy().budget_ref().balance("one.example");
        assert!(left >= 0.0 && retries as f64 + left <= 15.0 + 1e-9, "{retries} and {left}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_every_retry_is_granted() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().budget(Unlimited)).layer(server.clone());
    for _ in 0..50 {
        client.clone().oneshot(get()).await.unwrap();
    }
    assert_eq!(server.count(), 150);
}

#[tokio::test(start_paused = true)]
async fn one_host_has_one_bucket() {
    let server = Server::statuses([503]);
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server);
    for uri in ["http://one.example/", "http://ONE.example:80/", "http://user:secret@one.example/"] {
        client.clone().oneshot(request("GET", uri, "")).await.unwrap();
    }
    client.clone().oneshot(request("GET", "http://one.example:8080/", "")).await.unwrap();
    assert_eq!((budget.balance("one.example"), budget.balance("one.example:8080")), (4.0, 8.0));
    assert_eq!(budget.destinations().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn success_of_unretryable_call_is_credited() {
    let server = Server::statuses([503, 503, 503, 200]);
    let budget = tokens(10.0);
    let client = RetryLayer::new(policy().budget(budget.clone())).layer(server);
    client.clone().oneshot(get()).await.unwrap();
    client.oneshot(get().with(options().never_retry())).await.unwrap();
    assert!((budget.balance("one.example") - 8.1).abs() < 1e-9);
}

/// A budget that counts the retries in flight.
#[derive(Clone, Default)]
struct InFlight(Arc<AtomicU32>);

impl PermitIssuer for InFlight {
    fn give_back(&self, _: u32) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn on_retry_end(&self, cost: u32, _: bool) {
        self.give_back(cost);
    }
}

impl InFlight {
    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Budget for InFlight {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(Permit::new(Arc::new(self.clone()), 1))
    }
}

/// Drives a call with attempts of 10 ms to its end, and another one until it is dropped. Its second attempt is sent
/// after `again` milliseconds.
async fn assert_counted<F: Future>(budget: &InFlight, again: u64, call: impl Fn() -> F) {
    for is_dropped in [false, true] {
        let mut call = task::spawn(call());
        assert!(call.poll().is_pending());
        assert_eq!(budget.count(), 0);
        tokio::time::advance(ms(again)).await;
        assert!(call.poll().is_pending());
        assert_eq!(budget.count(), 1, "its retry is under way");
        match is_dropped {
            true => drop(call),
            false => drop(call.await),
        }
        assert_eq!(budget.count(), 0);
    }
}

/// SPEC §7: a budget can count the retries in flight, however they end and whichever layer sends them.
#[tokio::test(start_paused = true)]
async fn budget_counts_what_is_under_way() {
    let budget = InFlight::default();
    let server = || Server::by(move |_, _| Act::from(503).later(ms(10)));
    let retry_policy = policy().max_attempts(2).budget(budget.clone());
    let client = RetryLayer::new(retry_policy.clone()).layer(server());
    assert_counted(&budget, 10, || client.clone().oneshot(get())).await;

    let hedge = HedgePolicy::http().max_attempts(2).delay(ms(5)).budget(budget.clone());
    let client = HedgeLayer::new(hedge).layer(server());
    assert_counted(&budget, 5, || client.clone().oneshot(get())).await;

    let replayable = || get().map(|body| ReplayBody::new(body, &ReplayLimits::default()));
    let client = StockLayer::new(retry_policy.stock()).layer(server());
    assert_counted(&budget, 10, || client.clone().oneshot(replayable())).await;

    let operations = RetryPolicy::operations().max_attempts(2).budget(budget.clone());
    let operation = || async {
        tokio::time::sleep(ms(10)).await;
        Err::<(), _>("not there")
    };
    let call = || std::future::IntoFuture::into_future(retry(&operations, operation));
    assert_counted(&budget, 10, call).await;
}
