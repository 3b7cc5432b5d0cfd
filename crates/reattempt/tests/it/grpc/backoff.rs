//! Tests of backoff with a service config (§8): the delays of a method's retries.

use reattempt::grpc::service_config::{Client, ServiceConfigLayer};
use reattempt_grpc::{Code, ServiceConfig};
use tower::{Layer, ServiceExt};

use crate::grpc::support::{GrpcServer, call, trailers_only};

/// Returns a client of a server that refuses everything, with five attempts per call.
fn client(initial: &str, most: &str, multiplier: &str) -> (Client<GrpcServer>, GrpcServer) {
    let text = format!(
        r#"{{"methodConfig": [{{"name": [{{}}], "retryPolicy": {{
            "maxAttempts": 5, "initialBackoff": "{initial}", "maxBackoff": "{most}",
            "backoffMultiplier": {multiplier}, "retryableStatusCodes": ["UNAVAILABLE"]
        }}}}]}}"#
    );
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let layer = ServiceConfigLayer::new(ServiceConfig::parse(&text).unwrap());
    (layer.layer(server.clone()), server)
}

/// Returns each delay of one call in milliseconds.
async fn delays(initial: &str, most: &str, multiplier: &str) -> Vec<u128> {
    let (client, server) = client(initial, most, multiplier);
    client.oneshot(call()).await.unwrap();
    server.times().windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Checks that each delay is within a fifth of its value without jitter; tokio's timers are exact to a millisecond.
fn are_about(delays: &[u128], usual: [u128; 4]) {
    assert_eq!(delays.len(), usual.len());
    for (delay, usual) in delays.iter().zip(usual) {
        assert!((usual * 4 / 5..=usual * 6 / 5 + 1).contains(delay), "{delays:?}: {usual}");
    }
}

// BK-4, SC-21
#[tokio::test(start_paused = true)]
async fn bk_4_sc_21_first_delay_is_capped_as_well() {
    for _ in 0..50 {
        are_about(&delays("9s", "2s", "3").await, [2000; 4]);
    }
}

/// The delays start from the first delay as configured, not as capped.
// BK-5
#[tokio::test(start_paused = true)]
async fn multiplier_below_1_shrinks_delays() {
    for _ in 0..50 {
        are_about(&delays("4s", "10s", "0.5").await, [4000, 2000, 1000, 500]);
    }
}

// BK-6
#[tokio::test(start_paused = true)]
async fn multiplier_and_duration_do_not_overflow() {
    for _ in 0..50 {
        are_about(&delays("1s", "3s", "1e300").await, [1000, 3000, 3000, 3000]);
        are_about(&delays("0.000000001s", "3s", "1.7e308").await, [0, 3000, 3000, 3000]);
    }
    // The longest duration that a config can contain: the call waits for ten thousand years.
    let (client, server) = client("315576000000s", "315576000000s", "1.7e308");
    let year = std::time::Duration::from_secs(365 * 24 * 3600);
    assert!(tokio::time::timeout(year, client.oneshot(call())).await.is_err());
    assert_eq!(server.count(), 1);
}

/// Of two concurrent calls on one client, each starts with the first delay.
// BK-7
#[tokio::test(start_paused = true)]
async fn bk_7_each_call_has_delays_of_its_own() {
    let (client, server) = client("1s", "100s", "10");
    let first = tokio::spawn(client.clone().oneshot(call()));
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(server.count(), 2);
    let second = tokio::spawn(client.oneshot(call()));
    tokio::time::sleep(std::time::Duration::from_millis(1300)).await;
    assert_eq!(server.count(), 4, "its first retry came after about a second");
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}
