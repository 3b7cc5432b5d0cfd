//! Custom schedules: a Fibonacci implementation of the contract, and a schedule from an iterator.
//!
//! `cargo run --example custom_schedule`

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::schedule::{Delays, Iterated, Jitter, NextRetry, Random, Schedule, ScheduleExt};
use reattempt::{Report, RetryBudget, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};

/// A schedule of 1, 1, 2, 3, 5, 8 … times a unit. All calls share the schedule.
#[derive(Debug, Clone, Copy)]
struct Fibonacci {
    unit: Duration,
}

/// The state of one call: its next two delays.
#[derive(Debug)]
struct FibonacciDelays(Duration, Duration);

impl Schedule for Fibonacci {
    type Delays = FibonacciDelays;

    fn delays(&self) -> FibonacciDelays {
        FibonacciDelays(self.unit, self.unit)
    }
}

impl Delays for FibonacciDelays {
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        // Saturating, because a schedule must not overflow.
        let next = self.0.saturating_add(self.1);
        Some(std::mem::replace(&mut self.0, std::mem::replace(&mut self.1, next)))
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let unit = Duration::from_millis(10);

    let report = call_in_vain(Fibonacci { unit }).await?;
    println!("Fibonacci\n{report}\n");
    let delays: Vec<_> = report.attempts().iter().filter_map(|attempt| attempt.delay).collect();
    assert_eq!(delays, [1, 1, 2, 3, 5].map(|times| unit * times));

    // Any iterator is a schedule, including those of other crates; retries end when it ends. A cap
    // and jitter can wrap any schedule.
    let squares = Iterated::new(move || (1..=4).map(move |n| unit * n * n));
    let report = call_in_vain(squares.capped(unit * 9).jittered(Jitter::full())).await?;
    println!("squares, at most 90 ms, jittered\n{report}");
    assert_eq!(report.retries(), 4);
    assert!(report.attempts().iter().filter_map(|attempt| attempt.delay).all(|d| d <= unit * 9));
    Ok(())
}

/// Calls a server that always fails; only the delays matter here.
async fn call_in_vain(schedule: impl Schedule + Clone) -> Result<Report, BoxError> {
    // The default budget ends a run of failures after three retries.
    let policy = RetryPolicy::http().backoff(schedule).max_attempts(6).budget(RetryBudget::unlimited());
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let request = Request::get(format!("http://{}/", failing_server().await?));
    let response = client.send(request.body(Empty::<bytes::Bytes>::new())?).await?;
    response.extensions().get::<Report>().cloned().ok_or("a report of the retries".into())
}

async fn failing_server() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new().fallback(async || StatusCode::SERVICE_UNAVAILABLE);
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}
