//! Tests of hedged calls, which never send two attempts to one endpoint.

use std::collections::HashSet;
use std::time::Duration;

use http::StatusCode;
use reattempt::RetryBudget;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_testing::ms;
use tower::Layer;

use super::support::{Cluster, Does, WELL, get};

/// A hedge goes to an endpoint without an attempt of its call, at once or later, with or without a failure.
// E-3
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
                assert_eq!((seen.len(), distinct), (4, 4), "{does:?}: {seen:?}");
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
