//! Metrics of a client with retries, scraped from its own `/metrics` page.
//!
//! A server fails every fourth request, and every request for two seconds in the middle. The client retries with a
//! budget. Its program serves the metrics in Prometheus's text format, scrapes them once at the end, and prints what a
//! person would look at.
//!
//! `cargo run -p telemetry-example --example telemetry` takes seven seconds. With `-- --prometheus prometheus --html
//! panels.html`, a real Prometheus (its program is named) scrapes the client meanwhile. Then each panel of
//! `grafana.json` is asked for, and an empty one is an error.

mod dashboard;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use reattempt::schedule::Exponential;
use reattempt::telemetry::{BudgetMetrics, HttpTelemetry};
use reattempt::{RetryBudget, RetryPolicy};
use tokio::net::TcpListener;
use tokio::time::{Instant, interval};
use tower::ServiceBuilder;

use dashboard::Prometheus;

/// The length of the run, and the part in which every request fails.
const RUN: Duration = Duration::from_secs(7);
const OUTAGE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(5)];

const CALLS_PER_SECOND: u32 = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut program, mut page) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--prometheus" => program = Some(PathBuf::from(value)),
            "--html" => page = Some(PathBuf::from(value)),
            _ => return Err(format!("{name}: known are --prometheus PROGRAM and --html FILE").into()),
        }
    }

    let registry = Registry::new();
    let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build()?;
    let provider = SdkMeterProvider::builder().with_reader(exporter).build();
    let metrics = serve(Router::new().route("/metrics", get(async move || text(&registry)))).await?;
    let prometheus = match &program {
        Some(program) => Some(Prometheus::start(program, metrics).await?),
        None => None,
    };

    let budget = RetryBudget::percent(20);
    BudgetMetrics::new(&provider).record("orders", &budget);
    let telemetry = HttpTelemetry::new().metrics(&provider);
    let policy =
        RetryPolicy::http().backoff(Exponential::from_millis(20)).budget(budget).observe_with(telemetry.clone());
    let http = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build()?;
    let client = ServiceBuilder::new().layer(telemetry.around(policy)).service(http.clone());

    let server = failing_server().await?;
    let (began, mut tick) = (Instant::now(), interval(Duration::from_secs(1) / CALLS_PER_SECOND));
    let mut calls = Vec::new();
    while began.elapsed() < RUN {
        tick.tick().await;
        let request = http.get(format!("http://{server}/orders/7")).build()?;
        calls.push(tokio::spawn(client.send(request)));
    }
    let mut succeeded = 0;
    for call in &mut calls {
        succeeded += usize::from(call.await?.is_ok_and(|response| response.status().is_success()));
    }
    println!("{succeeded} of {} calls succeeded", calls.len());

    let scraped = http.get(format!("http://{metrics}/metrics")).send().await?.text().await?;
    let kept = ["reattempt_", "http_client_request_duration_seconds_count"];
    for line in scraped.lines().filter(|line| kept.iter().any(|name| line.starts_with(name))) {
        if !line.contains("_bucket{") {
            println!("{line}");
        }
    }
    for name in ["http_client_request_duration_seconds_bucket", "reattempt_retries_total", "reattempt_budget_lowest"] {
        assert!(scraped.contains(name), "the scrape has no {name}");
    }

    if let Some(prometheus) = prometheus {
        let panels = prometheus.panels(&http).await?;
        println!("{} panels of the dashboard have data", panels.len());
        if let Some(page) = page {
            std::fs::write(&page, dashboard::html(&panels)?)?;
            println!("wrote {}", page.display());
        }
    }
    Ok(())
}

/// Returns the metrics in Prometheus's text format.
fn text(registry: &Registry) -> Result<String, (StatusCode, String)> {
    let failed = |error: prometheus::Error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    TextEncoder::new().encode_to_string(&registry.gather()).map_err(failed)
}

/// Starts a server that fails every fourth request, and every one in the outage.
async fn failing_server() -> Result<SocketAddr, Box<dyn Error>> {
    let (began, count) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let orders = get(async move || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let outage = OUTAGE[0] <= began.elapsed() && began.elapsed() < OUTAGE[1];
        match outage || number % 4 == 3 {
            true => StatusCode::SERVICE_UNAVAILABLE,
            false => StatusCode::OK,
        }
    });
    serve(Router::new().route("/orders/{id}", orders)).await
}

/// Serves on a free port until the program ends.
async fn serve(router: Router) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
