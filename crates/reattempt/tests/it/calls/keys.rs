//! Tests of idempotency keys, which are recognised, and generated once per call.

use std::collections::HashSet;
use std::time::Duration;

use reattempt::{RetryLayer, RetryPolicy};
use reattempt_core::StopReason;
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Server, With, get, ms, policy, post, put, report_of};

const KEY: &str = "idempotency-key";

#[tokio::test(start_paused = true)]
async fn all_attempts_of_a_call_share_one_key() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().protocol(|http| http.generate_idempotency_keys(true))).layer(server.clone());
    for _ in 0..5 {
        client.clone().oneshot(post()).await.unwrap();
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 15, "with a key a POST is retried like a PUT");
    let mut keys = HashSet::new();
    for call in seen.chunks(3) {
        let key = call[0].header(KEY).unwrap();
        assert!(call.iter().all(|attempt| attempt.header(KEY) == Some(key)));
        assert!(keys.insert(key), "no two calls have the same");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_there_is_left_alone() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().protocol(|http| http.generate_idempotency_keys(true))).layer(server.clone());
    client.oneshot(post().header(KEY, "\"mine\"")).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|attempt| attempt.header(KEY) == Some("\"mine\"")));
}

#[tokio::test(start_paused = true)]
async fn no_key_if_unneeded_or_unasked() {
    let server = Server::statuses([200]);
    let client = RetryLayer::new(policy().protocol(|http| http.generate_idempotency_keys(true))).layer(server.clone());
    client.clone().oneshot(get()).await.unwrap();
    client.oneshot(put()).await.unwrap();
    RetryLayer::new(policy()).layer(server.clone()).oneshot(post()).await.unwrap();
    assert!(server.seen().iter().all(|attempt| attempt.header(KEY).is_none()));
}

/// A request without room for a key is sent unchanged and not repeated.
#[tokio::test(start_paused = true)]
async fn full_request_is_given_no_key() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().protocol(|http| http.generate_idempotency_keys(true))).layer(server.clone());
    let mut full = post();
    for number in 0..24_576 {
        let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
        full.headers_mut().insert(name, http::HeaderValue::from_static("some"));
    }
    client.oneshot(full).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].header(KEY)), (1, None));
}

/// Returns a policy that retries forever, an hour after each failure.
fn patient() -> RetryPolicy<reattempt::Http, Constant> {
    let hour = Constant::new(Duration::from_secs(3600));
    policy().backoff(hour).max_elapsed(None).max_attempts(u32::MAX).budget(crate::calls::support::tokens(100.0))
}

#[tokio::test(start_paused = true)]
async fn keyed_call_ends_with_the_keys_life() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(patient()).layer(server.clone());
    let response = client.oneshot(post().header(KEY, "\"mine\"")).await.unwrap();
    assert_eq!(server.count(), 25, "at the start and after each of 24 hours");
    assert_eq!(report_of(&response).stop_reason(), StopReason::ElapsedExhausted);
}

#[tokio::test(start_paused = true)]
async fn a_generated_key_lives_no_longer() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(patient().protocol(|http| http.generate_idempotency_keys(true))).layer(server.clone());
    client.oneshot(post()).await.unwrap();
    assert_eq!(server.count(), 25);
}

#[tokio::test(start_paused = true)]
async fn call_without_key_outlives_key_life() {
    let server = Server::by(|arrival, _| if arrival <= 30 { 503.into() } else { 200.into() });
    let client = RetryLayer::new(patient()).layer(server.clone());
    let response = client.oneshot(put().header(KEY, "\"mine\"")).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 31));
}

#[tokio::test(start_paused = true)]
async fn a_shorter_limit_stays() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().max_elapsed(ms(150)).max_attempts(9)).layer(server.clone());
    client.oneshot(post().header(KEY, "\"mine\"")).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
}
