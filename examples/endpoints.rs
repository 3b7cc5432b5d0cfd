//! One client over five servers: a dead one, a slow one, one that fails every second call, and two good ones.
//!
//! `cargo run --example endpoints`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::endpoints::EndpointsLayer;
use reattempt::{RetryLayer, RetryPolicy};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, interval, sleep};
use tower::{BoxError, ServiceBuilder};

const CALLS: usize = 600;

struct Server {
    title: &'static str,
    address: SocketAddr,
    seen: Arc<AtomicUsize>,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // It is bound and does not listen, so connections to it are refused.
    let dead = TcpSocket::new_v4()?;
    dead.bind("127.0.0.1:0".parse()?)?;
    let refuses = Server { title: "dead", address: dead.local_addr()?, seen: Arc::default() };
    let servers = [
        refuses,
        start("slow, 200 ms", Duration::from_millis(200), false).await?,
        start("fails every second call", Duration::from_millis(4), true).await?,
        start("good", Duration::from_millis(4), false).await?,
        start("good", Duration::from_millis(4), false).await?,
    ];

    let urls = servers.each_ref().map(|server| format!("http://{}", server.address));
    let layer = EndpointsLayer::http(urls)?;
    let endpoints = layer.endpoints();
    endpoints.observe(|event| println!("  {event}"));
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::http().boxed_errors()))
        .layer(layer)
        .service(Client::builder(TokioExecutor::new()).build_http());

    // A path is enough: the layer adds scheme, host and port.
    let call = || {
        let client = client.clone();
        async move {
            let request = Request::get("/").body(Empty::<Bytes>::new())?;
            let response = client.send(request).await?;
            let is_well = response.status() == StatusCode::OK;
            response.into_body().collect().await?;
            Ok::<_, BoxError>(is_well)
        }
    };
    let started = Instant::now();
    let (mut ticks, mut calls) = (interval(Duration::from_millis(5)), FuturesUnordered::new());
    for _ in 0..CALLS {
        ticks.tick().await;
        calls.push(tokio::spawn(call()));
    }
    let mut well = 0;
    while let Some(done) = calls.next().await {
        well += usize::from(done?.unwrap_or(false));
    }
    println!("{well} of {CALLS} calls succeeded in {:.1} s\n", started.elapsed().as_secs_f64());

    println!("{:<24}{:>10}{:>12}{:>10}", "server", "requests", "latency", "failing");
    for (server, view) in servers.iter().zip(endpoints.view()) {
        let seen = match server.seen.load(Ordering::Relaxed) {
            0 => "-".to_owned(),
            seen => seen.to_string(),
        };
        let latency = view.latency.map_or("-".into(), |time| format!("{} ms", time.as_millis()));
        let failing = format!("{:.0} %", view.failing * 100.0);
        println!("{:<24}{seen:>10}{latency:>12}{failing:>10}", server.title);
    }
    assert!(well * 100 >= CALLS * 99, "the good servers take nearly all calls");
    let [.., one, other] = servers.each_ref().map(|server| server.seen.load(Ordering::Relaxed));
    assert!(one + other > CALLS / 2);
    Ok(())
}

/// Starts a server that answers after a time, and fails every second call if it is to.
async fn start(title: &'static str, after: Duration, fails: bool) -> Result<Server, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, seen) = (listener.local_addr()?, Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&seen);
    let app = Router::new().fallback(async move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        sleep(after).await;
        if fails && number % 2 == 0 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
    });
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(Server { title, address, seen })
}
