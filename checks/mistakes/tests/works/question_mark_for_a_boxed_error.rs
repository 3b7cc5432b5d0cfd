//! `?` for the error of a stack, in a function with the README's signature.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::standard::StandardLayer;
use tower::{BoxError, ServiceBuilder};

async fn call() -> Result<(), BoxError> {
    let client = ServiceBuilder::new()
        .layer(StandardLayer::http())
        .service(Client::builder(TokioExecutor::new()).build_http());
    client.send(Request::new(Full::<Bytes>::default())).await?;
    Ok(())
}

fn main() {
    let _ = call();
}
