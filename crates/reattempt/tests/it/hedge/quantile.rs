//! Tests of the running quantile as the delay: its warm-up, and how much load it adds.

use std::sync::{Arc, Mutex};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use reattempt::hedge::{Hedge, HedgeLayer, HedgePolicy};
use reattempt_control::RetryBudget;
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use crate::hedge::support::{Act, Server, get, ms, post};

type Policy = HedgePolicy;

fn policy(quantile: f64) -> Policy {
    HedgePolicy::http().delay_quantile(quantile).budget(RetryBudget::unlimited())
}

/// Returns a server that takes from 20 to 120 ms, but a second in one case of ten.
fn varying(seed: u64) -> Server {
    let random = Arc::new(Mutex::new(SmallRng::seed_from_u64(seed)));
    Server::by(move |_, _| {
        let drawn = random.lock().unwrap().next_u64();
        let wait = if drawn % 10 == 0 { 1000 } else { 20 + (drawn >> 8) % 100 };
        Act::from(200).later(ms(wait))
    })
}

async fn calls(client: &Hedge<Server, Policy>, count: usize) {
    for _ in 0..count {
        client.clone().oneshot(get()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn too_few_samples_hedge_nothing() {
    let server = varying(1);
    let client = HedgeLayer::new(policy(0.95)).layer(server.clone());
    calls(&client, 200).await;
    assert_eq!(server.count(), 200);
    let delay = client.policy().current_delay().unwrap();
    assert!(delay >= ms(1000), "{delay:?}");
}

#[tokio::test(start_paused = true)]
async fn too_few_samples_hedge_no_failure() {
    let server = Server::statuses([503]);
    let client = HedgeLayer::http().layer(server.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 503);
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn slowness_adds_no_more_load_than_stated() {
    for (percent, least) in [(80_u8, 200), (95, 0), (99, 0)] {
        let server = varying(2);
        let policy = policy(f64::from(percent) / 100.0);
        let client = HedgeLayer::new(policy).layer(server.clone());
        calls(&client, 4000).await;
        let hedges = server.count() - 4000;
        let stated = 40 * usize::from(100 - percent);
        assert!(hedges <= stated, "{percent}: {hedges} of {stated}");
        assert!(hedges >= least, "{percent}: {hedges}, which is hardly any");
    }
}

#[tokio::test(start_paused = true)]
async fn losers_count_so_delay_does_not_creep() {
    // If only winners were counted, hedging would hide the slow tenth, and with it its own delay.
    let server = varying(3);
    let client = HedgeLayer::new(policy(0.85)).layer(server.clone());
    calls(&client, 2000).await;
    let first = client.policy().current_delay().unwrap();
    calls(&client, 8000).await;
    let later = client.policy().current_delay().unwrap();
    assert!(later >= first.mul_f64(0.9), "from {first:?} to {later:?}");
    assert!(server.count() - 10_000 <= 1500, "{}", server.count());
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_given_up_count_as_well() {
    let server = varying(4);
    let client = HedgeLayer::new(policy(0.8)).layer(server.clone());
    calls(&client, 100).await;
    for _ in 0..4000 {
        let _ = timeout(ms(130), client.clone().oneshot(get())).await;
    }
    let hedges = server.count() - 4100;
    assert!(hedges <= 4100 / 5, "{hedges}");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_hedged_is_not_measured() {
    let client = HedgeLayer::new(policy(0.5)).layer(Server::statuses([200]));
    for _ in 0..200 {
        client.clone().oneshot(post()).await.unwrap();
    }
    assert_eq!(client.policy().current_delay(), None);
}

// trap 10
#[tokio::test(start_paused = true)]
async fn clones_share_latencies_builds_do_not() {
    let (one, other) = (policy(0.5), policy(0.5));
    let client = HedgeLayer::new(one.clone()).layer(Server::statuses([200]));
    calls(&client, 100).await;
    assert!(one.current_delay().is_some());
    assert_eq!(other.current_delay(), None);
}
