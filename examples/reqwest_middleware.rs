//! A reqwest-middleware client whose calls are retried, with a flaky server.
//!
//! `cargo run --example reqwest_middleware`

mod flaky_server;

use std::time::Duration;

use futures_util::stream;
use reattempt::schedule::Exponential;
use reattempt::{CallOptions, Report, RetryPolicy};
use reattempt_reqwest_middleware::{CallError, ReattemptMiddleware};
use reqwest::{Body, StatusCode};
use reqwest_middleware::ClientBuilder;
use tokio::net::TcpSocket;
use tower::BoxError;

use flaky_server::flaky_server;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = flaky_server(&[503, 200, 503, 429, 200]).await?;

    // reqwest's own retries are turned off, so that attempts do not multiply.
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy().build()?;
    // The two lines that replace reqwest-retry:
    //   let retries = ExponentialBackoff::builder().build_with_max_retries(3);
    //   .with(RetryTransientMiddleware::new_with_policy(retries))
    let retries = RetryPolicy::http().backoff(Exponential::full_jitter(Duration::from_millis(50))).max_attempts(4);
    let client = ClientBuilder::new(http).with(ReattemptMiddleware::new(retries)).build();

    // Code that makes calls needs no change.
    let response = client.get(format!("http://{server}/")).send().await?;
    let report = response.extensions().get::<Report>().ok_or("a report of the retry")?;
    println!("GET: {}\n{report}\n", response.status());
    assert_eq!((response.status(), report.retries()), (StatusCode::OK, 1));

    // A stream, which reqwest-retry rejects. This POST may be repeated.
    let upload = Body::wrap_stream(stream::iter(["in ", "pieces"].map(Ok::<_, std::io::Error>)));
    let response = client
        .post(format!("http://{server}/upload"))
        .body(upload)
        .with_extension(CallOptions::new().repeatable(true))
        .send()
        .await?;
    let echo = response.text().await?;
    println!("POST: {echo:?}\n");
    assert_eq!(echo, "in pieces");

    // The error contains the report and reqwest's own error.
    let socket = TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let Err(error) = client.get(format!("http://{}/", socket.local_addr()?)).send().await else {
        return Err("a server responded".into());
    };
    let call = CallError::of(&error).ok_or("an error of the call")?;
    println!("No server: {error}\n{}", call.report().ok_or("a report of the error")?);
    assert!(call.reqwest().is_some_and(reqwest::Error::is_connect));
    Ok(())
}
