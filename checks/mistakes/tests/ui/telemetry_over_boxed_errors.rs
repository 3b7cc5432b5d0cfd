//! Telemetry around a stack whose error is a `BoxError`: `check` names the remedy.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::check;
use reattempt::standard::StandardLayer;
use reattempt::telemetry::HttpTelemetry;
use tower::ServiceBuilder;

fn main() {
    let client = ServiceBuilder::new()
        .layer(HttpTelemetry::new().around(StandardLayer::http()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    check::<Request<Full<Bytes>>, _>(&client);
}
