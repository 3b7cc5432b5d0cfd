//! A body whose data is not `Bytes`.

use std::collections::VecDeque;

use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::RetryLayer;
use tower::ServiceBuilder;

fn main() {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::http())
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = client.send(Request::new(Full::new(VecDeque::from([1_u8]))));
}
