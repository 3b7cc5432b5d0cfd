//! A layer that is there or not, by a setting: its service has another type then.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::{ReplayBody, RetryLayer};
use tower::ServiceBuilder;

async fn client(_: Request<ReplayBody<Full<Bytes>>>) -> Result<Response<Full<Bytes>>, std::io::Error> {
    Ok(Response::default())
}

fn main() {
    let retries = std::env::args().count() > 1;
    let client = ServiceBuilder::new()
        .option_layer(retries.then(RetryLayer::http))
        .service_fn(client);
    let _ = client.send(Request::new(Full::<Bytes>::default()));
}
