//! A field whose type is the client as it was before the layer.

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use http::Request;
use reattempt::{Retry, RetryLayer};
use tower::ServiceBuilder;

struct App {
    client: Retry<Client<HttpConnector, Full<Bytes>>>,
}

fn main() {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::http())
        .service(Client::builder(TokioExecutor::new()).build_http());
    let app = App { client };
    let _ = app.client.send(Request::new(Full::<Bytes>::default()));
}
