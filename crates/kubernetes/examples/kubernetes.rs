//! The pods of a service: one becomes ready, and one terminates. The API server is scripted, so no cluster is needed.
//! In a cluster, its client is `kube::Client::try_default()`.
//!
//! `cargo run -p reattempt-kubernetes --example kubernetes`

#![allow(clippy::unwrap_used, reason = "the scripted API server is that of the tests")]

#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../tests/it/api.rs"]
mod api;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::iter::once;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use reattempt::{ReplayBody, RetryLayer, RetryPolicy};
use reattempt_kubernetes::{EndpointSlices, Pod};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tower::{BoxError, Layer, service_fn};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let pods = [serve("orders-a").await?, serve("orders-b").await?, serve("orders-c").await?];
    let api = api::Api::default();
    // Each server has a port of its own here, so each is in a slice of its own.
    let set = |pod: usize, is_ready: bool, terminating: bool| {
        api.apply(json!({
            "metadata": { "name": format!("orders-{pod}") },
            "addressType": "IPv4",
            "ports": [{ "name": "http", "port": pods[pod].port() }],
            "endpoints": [{
                "addresses": [pods[pod].ip().to_string()],
                "conditions": { "ready": is_ready, "serving": is_ready || terminating, "terminating": terminating },
            }],
        }));
    };
    set(0, true, false);
    set(1, true, false);
    set(2, false, false);

    let balanced = EndpointSlices::new(api.client(), "shop", "orders")?
        .port("http")
        .connect(|pod: &Pod| {
            let address = pod.address();
            let fixed = service_fn(move |_: Name| ready(Ok::<_, Infallible>(once(address))));
            Client::builder(TokioExecutor::new())
                .build::<_, ReplayBody<Full<Bytes>>>(HttpConnector::new_with_resolver(fixed))
        })
        .observe(|event| println!("event: {event}"))
        .http();
    let client = RetryLayer::new(RetryPolicy::http().boxed_errors()).layer(balanced);
    let answers = async || -> Result<(), BoxError> {
        let mut answers = BTreeMap::<String, usize>::new();
        for _ in 0..300 {
            let response = client.send(Request::get("http://orders.shop/7").body(Full::<Bytes>::default())?).await?;
            let body = response.into_body().collect().await?.to_bytes();
            *answers.entry(String::from_utf8_lossy(&body).into_owned()).or_default() += 1;
        }
        println!("300 calls: {answers:?}\n");
        Ok(())
    };

    answers().await?;
    println!("orders-c becomes ready");
    set(2, true, false);
    sleep(Duration::from_millis(50)).await;
    answers().await?;
    println!("orders-a terminates, and still answers");
    set(0, false, true);
    sleep(Duration::from_millis(50)).await;
    answers().await
}

/// Starts a server that responds with its name.
async fn serve(name: &'static str) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // Requests have no body, and each comes in one piece.
                while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len());
                    if stream.write_all(response.as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(address)
}
