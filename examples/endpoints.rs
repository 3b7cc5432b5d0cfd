//! Base URLs with reqwest: one client over five servers, three of which are faulty.
//!
//! `cargo run --example endpoints`. Also `endpoints_dns`, `endpoints_tonic` and `endpoints_discover`.

mod five_servers;
mod http_server;

use reattempt::endpoints::EndpointsLayer;
use reattempt::{RetryLayer, RetryPolicy};
use reqwest::redirect::Policy;
use tower::{BoxError, ServiceBuilder};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let servers = five_servers::start(http_server::serve).await?;
    let urls = servers.each_ref().map(|server| format!("http://{}/api", server.address));

    // The layer replaces the base of each request, which is the first URL here, with that of the picked endpoint.
    let layer = EndpointsLayer::http(&urls)?;
    let endpoints = layer.endpoints();
    // reqwest's own retries are turned off, so that attempts do not multiply. reqwest follows no redirects, so a
    // refused connection proves that a request was not sent.
    let http = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).redirect(Policy::none()).build()?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::http().protocol(|http| http.redirects_below(false)).boxed_errors()))
        .layer(layer)
        .service(http);

    let url = reqwest::Url::parse(&format!("{}/orders", urls[0]))?;
    five_servers::call_and_print(&servers, &endpoints, || {
        let request = reqwest::Request::new(reqwest::Method::GET, url.clone());
        let client = client.clone();
        async move { Ok(client.send(request).await?.error_for_status()?.bytes().await?) }
    })
    .await
}
