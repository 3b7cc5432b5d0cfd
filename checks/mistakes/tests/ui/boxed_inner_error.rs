//! An inner service whose error is a `BoxError`: behind tower's `Timeout` or `Buffer`, say.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::{ReplayBody, RetryLayer};
use tower::{BoxError, ServiceBuilder};

async fn client(
    _: Request<ReplayBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    Ok(Response::default())
}

fn main() {
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service_fn(client);
    let _ = client.send(Request::new(Full::<Bytes>::default()));
}
