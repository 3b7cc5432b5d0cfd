//! A headless Kubernetes service with tonic: a channel for each pod, below a generated client.
//!
//! `cargo run --example endpoints_tonic`

mod five_servers;

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::time::Duration;

use reattempt::endpoints::Endpoints;
use reattempt::{RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tonic::Status;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server, Uri};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::util::MapFutureLayer;
use tower::{BoxError, Layer};

use five_servers::Turns;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let servers = five_servers::start(serve).await?;

    // In a program: Endpoints::dns("orders.default.svc:50051", Duration::from_secs(5))?
    // A headless service resolves to its pods, and is looked up again when one of them fails.
    let pods = servers.each_ref().map(|server| server.address);
    let pods = Endpoints::look_up(Duration::from_secs(5), move || ready(Ok::<_, Infallible>(pods)));

    // Requests keep the service's name as their origin; with TLS, set `domain_name` to it too.
    let service = Uri::from_static("http://orders.default.svc:50051");
    let channel = move |pod: SocketAddr| -> Channel {
        let endpoint = Endpoint::from(Uri::try_from(format!("http://{pod}")).unwrap_or_default());
        endpoint.origin(service.clone()).connect_lazy()
    };
    let balanced = pods.connect(channel).grpc();
    let endpoints = balanced.endpoints();
    // A health check only reads, so it may be repeated.
    let retries = RetryLayer::new(RetryPolicy::grpc().repeatable(true));
    let client = HealthClient::new(retries.layer(balanced));

    five_servers::call_and_print(&servers, &endpoints, || {
        let mut client = client.clone();
        async move { Ok(client.check(HealthCheckRequest::default()).await?) }
    })
    .await
}

/// Serves the health service. A failed call is UNAVAILABLE.
fn serve(listener: TcpListener, turns: Turns) {
    let slow_or_failing = MapFutureLayer::new(move |answer| {
        let turns = turns.clone();
        async move { if turns.take().await { answer.await } else { Ok(Status::unavailable("overloaded").into_http()) } }
    });
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(slow_or_failing).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
}
