//! Tests of a pause around several servers: the wait of a 503 binds the server that sent it, that of a 429 the caller.

use std::time::Duration;

use http::StatusCode;
use reattempt::RetryLayer;
use reattempt::endpoints::seed_picks;
use reattempt::guard::handle::PauseExt;
use reattempt::guard::{GuardLayer, Pause};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Cluster, Does, WELL, get, policy};
use tokio::time::Instant;
use tower::Layer;

/// A server that drains pauses no call, because the other one serves them all.
// C-13, field 10, field 24
#[tokio::test(start_paused = true)]
async fn wait_of_one_endpoint_pauses_no_call() {
    seed_picks(1);
    let cluster = Cluster::of([Does::Busy(120), WELL]);
    let pause = Pause::new();
    let client = RetryLayer::new(policy(2)).layer(GuardLayer::http(pause.clone()).layer(cluster.balanced()));
    let began = Instant::now();
    for call in 0..100 {
        assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::OK, "{call}");
        assert_eq!(pause.time_left("service"), Duration::ZERO);
    }
    assert_eq!(cluster.seen().iter().filter(|name| *name == "0").count(), 1);
    assert!(began.elapsed() < secs(3), "a retry after 1 s, and 100 calls of 10 ms");
}

/// A limit of the account is the same at every server, so nobody is asked before the wait is over.
// C-13, field 24
#[tokio::test(start_paused = true)]
async fn wait_of_a_limit_pauses_every_endpoint() {
    seed_picks(1);
    let cluster = Cluster::of([Does::Limited(5), Does::Limited(5)]);
    let pause = Pause::new();
    let client = GuardLayer::http(pause.clone()).layer(cluster.balanced());
    let client = RetryLayer::new(policy(1)).layer(client);
    assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(pause.time_left("service"), secs(5));
    for name in cluster.names() {
        cluster.set(&name, WELL);
    }
    let began = Instant::now();
    assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::OK);
    assert!(began.elapsed() >= secs(5));
}

/// A single server's 503 pauses the calls to it, if no set of endpoints has chosen it.
// field 24
#[tokio::test(start_paused = true)]
async fn wait_of_a_server_pauses_its_calls() {
    let cluster = Cluster::of([Does::Busy(5)]);
    let pause = Pause::new();
    let client = RetryLayer::new(policy(1)).layer(GuardLayer::http(pause.clone()).layer(cluster.client("0")));
    client.send(get()).await.unwrap();
    assert_eq!(pause.time_left("service"), secs(5));
}
