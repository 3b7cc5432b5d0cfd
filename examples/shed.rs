//! Load shedding in a server, and clients that return after the delay that it asks for.
//!
//! `cargo run --example shed`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, StatusCode, request::Parts};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::guard::Bulkhead;
use reattempt::retry::AttemptContext;
use reattempt::shed::ShedLayer;
use reattempt::{Report, RetryBudget, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let busiest = Arc::new(AtomicUsize::new(0));
    let server = server(Arc::clone(&busiest)).await?;

    // Every call must be served, so no budget ends the retries.
    let retries = RetryPolicy::http().max_attempts(20).budget(RetryBudget::unlimited());
    // The hook sends the attempt number, so that the server can count retries.
    let retries = retries.before_attempt(|head: &mut Parts, attempt: AttemptContext| {
        Box::pin(async move {
            head.headers.insert("x-envoy-attempt-count", attempt.number.into());
        })
    });
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retries))
        .service(Client::builder(TokioExecutor::new()).build_http());

    // Thirty concurrent calls to a server that handles four at a time.
    let calls = (1..=30).map(|_| {
        let client = client.clone();
        let request = Request::get(format!("http://{server}/")).body(Empty::<Bytes>::new());
        tokio::spawn(async move {
            let response = client.send(request?).await?;
            let retries = Report::of(&response).map_or(0, Report::retries);
            Ok::<_, BoxError>((response.status(), retries))
        })
    });
    let (mut served, mut retries) = (0, 0);
    for call in calls.collect::<Vec<_>>() {
        let (status, retried) = call.await??;
        served += usize::from(status == StatusCode::OK);
        retries += retried;
    }
    let busiest = busiest.load(Ordering::Relaxed);
    println!("{served} of 30 calls were served, after {retries} retries; at most {busiest} at once");
    assert!(busiest <= 4 && served >= 4 && retries > 0);
    Ok(())
}

/// Starts a server whose work takes 50 ms, and records how many calls it handles at once.
async fn server(busiest: Arc<AtomicUsize>) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let busy = Arc::new(AtomicUsize::new(0));
    let work = async move || {
        busiest.fetch_max(busy.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(50)).await;
        busy.fetch_sub(1, Ordering::Relaxed);
    };
    // `AdaptiveLimit` finds such a limit automatically.
    let app = Router::new().route("/", get(work)).layer(ShedLayer::http(Bulkhead::new(4)));
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(address)
}
