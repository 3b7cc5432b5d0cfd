//! An inner service that cannot be cloned.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::{ReplayBody, RetryLayer};
use tower::{Layer, Service};

struct Client;

impl Service<Request<ReplayBody<Full<Bytes>>>> for Client {
    type Response = Response<Full<Bytes>>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<ReplayBody<Full<Bytes>>>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

fn main() {
    let client = RetryLayer::http().layer(Client);
    let _ = client.send(Request::new(Full::<Bytes>::default()));
}
