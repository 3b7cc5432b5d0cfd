//! A circuit breaker inside a retry layer: a failed server receives no more calls until a probe succeeds.
//!
//! `cargo run --example breaker`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::guard::handle::BreakerState;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{CircuitBreaker, GuardLayer, Refused};
use reattempt::{RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let seen = Arc::new(AtomicUsize::new(0));
    let server = failing_server(6, Arc::clone(&seen)).await?;

    // It opens at once, and for half a second, so that the example ends soon. By default, calls must have failed for
    // 2.5 s, and the open time grows from 1 s to 10 s.
    let breaker = CircuitBreaker::rate()
        .consecutive_failures(5)
        .min_failing_time(Duration::ZERO)
        .open_time(Duration::from_millis(500))
        .on_state_change(|change| println!("  {}: {} -> {}", change.destination, change.from, change.to));
    // The breaker is inside: it decides about every attempt. Its refusals are boxed errors.
    let retries = RetryPolicy::http().max_attempts(3).max_elapsed(Duration::from_millis(400));
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retries.boxed_errors()))
        .layer(GuardLayer::http(breaker.clone()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let get = || Request::get(format!("http://{server}/")).body(Empty::<Bytes>::new());

    let mut refusals = 0;
    for call in 1..=8 {
        match client.send(get()?).await {
            Ok(response) => println!("call {call}: {}", response.status()),
            Err(error) => match error.downcast_ref::<Refused>() {
                Some(refused) => {
                    refusals += 1;
                    println!("call {call}: {refused}");
                }
                None => return Err(error),
            },
        }
    }
    // The breaker opened after five failures in a row, and nothing has been sent since.
    assert_eq!(seen.load(Ordering::Relaxed), 5);
    assert!(refusals >= 3);
    assert_eq!(breaker.state(server.to_string()), BreakerState::Open);

    // The first probe fails, then the server recovers.
    let mut response = client.send(get()?).await;
    while response.as_ref().map_or(true, |response| response.status() != StatusCode::OK) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        response = client.send(get()?).await;
    }
    println!("at last: {}, after {} requests", response?.status(), seen.load(Ordering::Relaxed));
    Ok(())
}

/// Starts a server that is down for its first requests.
async fn failing_server(down: usize, seen: Arc<AtomicUsize>) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new().fallback(async move || match seen.fetch_add(1, Ordering::Relaxed) {
        number if number < down => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    });
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(address)
}
