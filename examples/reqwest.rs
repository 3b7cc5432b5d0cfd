//! `reqwest::Client` as a service in a retry layer, with a flaky server.
//!
//! `cargo run --example reqwest`

mod flaky_server;

use futures_util::stream;
use http::StatusCode;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Report, RetryLayer, StopReason};
use reqwest::Body;
use tokio::net::TcpSocket;
use tower::{BoxError, ServiceBuilder};

use flaky_server::flaky_server;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = flaky_server(&[503, 200, 503, 429, 200]).await?;

    // reqwest's own retries are turned off, so that attempts do not multiply.
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy().build()?;
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service(http.clone());

    // Requests are built as usual, and the response is reqwest's own.
    let request = http.get(format!("http://{server}/")).build()?;
    let response: reqwest::Response = client.send(request).await?;
    let report = response.extensions().get::<Report>().ok_or("a report of the retry")?;
    println!("GET: {}\n{report}\n", response.status());
    assert_eq!((response.status(), report.retries()), (StatusCode::OK, 1));

    // A stream, which reqwest alone could not send twice. This POST may be repeated; reqwest's requests have no public
    // extensions, so the option is set on a handle.
    let upload = Body::wrap_stream(stream::iter(["in ", "pieces"].map(Ok::<_, std::io::Error>)));
    let request = http.post(format!("http://{server}/upload")).body(upload).build()?;
    let repeatable = client.with_options(CallOptions::new().repeatable(true));
    let response = repeatable.send(request).await?;
    let report = response.extensions().get::<Report>().cloned().ok_or("a report of the retries")?;
    let echo = response.text().await?;
    println!("POST: {echo:?} after {} retries\n{report}\n", report.retries());
    assert_eq!((echo.as_str(), report.retries()), ("in pieces", 2));

    // The error is reqwest's own too, and its report is written to the caller's slot.
    let (slot, socket) = (ReportSlot::default(), TcpSocket::new_v4()?);
    socket.bind("127.0.0.1:0".parse()?)?;
    let request = http.get(format!("http://{}/", socket.local_addr()?)).build()?;
    let reported = client.with_options(CallOptions::new().report_to(&slot));
    let Err(error) = reported.send(request).await else {
        return Err("a server responded".into());
    };
    let report = slot.take().ok_or("a report of the error")?;
    println!("No server: {error}\n{report}");
    assert!(error.is_connect() && report.stop_reason() == StopReason::AttemptsExhausted);
    Ok(())
}
