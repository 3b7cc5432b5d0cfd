//! Tests of hedged calls, which never send two attempts to one endpoint.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, StatusCode};
use reattempt::RetryBudget;
use reattempt::endpoints::EndpointsLayer;
use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind};
use reattempt::guard::{Bulkhead, GuardLayer, Reason, Refused};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Cluster, Does, WELL, get};
use tokio::time::sleep;
use tower::Layer;

/// A hedge goes to an endpoint without an attempt of its call, at once or later, with or without a failure. An attempt
/// that finds no connection moves only to such an endpoint, too.
// E-3, C-3
#[tokio::test(start_paused = true)]
async fn hedges_go_to_untried_endpoints() {
    for delay in [Duration::ZERO, ms(5)] {
        for does in [Does::Hang, Does::Answer(ms(50)), Does::Refuse] {
            let cluster = Cluster::of([does; 4]);
            let policy = HedgePolicy::http().delay(delay).max_attempts(4);
            let policy = policy.budget(RetryBudget::unlimited()).boxed_errors();
            let client = HedgeLayer::new(policy).layer(cluster.list().without_ejections().http());
            for _ in 0..10 {
                let _ = tokio::time::timeout(ms(100), client.send(get())).await;
                let seen = cluster.seen();
                let distinct = seen.iter().collect::<HashSet<_>>().len();
                // Attempts move as long as an endpoint is left that none of them has tried.
                let moves = if does == Does::Refuse { 1..=3 } else { 0..=0 };
                assert!(distinct == 4 && moves.contains(&(seen.len() - 4)), "{does:?}: {seen:?}");
                assert_eq!(seen[..4].iter().collect::<HashSet<_>>().len(), 4, "{does:?}: {seen:?}");
            }
        }
    }
}

/// A slow endpoint costs a hedge's delay, and not the endpoint's own time.
#[tokio::test(start_paused = true)]
async fn hedge_leaves_a_hanging_endpoint() {
    let cluster = Cluster::of([Does::Hang, WELL]);
    let policy = HedgePolicy::http().delay(ms(20)).budget(RetryBudget::unlimited()).boxed_errors();
    let client = HedgeLayer::new(policy).layer(cluster.balanced());
    for _ in 0..30 {
        let answer = tokio::time::timeout(ms(31), client.send(get())).await.unwrap();
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
}

/// A guard outside the endpoints, which admits one attempt.
#[derive(Clone, Default)]
struct AdmitsOne(Arc<AtomicU32>);

impl Guard for AdmitsOne {
    type Ticket = ();

    fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Admit::Admitted(()),
            _ => Admit::Refused(Refused::new(GuardKind::named(&"one"), Reason::Open)),
        }
    }

    fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
        None
    }
}

/// An attempt moves once from a full endpoint. If a guard refuses it on its way to another one, the call ends: the
/// former endpoint is not that of the refused attempt.
// D-7
#[tokio::test(start_paused = true)]
async fn refusal_outside_ends_the_moves() {
    let request = || Request::get("http://0/").body(Body::default()).unwrap();
    let cluster = Cluster::of([Does::Answer(secs(9)); 3]);
    let places = GuardLayer::http(Bulkhead::new(1)).layer(cluster.client(""));
    let set = EndpointsLayer::http(["http://0", "http://1", "http://2"]).unwrap().layer(places);
    let busy: Vec<_> = (0..30).map(|_| tokio::spawn(set.send(request()))).collect();
    sleep(ms(1)).await;
    assert_eq!(cluster.seen().len(), 3, "each endpoint is full");
    let guard = AdmitsOne::default();
    let hedges = HedgeLayer::new(HedgePolicy::http().delay(secs(5)).max_attempts(4).boxed_errors());
    let error = hedges.layer(GuardLayer::http(guard.clone()).layer(set)).send(request()).await.unwrap_err();
    assert!(error.is::<Refused>(), "{error}");
    assert_eq!(guard.0.load(Ordering::Relaxed), 2);
    drop(busy);
}
