//! Tests of the memory limit for the bodies of all calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reattempt::RetryLayer;
use reattempt_core::{StopReason, Unlimited};
use reattempt_replay::{ReplayLimits, ReplayMemory};
use tokio::task::JoinSet;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, ONE, Server, get, policy, report_of, request};

/// A body of a hundred bytes.
fn hundred() -> http::Request<crate::calls::support::Body> {
    const BODY: &str =
        "----------------------------------------------------------------------------------------------------";
    assert_eq!(BODY.len(), 100);
    request("PUT", ONE, BODY)
}

// trap 32
#[tokio::test(start_paused = true)]
async fn calls_past_bound_are_sent_unkept() {
    let memory = ReplayMemory::new(500);
    let server = Server::statuses([503]);
    let policy = policy().protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let client = RetryLayer::new(policy).layer(server.clone());
    // One in the first quarter, and two that are counted for their destination: as much is free.
    let mut kept: Vec<_> = (0..3).map(|_| task::spawn(client.clone().oneshot(hundred()))).collect();
    for call in &mut kept {
        assert_pending!(call.poll());
    }
    assert_eq!(memory.used(), 300);

    let mut fourth = task::spawn(client.clone().oneshot(hundred()));
    let response = assert_ready!(fourth.poll()).unwrap();
    assert_eq!(response.status(), 503, "sent, and its outcome handed back");
    assert_eq!(report_of(&response).stop_reason(), StopReason::BodyNotKept);
    assert_eq!(server.seen()[3].body.as_ref().unwrap().len(), 100, "whole");
    assert_eq!(memory.used(), 300);
    assert_pending!(task::spawn(client.clone().oneshot(get())).poll(), "a body of no length is kept");

    drop(kept);
    assert_eq!(memory.used(), 0);
    assert_pending!(task::spawn(client.oneshot(hundred())).poll(), "there is room again");
}

// trap 32
#[tokio::test(start_paused = true)]
async fn thousand_calls_in_backoff_obey_bound() {
    let memory = ReplayMemory::new(5_000);
    let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (seen, watched) = (memory.clone(), std::sync::Arc::clone(&most));
    let server = Server::by(move |_, _| {
        watched.fetch_max(seen.used(), std::sync::atomic::Ordering::SeqCst);
        Act::from(503)
    });
    let policy = policy()
        .budget(crate::calls::support::tokens(10_000.0))
        .protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        calls.spawn(client.clone().oneshot(hundred()));
    }
    calls.join_all().await;
    // A quarter, and for the only destination half of the rest.
    assert_eq!(most.load(std::sync::atomic::Ordering::SeqCst), 1_200 + 1_900);
    assert_eq!(memory.used(), 0);
    assert_eq!(server.count(), 1000 + 2 * 31, "five eighths of the bound are kept and retried");
}

#[tokio::test(start_paused = true)]
async fn default_bound_is_shared_by_clones_only() {
    let layer =
        RetryLayer::new(policy().protocol(|http| http.replay(ReplayLimits::default().memory(ReplayMemory::new(200)))));
    let server = Server::statuses([503]);
    let mut first = task::spawn(layer.clone().layer(server.clone()).oneshot(hundred()));
    assert_pending!(first.poll());
    let mut second = task::spawn(layer.layer(server.clone()).oneshot(hundred()));
    assert_ready!(second.poll()).unwrap();
    let mut apart = task::spawn(RetryLayer::new(policy()).layer(server).oneshot(hundred()));
    assert_pending!(apart.poll());
}

// COM-5
#[tokio::test(start_paused = true)]
async fn the_last_attempt_keeps_nothing() {
    let memory = ReplayMemory::new(1000);
    let server = Server::by(|arrival, _| if arrival < 3 { 503.into() } else { Act::Hang });
    let policy = policy().protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let mut call = task::spawn(RetryLayer::new(policy).layer(server.clone()).oneshot(hundred()));
    let mut used = Vec::new();
    for _ in 0..3 {
        assert_pending!(call.poll());
        used.push(memory.used());
        tokio::time::advance(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!((server.count(), used), (3, vec![100, 100, 0]));
}

/// A hanging destination leaves three eighths of the limit to the others, whose requests are still kept.
// trap 40
#[tokio::test(start_paused = true)]
async fn hanging_host_leaves_memory_for_others() {
    let memory = ReplayMemory::new(8_000);
    let server = Server::by(|_, head| match head.uri.host() {
        Some("one.example") => Act::Hang,
        _ => 503.into(),
    });
    let policy = policy().protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut hanging: Vec<_> = Vec::new();
    for _ in 0..100 {
        let mut call = task::spawn(client.clone().oneshot(hundred()));
        assert_pending!(call.poll());
        hanging.push(call);
    }
    assert_eq!(memory.used(), 5_000);
    let (held, others) = (memory.used(), ["http://two.example/", "http://three.example/"]);
    for other in others {
        let call = client.clone().oneshot(request("PUT", other, "x"));
        let response = call.await.unwrap();
        assert_eq!(report_of(&response).retries(), 2, "{other}");
    }
    assert_eq!(memory.used(), held);
    drop(hanging);
    assert_eq!(memory.used(), 0);
}

/// No destination is computed for bodies that fit the first quarter.
// trap 40
#[tokio::test(start_paused = true)]
async fn destination_is_computed_past_a_quarter() {
    let computed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&computed);
    let memory = ReplayMemory::new(1_000);
    let policy = policy().budget(Unlimited).protocol(|http| {
        http.replay(ReplayLimits::default().memory(memory.clone())).destination(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            "cluster".into()
        })
    });
    let client = RetryLayer::new(policy).layer(Server::by(|_, _| Act::Hang));
    let mut calls = Vec::new();
    for (used, computations) in [(100, 0), (200, 0), (300, 1), (400, 2), (500, 3), (600, 4), (600, 5)] {
        let mut call = task::spawn(client.clone().oneshot(hundred()));
        assert_pending!(call.poll());
        calls.push(call);
        assert_eq!((memory.used(), computed.load(Ordering::SeqCst)), (used, computations));
    }
    // A request without a body needs no memory.
    assert_pending!(task::spawn(client.oneshot(get())).poll());
    assert_eq!(computed.load(Ordering::SeqCst), 5);
}
