//! A layer outside hides the bound that does not hold: `check` names it.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::{RetryLayer, check};
use tower::ServiceBuilder;

fn main() {
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new()
        .timeout(Duration::from_secs(1))
        .layer(RetryLayer::http())
        .service(client);
    check::<Request<Full<Bytes>>, _>(&client);
}
