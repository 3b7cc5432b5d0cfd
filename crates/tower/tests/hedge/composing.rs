//! Hedging beside the retry layer, outside of it and inside.

use reattempt_schedule_fixed::Constant;
use reattempt_tower::{AttemptNumber, HedgeLayer, RetryLayer, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::support::{Act, Server, get, ms, put, report_of};
use crate::{policy, report};

fn retries() -> RetryPolicy<reattempt_tower::Http, Constant> {
    RetryPolicy::http().schedule(Constant::new(ms(1000)))
}

#[tokio::test(start_paused = true)]
async fn a_retry_outside_follows_when_the_whole_set_has_failed() {
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
async fn a_hedge_outside_is_a_call_with_retries_of_its_own() {
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
async fn every_attempt_of_every_set_has_the_whole_body() {
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
