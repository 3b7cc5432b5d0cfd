//! Tests of retried calls: which endpoints get their attempts, and when.

use std::collections::HashSet;

use http::StatusCode;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{CircuitBreaker, GuardLayer, Refused};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryBudget, RetryLayer, StopReason};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Cluster, Does, Empty, WELL, get, policy, post};
use tokio::time::Instant;
use tower::Layer;

/// Each attempt goes to an endpoint that the call has not tried, whatever the responses.
// E-1
#[tokio::test(start_paused = true)]
async fn retries_go_to_untried_endpoints() {
    // A 408 does not change the price, so the trail alone decides.
    // The first attempt moves from the first of the two that refuse.
    for (servers, does, attempts) in
        [(2, Does::Refuse, 9), (3, Does::Status(408), 8), (5, Does::Reset, 8), (8, Does::Status(408), 8)]
    {
        let cluster = Cluster::of(vec![does; servers]);
        let budget = RetryBudget::unlimited();
        let layer = RetryLayer::new(policy(8).budget(budget));
        let client = layer.layer(cluster.list().without_ejections().http());
        for _ in 0..20 {
            let _ = client.send(get()).await;
            let seen = cluster.seen();
            assert_eq!(seen.len(), attempts);
            let before: HashSet<_> = seen[..servers].iter().collect();
            assert_eq!(before.len(), servers, "{does:?}: {seen:?}");
        }
    }
}

/// Without a response, the next attempt is sent at once if an untried endpoint is left. After a response, or when all
/// were tried, it waits: for its own delay, or at an endpoint that asked for one, for that.
// E-1, E-18, C-3, C-13
#[tokio::test(start_paused = true)]
async fn unanswered_is_sent_elsewhere_at_once() {
    for (does, waits) in [
        // Two moves and four attempts.
        (Does::Refuse, &[0, 0, 1, 1, 1][..]),
        (Does::Reset, &[0, 0, 1]),
        (Does::Status(503), &[1, 1, 1]),
        (Does::Busy(7), &[1, 1, 7]),
    ] {
        let cluster = Cluster::of([does; 3]);
        let client = RetryLayer::new(policy(4)).layer(cluster.balanced());
        let _ = client.send(get()).await;
        let times = cluster.times();
        let waited = times.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_secs());
        assert_eq!(waited.collect::<Vec<_>>(), waits, "{does:?}");
    }
}

/// A retry at another endpoint costs a token like any other, if the server may have processed the attempt.
// E-18
#[tokio::test(start_paused = true)]
async fn retry_elsewhere_takes_a_token() {
    let cluster = Cluster::of([Does::Reset; 3]);
    let slot = ReportSlot::default();
    let policy = policy(4).budget(Empty);
    let client = RetryLayer::new(policy).layer(cluster.balanced());
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    client.send(request).await.unwrap_err();
    assert_eq!(cluster.seen().len(), 1);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::BudgetExhausted);
}

/// A dead endpoint costs neither a call nor a delay.
#[tokio::test(start_paused = true)]
async fn dead_endpoint_costs_no_call() {
    let cluster = Cluster::of([Does::Refuse, WELL, WELL]);
    let client = RetryLayer::new(policy(3)).layer(cluster.balanced());
    let started = Instant::now();
    for _ in 0..200 {
        assert_eq!(client.send(post()).await.unwrap().status(), StatusCode::OK);
    }
    assert!(started.elapsed() < secs(3), "{:?}", started.elapsed());
    let dead = cluster.seen().iter().filter(|name| *name == "0").count();
    assert!((1..=5).contains(&dead), "{dead}");
}

/// Another server is not proof: a request that may have been processed is not repeated there.
// E-2
#[tokio::test(start_paused = true)]
async fn keyless_post_is_processed_once() {
    // Three moves and four attempts.
    for (does, attempts) in [(Does::Reset, 1), (Does::Status(500), 1), (Does::Hang, 1), (Does::Refuse, 7)] {
        let cluster = Cluster::of([does; 4]);
        let layer = RetryLayer::new(policy(4).attempt_timeout(secs(1)));
        let _ = layer.layer(cluster.balanced()).send(post()).await;
        assert_eq!(cluster.seen().len(), attempts, "{does:?}");
    }
}

/// A timeout is a failure of the endpoint, whichever layer sets the limit, and the retry goes to another endpoint.
// E-3
#[tokio::test(start_paused = true)]
async fn retry_after_timeout_goes_elsewhere() {
    for outer in [true, false] {
        let cluster = Cluster::of([Does::Hang, WELL]);
        let balanced = cluster.list();
        let (policy, balanced) = match outer {
            true => (policy(2).attempt_timeout(secs(1)), balanced),
            false => (policy(2), balanced.attempt_timeout(secs(1))),
        };
        let balanced = balanced.http();
        let handle = balanced.endpoints();
        let client = RetryLayer::new(policy).layer(balanced);
        for _ in 0..40 {
            assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::OK);
        }
        let hanging = cluster.seen().iter().filter(|name| *name == "0").count();
        assert!((1..=6).contains(&hanging), "{hanging} calls to the one that hangs");
        let view = handle.view();
        assert!(view[0].failing > 0.1 && view[0].in_flight == 0, "{view:?}");
        assert_eq!(view[1].failing, 0.0);
    }
}

/// If one endpoint's guard refuses, the attempt is sent to another one at once, under the same number and permit.
// E-18
#[tokio::test(start_paused = true)]
async fn refusal_below_is_sent_elsewhere() {
    let cluster = Cluster::of([WELL, WELL]);
    let breakers: Vec<_> = (0..2).map(|_| CircuitBreaker::rate()).collect();
    breakers[0].isolate("service").unwrap();
    let (nodes, guards) = (cluster.clone(), breakers.clone());
    let endpoints = reattempt::endpoints::Endpoints::list([0_usize, 1]).unwrap();
    let balanced =
        endpoints.connect(move |number| GuardLayer::http(guards[number].clone()).layer(nodes.client(number)));
    let policy = policy(3).budget(Empty);
    let client = RetryLayer::new(policy).layer(balanced.http());
    for _ in 0..20 {
        let started = Instant::now();
        assert_eq!(client.send(post()).await.unwrap().status(), StatusCode::OK);
        assert_eq!(started.elapsed().as_millis(), 10);
    }
    assert!(cluster.seen().iter().all(|name| name == "1"));
    for breaker in &breakers {
        breaker.isolate("service").unwrap();
    }
    let error = client.send(post()).await.unwrap_err();
    assert!(error.downcast_ref::<Refused>().is_some(), "{error}");
}

/// If a guard makes an attempt wait, it is sent later. It still goes to another endpoint, and the layer above records
/// which.
// E-1
#[tokio::test(start_paused = true)]
async fn attempt_sent_late_is_followed() {
    use reattempt::guard::{Limit, RateLimit};
    let cluster = Cluster::of([Does::Refuse; 3]);
    let limit = RateLimit::new(Limit::per_second(1), 1).queue(8, secs(9));
    let guarded = GuardLayer::http(limit).layer(cluster.list().without_ejections().http());
    let policy = policy(3).budget(RetryBudget::unlimited());
    let client = RetryLayer::new(policy).layer(guarded);
    for _ in 0..10 {
        client.send(get()).await.unwrap_err();
        let seen = cluster.seen();
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 3, "{seen:?}");
    }
}

/// A readiness error is an outcome like any other, so the call does not wait for other endpoints. tower's balancer
/// drops the endpoint for good (tower#856).
// E-17
#[tokio::test(start_paused = true)]
async fn unready_endpoint_is_a_failed_attempt() {
    let cluster = Cluster::of([Does::FailReady, WELL]);
    let client = RetryLayer::new(policy(2)).layer(cluster.balanced());
    for _ in 0..20 {
        assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::OK);
    }
    let never = Cluster::of([Does::NeverReady, WELL]);
    let layer = RetryLayer::new(policy(2).attempt_timeout(secs(1)));
    let client = layer.layer(never.balanced());
    for _ in 0..20 {
        assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::OK);
    }
}

/// A server that accepts calls and never answers costs one call, whose caller gives up, and not each second one: the
/// wait is a lower bound of its latency. A client that is never ready costs none, because another one is asked.
// P-7, R-1, field 33, trap 69
#[tokio::test(start_paused = true)]
async fn silent_endpoint_costs_few_calls() {
    for (silent, costs) in [(Does::NeverReady, 0..=0), (Does::Hang, 1..=2)] {
        let cluster = Cluster::of([silent, WELL]);
        let client = cluster.balanced();
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let client = client.clone();
            calls.spawn(async move { tokio::time::timeout(secs(1), client.send(get())).await.is_err() });
            tokio::time::sleep(ms(50)).await;
        }
        let lost = calls.join_all().await.into_iter().filter(|is_lost| *is_lost).count();
        assert!(costs.contains(&lost), "{lost} with {silent:?}");
    }
}
