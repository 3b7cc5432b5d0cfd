//! A client-side rate limit: calls wait for their turn, or are refused with the time of the next one.
//!
//! `cargo run --example rate_limit`

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::guard::{GuardLayer, Limit, RateLimit, Refused};
use reattempt::{Deadline, Report, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = server().await?;
    let http = Client::builder(TokioExecutor::new()).build_http();
    let get = || Request::get(format!("http://{server}/")).body(Empty::<Bytes>::new());

    // Two calls at once, then one every 50 ms. Calls without a token wait in a queue.
    let limit = RateLimit::new(Limit::per_second(20), 2);
    let client = ServiceBuilder::new().layer(GuardLayer::http(limit.clone())).service(http.clone());
    let started = Instant::now();
    for call in 1..=5 {
        let response = client.send(get()?).await?;
        println!("call {call}: {} after {:.0?}", response.status(), started.elapsed());
    }
    assert!(started.elapsed() >= Duration::from_millis(145));

    // A call whose wait would pass its deadline is refused at once.
    let mut hurried = get()?;
    hurried.extensions_mut().insert(Deadline::after(Duration::from_millis(10)));
    let error = client.send(hurried).await.err().ok_or("no token comes so soon")?;
    println!("in a hurry: {}", refusal(&error)?);

    // Without a queue, calls are refused.
    let limit = RateLimit::new(Limit::per_second(20), 1).no_queue();
    let guard = GuardLayer::http(limit);
    let client = ServiceBuilder::new().layer(guard.clone()).service(http.clone());
    client.send(get()?).await?;
    let error = client.send(get()?).await.err().ok_or("the only token is taken")?;
    println!("without a queue: {}", refusal(&error)?);
    assert!(refusal(&error)?.wait().is_some());

    // A retry layer waits for the time that the refusal contains. It costs the server and the budget nothing.
    let retries = RetryPolicy::http().boxed_errors();
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retries))
        .layer(guard)
        .service(Client::builder(TokioExecutor::new()).build_http());
    let response = client.send(get()?).await?;
    let report = Report::of(&response).ok_or("it was sent once more")?;
    println!("with retries: {}\n{report}", response.status());
    assert_eq!(response.status(), StatusCode::OK);
    Ok(())
}

fn refusal(error: &BoxError) -> Result<&Refused, &'static str> {
    error.downcast_ref().ok_or("another error than a refusal")
}

/// Starts a server that accepts every request.
async fn server() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new().fallback(async || StatusCode::OK);
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(address)
}
