//! The standard stack in one line: retries, a circuit breaker, a limit on calls in flight and time limits.
//!
//! `cargo run --example standard`

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{Bulkhead, CircuitBreaker, Refused};
use reattempt::standard::{StandardClient, StandardLayer};
use reattempt::{ReplayBody, Report, RetryPolicy};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};

/// The application, which stores its client by type.
struct App {
    client: StandardClient<Client<HttpConnector, ReplayBody<Empty<Bytes>>>>,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = server().await?;
    let http = Client::builder(TokioExecutor::new()).build_http();
    let get = |path| Request::get(format!("http://{server}/{path}")).body(Empty::<Bytes>::new());

    // All defaults.
    let client = ServiceBuilder::new().layer(StandardLayer::http()).service(http.clone());
    let app = App { client };
    let response = app.client.send(get("well")?).await?;
    println!("with every default: {}", response.status());
    assert_eq!(response.status(), StatusCode::OK);

    // Custom parts. A setting that contradicts another one is an error.
    // This breaker opens at once, and for 10 s from the first time on, so that the example ends soon.
    let breaker =
        CircuitBreaker::rate().consecutive_failures(5).min_failing_time(Duration::ZERO).first_open_time(Duration::ZERO);
    let layer = StandardLayer::http()
        .retry(RetryPolicy::http().max_attempts(2).boxed_errors())
        .attempt_timeout(Duration::from_millis(200))
        .total_time(Duration::from_secs(5))
        .limits(breaker.clone(), Bulkhead::new(16))
        .checked()?;
    let contradiction = layer.clone().attempt_timeout(Duration::from_secs(9)).checked().err();
    println!("refused: {}", contradiction.ok_or("a contradiction")?);
    let client = ServiceBuilder::new().layer(layer).service(http);

    // The server hangs. Each attempt times out, which the breaker counts; then nothing is sent any more.
    for call in 1..=3 {
        match client.send(get("hangs")?).await {
            Ok(response) => println!("call {call}: {:?}", response.extensions().get::<Report>()),
            Err(error) => println!("call {call}: {error}"),
        }
    }
    let error = client.send(get("well")?).await.err().ok_or("the breaker is open")?;
    assert!(error.is::<Refused>());
    println!("the breaker is {}", breaker.state(server.to_string()));
    Ok(())
}

/// Starts a server with one path that responds and one that never does.
async fn server() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new()
        .route("/well", axum::routing::get(async || "well"))
        .route("/hangs", axum::routing::get(std::future::pending::<&str>));
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(address)
}
