//! Tests of state that calls, clones and separate clients share.

use reattempt::{RetryLayer, RetryPolicy};
use reattempt_schedule_fixed::Linear;
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Server, get, ms, policy, tokens};

// trap 10
#[tokio::test(start_paused = true)]
async fn concurrent_calls_have_own_delays() {
    let server = Server::statuses([503]);
    let schedule = Linear::new(ms(100));
    let client = RetryLayer::new(policy().backoff(schedule)).layer(server.clone());
    let mut first = task::spawn(client.clone().oneshot(get()));
    assert_pending!(first.poll());
    advance(ms(100)).await;
    assert_pending!(first.poll());
    assert_eq!(server.count(), 2);

    // The other call starts while the first waits for its second, longer delay.
    let mut second = task::spawn(client.oneshot(get()));
    assert_pending!(second.poll());
    assert_eq!(server.count(), 3);
    advance(ms(99)).await;
    assert_pending!(second.poll());
    assert_eq!(server.count(), 3);
    advance(ms(1)).await;
    assert_pending!(second.poll());
    assert_eq!(server.count(), 4, "its first delay is the schedule's first");
    advance(ms(100)).await;
    assert_ready!(first.poll()).unwrap();
    advance(ms(100)).await;
    assert_ready!(second.poll()).unwrap();
    assert_eq!(server.count(), 6, "three attempts each");
}

// trap 10
#[tokio::test(start_paused = true)]
async fn clones_of_everything_share_one_budget() {
    let server = Server::statuses([503]);
    let policy = policy().budget(tokens(4.0));
    let layer = RetryLayer::new(policy.clone());
    let client = layer.clone().layer(server.clone());
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(client.policy().budget_ref().balance("one.example"), 2.0);
    layer.layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(policy.budget_ref().balance("one.example"), 0.0);
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 3 + 3 + 1);
}

// trap 10
#[tokio::test(start_paused = true)]
async fn separate_layers_share_nothing() {
    let server = Server::statuses([503]);
    for _ in 0..20 {
        RetryLayer::http().layer(server.clone()).oneshot(get()).await.unwrap();
    }
    assert_eq!(server.count(), 60, "each has its own ten tokens");
    let (one, other) = (RetryPolicy::http(), RetryPolicy::http());
    RetryLayer::new(one.clone()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert!(one.budget_ref().balance("one.example") < 8.1, "but for a little trickle");
    assert_eq!(other.budget_ref().balance("one.example"), 10.0);
}

#[tokio::test(start_paused = true)]
async fn setting_on_clone_changes_clone_alone() {
    let server = Server::statuses([503]);
    let policy = policy();
    let longer = policy.clone().max_attempts(5);
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 3);
    RetryLayer::new(longer).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 8);
}
