//! Unary gRPC calls that succeed at the first attempt, beside a fresh call of HTTP.

use http::Request;
use http_body_util::BodyExt;
use reattempt::RetryLayer;
use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
use tower::Layer;

use super::call::each;
use super::{Row, above, alone};
use crate::contenders::ours;
use crate::inner::{Answers, Reads};
use crate::requests::{fresh, grpc, grpc_encoded};

pub(super) const ROWS: &[Row] = &[Row {
    name: "grpc",
    title: "gRPC unary, first-time success, 1 KiB message",
    operations: 500,
    counted: true,
    timed: false,
    contenders: &[
        alone("bare-http", || each(Answers, fresh)),
        above("ours-http", "bare-http", || each(ours(Answers), fresh)),
        alone("bare", || each(Reads, || boxed(grpc()))),
        above("ours", "bare", || each(RetryLayer::grpc().layer(Reads), grpc)),
        alone("bare-encoded", || each(Reads, || boxed(grpc_encoded()))),
        above("ours-encoded", "bare-encoded", || {
            each(RetryLayer::grpc().layer(Reads), grpc_encoded)
        }),
        above("ours-by-config", "bare", || each(by_config().layer(Reads), grpc)),
    ],
}];

/// Boxes the body once more, as tonic's type makes every wrapper do.
fn boxed(request: Request<tonic::body::Body>) -> Request<tonic::body::Body> {
    // tonic does not box its own type again, so the body needs another type first.
    request.map(|body| tonic::body::Body::new(body.map_err(|error| error)))
}

/// Returns a service config with a throttle and a policy for the method that is called.
fn by_config() -> ServiceConfigLayer {
    let text = r#"{
        "methodConfig": [{
            "name": [{ "service": "shop.Orders" }],
            "retryPolicy": {
                "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "5s",
                "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]
            }
        }],
        "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
    }"#;
    ServiceConfigLayer::new(ServiceConfig::parse(text).unwrap())
}
