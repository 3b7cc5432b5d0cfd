//! tower-resilience-retry around hyper-util's client.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use reattempt_faults::{Reply, Rule, Server};
use tower::{Layer, ServiceExt};
use tower_resilience_retry::{FixedInterval, RetryConfigBuilder, RetryLayer};

type Body = Full<Bytes>;

/// Retries server errors, and every error of the client.
fn layer() -> RetryLayer<Request<Body>, Response<Incoming>, Error> {
    RetryConfigBuilder::new()
        .max_attempts(3)
        .retry_on_response(|response: &Response<Incoming>| response.status().is_server_error())
        .backoff(FixedInterval::new(Duration::from_millis(1)))
        .build()
}

async fn status(request: http::request::Builder, body: &'static str) -> StatusCode {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let request = request.body(Body::from(body)).unwrap();
    layer().layer(client).oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn layer_retries_a_busy_server() {
    let server = Server::http1([Reply::status(StatusCode::SERVICE_UNAVAILABLE)]).await.unwrap();
    assert_eq!(status(Request::get(server.url("/orders")), "").await, StatusCode::OK);
    server.ledger().no_unsafe_repeat().bodies_intact().at_most_attempts(2);
}

/// It repeats a POST whose response was lost.
#[tokio::test]
async fn layer_repeats_a_lost_payment() {
    let server = Server::http1([Reply::reset()]).await.unwrap();
    assert_eq!(status(Request::post(server.url("/pay")), "tea").await, StatusCode::OK);
    let violation = server.ledger().check(Rule::NoUnsafeRepeat).unwrap_err();
    assert_eq!(violation.arrivals().len(), 2, "{violation}");
}
