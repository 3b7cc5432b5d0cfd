//! The bound over the bodies of all calls.

use reattempt_core::StopReason;
use reattempt_http::{ReplayLimits, ReplayMemory};
use reattempt_tower::RetryLayer;
use tokio::task::JoinSet;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, ServiceExt};

use crate::support::{Act, ONE, Server, get, policy, report_of, request};

/// A body of a hundred bytes.
fn hundred() -> http::Request<crate::support::Body> {
    const BODY: &str = "----------------------------------------------------------------------------------------------------";
    assert_eq!(BODY.len(), 100);
    request("PUT", ONE, BODY)
}

#[tokio::test(start_paused = true)]
async fn trap_32_past_the_bound_calls_are_sent_but_not_kept() {
    let memory = ReplayMemory::new(250);
    let server = Server::statuses([503]);
    let policy = policy().replay(ReplayLimits::default().memory(memory.clone()));
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut kept: Vec<_> = (0..2).map(|_| task::spawn(client.clone().oneshot(hundred()))).collect();
    for call in &mut kept {
        assert_pending!(call.poll());
    }
    assert_eq!(memory.used(), 200);

    let mut third = task::spawn(client.clone().oneshot(hundred()));
    let response = assert_ready!(third.poll()).unwrap();
    assert_eq!(response.status(), 503, "sent, and its outcome handed back");
    assert_eq!(report_of(&response).stop_reason(), StopReason::BodyNotKept);
    assert_eq!(server.seen()[2].body.as_ref().unwrap().len(), 100, "whole");
    assert_eq!(memory.used(), 200);
    assert_pending!(
        task::spawn(client.clone().oneshot(get())).poll(),
        "a body of no length is kept"
    );

    drop(kept);
    assert_eq!(memory.used(), 0);
    assert_pending!(task::spawn(client.oneshot(hundred())).poll(), "there is room again");
}

#[tokio::test(start_paused = true)]
async fn trap_32_a_thousand_calls_in_backoff_hold_no_more_than_the_bound() {
    let memory = ReplayMemory::new(5_000);
    let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (seen, watched) = (memory.clone(), std::sync::Arc::clone(&most));
    let server = Server::by(move |_, _| {
        watched.fetch_max(seen.used(), std::sync::atomic::Ordering::SeqCst);
        Act::from(503)
    });
    let policy = policy()
        .budget(crate::support::tokens(10_000.0))
        .replay(ReplayLimits::default().memory(memory.clone()));
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        calls.spawn(client.clone().oneshot(hundred()));
    }
    calls.join_all().await;
    assert!(most.load(std::sync::atomic::Ordering::SeqCst) <= 5_000);
    assert_eq!(memory.used(), 0);
    assert_eq!(server.count(), 1000 + 2 * 50, "fifty are kept and retried");
}

#[tokio::test(start_paused = true)]
async fn the_default_bound_is_shared_by_the_clones_of_a_layer_alone() {
    let layer =
        RetryLayer::new(policy().replay(ReplayLimits::default().memory(ReplayMemory::new(100))));
    let server = Server::statuses([503]);
    let mut first = task::spawn(layer.clone().layer(server.clone()).oneshot(hundred()));
    assert_pending!(first.poll());
    let mut second = task::spawn(layer.layer(server.clone()).oneshot(hundred()));
    assert_ready!(second.poll()).unwrap();
    let mut apart = task::spawn(RetryLayer::new(policy()).layer(server).oneshot(hundred()));
    assert_pending!(apart.poll());
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_keeps_nothing() {
    let memory = ReplayMemory::new(1000);
    let server = Server::by(|arrival, _| if arrival < 3 { 503.into() } else { Act::Hang });
    let policy = policy().replay(ReplayLimits::default().memory(memory.clone()));
    let mut call = task::spawn(RetryLayer::new(policy).layer(server.clone()).oneshot(hundred()));
    let mut used = Vec::new();
    for _ in 0..3 {
        assert_pending!(call.poll());
        used.push(memory.used());
        tokio::time::advance(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!((server.count(), used), (3, vec![100, 100, 0]));
}
