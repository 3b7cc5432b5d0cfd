//! Tests of requests that ask their server to switch the connection to another protocol.

use std::io::ErrorKind::ConnectionRefused;

use http::{Request, StatusCode};
use reattempt::RetryLayer;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Body, Policy, Server, With, get, options, policy, post, request};

/// Returns the number of attempts of `request` if each has this outcome.
async fn attempts(request: Request<Body>, act: fn() -> Act) -> usize {
    let server = Server::by(move |_, _| act());
    let _ = RetryLayer::new(direct()).layer(server.clone()).oneshot(request).await;
    server.count()
}

/// Returns a policy for a client that follows no redirects, so that a refused connection is proof.
fn direct() -> Policy {
    policy().protocol(|http| http.redirects_below(false))
}

fn upgrade(request: Request<Body>) -> Request<Body> {
    request.header("connection", "upgrade").header("upgrade", "websocket")
}

fn connect() -> Request<Body> {
    request("CONNECT", "one.example:443", "")
}

#[tokio::test(start_paused = true)]
async fn upgrade_is_retried_like_its_method() {
    assert_eq!(attempts(upgrade(get()), || ConnectionRefused.into()).await, 3);
    assert_eq!(attempts(upgrade(get()), || 503.into()).await, 3);
    assert_eq!(attempts(upgrade(post()), || ConnectionRefused.into()).await, 3);
    assert_eq!(attempts(upgrade(post()), || 503.into()).await, 1);
    assert_eq!(attempts(upgrade(post()), || 429.into()).await, 3);
}

#[tokio::test(start_paused = true)]
async fn connect_is_retried_only_with_proof() {
    assert_eq!(attempts(connect(), || ConnectionRefused.into()).await, 3);
    assert_eq!(attempts(connect(), || 429.into()).await, 3);
    assert_eq!(attempts(connect(), || 503.into()).await, 1);
    assert_eq!(attempts(connect().with(options().repeatable(true)), || 503.into()).await, 3);
}

/// The body of a CONNECT request is the data of its tunnel, and each byte of it is sent once.
#[tokio::test(start_paused = true)]
async fn tunnel_data_is_never_kept() {
    let with_data = request("CONNECT", "one.example:443", "data");
    assert_eq!(attempts(with_data, || 429.into()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn each_handshake_is_the_request_itself() {
    let policy = direct().protocol(|http| http.generate_idempotency_keys(true));
    for request in [connect(), upgrade(get()), upgrade(post())] {
        let server = Server::by(|_, _| ConnectionRefused.into());
        let request = request.with(7_u8);
        let headers = request.headers().clone();
        RetryLayer::new(policy.clone()).layer(server.clone()).oneshot(request).await.unwrap_err();
        for seen in server.seen() {
            assert_eq!(seen.head.headers, headers, "no header was added");
            // hyper's protocol of an extended CONNECT request is such an extension.
            assert_eq!(seen.head.extensions.get(), Some(&7_u8));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn switching_response_passes() {
    for (request, status) in [(upgrade(get()), 101), (connect(), 200)] {
        let server = Server::by(move |arrival, _| match arrival {
            1 => ConnectionRefused.into(),
            _ => status.into(),
        });
        let response = RetryLayer::new(direct()).layer(server.clone()).oneshot(request).await.unwrap();
        assert_eq!((response.status(), server.count()), (StatusCode::from_u16(status).unwrap(), 2));
    }
}
