//! Tests of which requests are hedged.

use http::StatusCode;
use reattempt::hedge::HedgeLayer;
use reattempt_http::IDEMPOTENCY_KEY;
use tower::{Layer, ServiceExt};

use crate::hedge::policy;
use crate::hedge::support::{Act, ONE, Server, With, get, ms, options, post, put, request};

/// Returns the number of attempts of `request` that reach a slow server.
async fn attempts(policy: reattempt::hedge::HedgePolicy, request: http::Request<crate::hedge::support::Body>) -> usize {
    let server = Server::by(|_, _| Act::from(200).later(ms(10_000)));
    let client = HedgeLayer::new(policy).layer(server.clone());
    assert_eq!(client.oneshot(request).await.unwrap().status(), StatusCode::OK);
    server.count()
}

// HG-14
#[tokio::test(start_paused = true)]
async fn safe_methods_only_by_default() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert_eq!(attempts(policy(), request(method, ONE, "")).await, 3, "{method}");
    }
    for method in ["PUT", "DELETE", "POST", "PATCH", "CONNECT", "PROPFIND"] {
        assert_eq!(attempts(policy(), request(method, ONE, "x")).await, 1, "{method}");
    }
}

// HG-14
#[tokio::test(start_paused = true)]
async fn idempotent_methods_by_opt_in_only() {
    let policy = policy().idempotent_methods(true);
    for method in ["PUT", "DELETE"] {
        assert_eq!(attempts(policy.clone(), request(method, ONE, "x")).await, 3, "{method}");
    }
    for method in ["POST", "PATCH", "PROPFIND"] {
        assert_eq!(attempts(policy.clone(), request(method, ONE, "x")).await, 1, "{method}");
    }
    let keyed = post().header(IDEMPOTENCY_KEY.as_str().to_owned().leak(), "\"one\"");
    assert_eq!(attempts(policy, keyed).await, 1, "a key is no leave to run side by side");
}

// HG-14
#[tokio::test(start_paused = true)]
async fn hg_14_caller_decides_for_each_request() {
    assert_eq!(attempts(policy(), post().with(options().repeatable(true))).await, 3);
    let tunnel = request("CONNECT", ONE, "").with(options().repeatable(true));
    assert_eq!(attempts(policy(), tunnel).await, 1, "it would open two connections");
    let switching = get().header("upgrade", "websocket").with(options().repeatable(true));
    assert_eq!(attempts(policy(), switching).await, 1, "so would this");
    assert_eq!(attempts(policy(), get().with(options().repeatable(false))).await, 1);
    assert_eq!(attempts(policy(), get().with(options().never_retry())).await, 1);
    assert_eq!(attempts(policy(), get().with(options().max_attempts(2))).await, 2);
    assert_eq!(attempts(policy(), get().with(options().max_attempts(99))).await, 5);
    assert_eq!(attempts(policy(), get().with(options().max_elapsed(ms(150)))).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_handle_has_options_for_all_its_calls() {
    let server = Server::by(|_, _| Act::from(200).later(ms(10_000)));
    let client = HedgeLayer::new(policy()).layer(server.clone());
    client.with_options(options().repeatable(true)).oneshot(put()).await.unwrap();
    assert_eq!(server.count(), 3);
    let never = client.with_options(options().never_retry());
    never.oneshot(get().with(options().repeatable(true))).await.unwrap();
    assert_eq!(server.count(), 4, "who forbids it is obeyed");
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_the_same_request() {
    let server = Server::by(|_, _| Act::from(200).later(ms(10_000)));
    let client = HedgeLayer::new(policy()).layer(server.clone());
    let request = post().header("x-order", "7").with(options().repeatable(true));
    client.oneshot(request).await.unwrap();
    for seen in server.seen() {
        assert_eq!((seen.head.method.as_str(), seen.header("x-order")), ("POST", Some("7")));
        assert_eq!(seen.body.as_deref(), Some(&b"hello"[..]));
    }
}
