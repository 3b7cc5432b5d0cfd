//! A download that goes on after its connection broke, and one whose file changed meanwhile.
//!
//! `cargo run --example resume`

use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::report::ReportSlot;
use reattempt::resume::ResumeLayer;
use reattempt::{CallOptions, RetryBudget, RetryLayer, RetryPolicy, StopReason};
use reattempt_faults::{End, Reply, Server};
use tower::{BoxError, ServiceBuilder};

const TEXT: &str = "It is a truth universally acknowledged, that a download in possession of a good tag must go on.";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // A server that closes the connection in the middle of the body, is busy for a moment, and then sends the rest. Its
    // file changes during the second download.
    let (old, new) = (HeaderValue::from_static("\"1\""), HeaderValue::from_static("\"2\""));
    let range = HeaderValue::try_from(format!("bytes 20-{}/{}", TEXT.len() - 1, TEXT.len()))?;
    let whole = Reply::status(StatusCode::OK).header(ETAG, old.clone()).body(TEXT);
    let head = format!("HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: {}\r\n\r\n", TEXT.len()).len();
    let broken = whole.cut(head + 20).end_with(End::Close);
    let rest = Reply::status(StatusCode::PARTIAL_CONTENT).header(ETAG, old).header(CONTENT_RANGE, range);
    let script = vec![
        broken.clone(),
        Reply::status(StatusCode::SERVICE_UNAVAILABLE),
        rest.body(&TEXT.as_bytes()[20..]),
        broken,
        Reply::status(StatusCode::OK).header(ETAG, new).body("Call me Ishmael."),
    ];
    let server = Server::http1(script).await?;

    let budget = RetryBudget::default();
    let client = ServiceBuilder::new()
        .layer(ResumeLayer::http().budget(budget.clone()))
        .layer(RetryLayer::new(RetryPolicy::http().budget(budget)))
        .service(Client::builder(TokioExecutor::new()).build_http());

    let slot = ReportSlot::default();
    let request = || {
        let options = CallOptions::new().report_to(&slot);
        Request::get(server.url("/novel")).extension(options).body(Empty::<Bytes>::new())
    };
    let response = client.send(request()?).await?;
    let text = response.into_body().collect().await?.to_bytes();
    let report = slot.take().ok_or("a report of the resumes")?;
    println!("{} bytes without a gap\n{report}\n", text.len());
    assert_eq!((text, report.stop_reason()), (Bytes::from(TEXT), StopReason::Succeeded));

    let response = client.send(request()?).await?;
    let Err(error) = response.into_body().collect().await else {
        return Err("two versions were joined".into());
    };
    let report = slot.take().ok_or("a report of the break")?;
    println!("the file has changed: {error}\n{report}");
    assert_eq!(report.stop_reason(), StopReason::Permanent);
    server.finish()?;
    Ok(())
}
