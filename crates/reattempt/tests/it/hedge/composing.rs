//! Tests of hedging beside the retry layer, outside it and inside.

use reattempt::hedge::HedgeLayer;
use reattempt::retry::AttemptNumber;
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_core::SpendOnly;
use reattempt_grpc::{RetryThrottle, RetryThrottling};
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt};

use crate::hedge::budget::Heard;
use crate::hedge::support::{Act, Server, get, ms, put, report_of};
use crate::hedge::{policy, report};

fn retries() -> RetryPolicy<reattempt::Http, Constant> {
    RetryPolicy::http().backoff(Constant::new(ms(1000)))
}

#[tokio::test(start_paused = true)]
async fn outer_retry_follows_a_failed_set() {
    let server = Server::by(|arrival, _| match arrival {
        1..=2 => 503.into(),
        3 => Act::Hang,
        _ => 200.into(),
    });
    let hedged = HedgeLayer::new(policy().max_attempts(2)).layer(server.clone());
    let client = RetryLayer::new(retries()).layer(hedged);
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(server.times(), [0, 0, 1000, 1100], "two sets of two");
    assert_eq!(report(&answer), Some((2, 2)));
    assert_eq!(report_of(&answer).retries(), 1);
}

#[tokio::test(start_paused = true)]
async fn outer_hedge_is_a_call_with_own_retries() {
    let server = Server::by(|arrival, head| {
        let number = head.extensions.get::<AttemptNumber>().map_or(1, |number| number.0);
        match (arrival, number) {
            (1, _) => Act::Hang,
            (2, _) => 503.into(),
            _ => 200.into(),
        }
    });
    let retried = RetryLayer::new(retries()).layer(server.clone());
    let client = HedgeLayer::new(policy().max_attempts(2)).layer(retried);
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((2, 2))));
    assert_eq!(server.times(), [0, 100, 1100]);
}

#[tokio::test(start_paused = true)]
async fn every_attempt_of_a_set_has_whole_body() {
    let server = Server::by(|arrival, _| match arrival {
        1..=3 => 503.into(),
        _ => 200.into(),
    });
    let hedged = HedgeLayer::new(policy().max_attempts(2).idempotent_methods(true));
    let client = RetryLayer::new(retries()).layer(hedged.layer(server.clone()));
    assert_eq!(client.oneshot(put()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 4);
    for seen in server.seen() {
        assert_eq!(seen.body.as_deref(), Some(&b"hello"[..]));
    }
}

const FAILED: &str = "failed with server (503)";
const ASKED: &str = "asked for server (503)";

// THR-4
#[tokio::test(start_paused = true)]
async fn retry_budget_gets_each_end_once() {
    // A set of two that fails, and one whose second attempt succeeds.
    let server = Server::statuses([503, 503, 503, 200]);
    let heard = Heard::default();
    let policy = policy().max_attempts(2).budget(SpendOnly(heard.clone()));
    let hedged = HedgeLayer::new(policy).layer(server.clone());
    let client = RetryLayer::new(retries().budget(heard.clone())).layer(hedged);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 4);
    let hedge_and_retry = [ASKED, "hedge ended 7 false", FAILED, ASKED, ASKED];
    // The hedge that succeeded, and the retry to which it belongs.
    let won = ["hedge ended 7 true", "hedge ended 7 true", "credited 1"];
    assert_eq!(heard.lines(), [&hedge_and_retry[..], &won].concat());
}

// THR-3
#[tokio::test(start_paused = true)]
async fn hedge_budget_gets_each_end_once() {
    // The first attempt hangs; the hedge fails first and then succeeds.
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::Hang,
        2 => 503.into(),
        _ => 200.into(),
    });
    let heard = Heard::default();
    let retried = RetryLayer::new(retries().budget(heard.clone())).layer(server.clone());
    let policy = policy().max_attempts(2).budget(SpendOnly(heard.clone()));
    let client = HedgeLayer::new(policy).layer(retried);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    let won = ["hedge ended 7 true", "credited 1", "hedge ended 7 true"];
    assert_eq!(heard.lines(), [&["asked for timeout", FAILED, ASKED][..], &won].concat());
}

// HG-8
#[tokio::test(start_paused = true)]
async fn shared_throttle_stops_retries_and_hedges() {
    let throttle = RetryThrottle::from(RetryThrottling::new(4.0, 0.5));
    let server = Server::statuses([503]);
    let policy = policy().max_attempts(2).budget(SpendOnly(throttle.clone()));
    let hedged = HedgeLayer::new(policy).layer(server.clone());
    let client = RetryLayer::new(retries().budget(throttle.clone())).layer(hedged);
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!((server.count(), throttle.tokens_thousandths()), (4, Some(2000)), "two sets of two");
    client.oneshot(get()).await.unwrap();
    assert_eq!((server.count(), throttle.tokens_thousandths()), (5, Some(1000)), "no hedge either");
}
