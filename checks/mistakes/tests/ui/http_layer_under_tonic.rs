//! The layer of HTTP around the channel of a generated gRPC client.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use reattempt::{RetryLayer, check};
use tonic::body::Body;
use tower::{Service, ServiceBuilder};

#[derive(Clone)]
struct Channel;

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

fn main() {
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service(Channel);
    check::<Request<Body>, _>(&client);
}
