//! tower's `Discover`, such as a stream of changes: servers join during the calls, and one leaves.
//!
//! `cargo run --example endpoints_discover`

mod five_servers;
mod http_server;

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use reattempt::endpoints::Endpoints;
use reattempt::{RetryLayer, RetryPolicy};
use reqwest::{Client, Method, Request, Url};
use tokio::time::sleep;
use tower::discover::Change;
use tower::{BoxError, Layer};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let servers = five_servers::start(http_server::serve).await?;

    // Each endpoint has a key and its own client, here one that knows the address.
    let client_of = |server: &five_servers::Server| {
        Client::builder().no_proxy().retry(reqwest::retry::never()).resolve("orders.example", server.address).build()
    };
    let mut changes = vec![Ok(Change::Insert("leaves soon".to_owned(), client_of(&servers[3])?))];
    for server in servers.iter().rev() {
        changes.push(Ok::<_, BoxError>(Change::Insert(server.address.to_string(), client_of(server)?)));
    }
    changes.push(Ok(Change::Remove("leaves soon".to_owned())));
    let changes = stream::iter(changes).then(async |change| {
        sleep(Duration::from_millis(100)).await;
        change
    });
    let balanced = Endpoints::discover(Box::pin(changes)).http();
    let endpoints = balanced.endpoints();
    let client = RetryLayer::new(RetryPolicy::http().boxed_errors()).layer(balanced);

    let url: Url = "http://orders.example/7".parse()?;
    five_servers::call_and_print(&servers, &endpoints, || {
        let (client, request) = (client.clone(), Request::new(Method::GET, url.clone()));
        async move { Ok(client.send(request).await?.error_for_status()?.bytes().await?) }
    })
    .await
}
