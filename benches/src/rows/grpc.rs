//! Unary gRPC calls that succeed at the first attempt, beside a fresh call of HTTP.

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use http::{HeaderValue, Method, Request, Version};
use http_body_util::{BodyExt, Full};
use reattempt::RetryLayer;
use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
use tokio::runtime::Builder;
use tonic::codec::{EncodeBody, EncodeBuf, Encoder};
use tower::Layer;
use tower_service::Service;

use super::call::each as called;
use super::{Row, Work, above, alone};
use crate::contenders::{KeepsLeast, ours};
use crate::inner::{Answers, Reads};
use crate::requests::{fresh, fresh_to, kilobyte};

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
        above("least-keeping", "bare", || each(KeepsLeast { inner: Reads, memory: Arc::default() }, grpc)),
        alone("bare-encoded", || each(Reads, || boxed(grpc_encoded()))),
        above("ours-encoded", "bare-encoded", || each(RetryLayer::grpc().layer(Reads), grpc_encoded)),
        above("ours-by-config", "bare", || each(by_config().layer(Reads), grpc)),
    ],
}];

/// Calls the service with one request after another, inside a runtime, as channels do. Ours reads a message at once
/// there.
fn each<S, R>(service: S, make: impl FnMut() -> R + 'static) -> Work
where
    S: Service<R> + 'static,
{
    let mut work = called(service, make);
    let runtime = Builder::new_current_thread().build().unwrap();
    Box::new(move |operations| {
        let _inside = runtime.enter();
        work(operations);
    })
}

/// Builds a fresh gRPC call with a message of 1 KiB and seven fields of metadata beside the
/// protocol's own two.
fn grpc() -> Request<tonic::body::Body> {
    let mut request = fresh_to("http://shop.example/shop.Orders/Put", Full::new(kilobyte()));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    let headers = request.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    request.map(tonic::body::Body::new)
}

/// Builds that call with the body of tonic's generated clients: a stream that encodes its one
/// message when it is read, without a size hint.
fn grpc_encoded() -> Request<tonic::body::Body> {
    let messages = tonic::codegen::tokio_stream::once(Ok(kilobyte()));
    let body = EncodeBody::new_client(Verbatim, messages, None, None);
    grpc().map(|_| tonic::body::Body::new(body))
}

/// An encoder that copies the message.
struct Verbatim;

impl Encoder for Verbatim {
    type Item = Bytes;
    type Error = tonic::Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        buffer.put(message);
        Ok(())
    }
}

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
