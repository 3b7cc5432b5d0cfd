//! A client that takes one body type. Its attempts have another one.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::RetryLayer;
use tower::ServiceBuilder;

fn main() {
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service(client);
    let _ = client.send(Request::new(Full::<Bytes>::default()));
}
