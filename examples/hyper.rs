//! hyper-util's client in a retry layer, with a flaky server.
//!
//! `cargo run --example hyper`

mod flaky_server;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::classify::IDEMPOTENCY_KEY;
use reattempt::{Report, RetryLayer};
use tower::{BoxError, ServiceBuilder};

use flaky_server::flaky_server;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = flaky_server(&[503, 429, 200, 503, 503, 200]).await?;

    // The retry layer. It accepts every body type that the client accepts.
    let client =
        ServiceBuilder::new().layer(RetryLayer::http()).service(Client::builder(TokioExecutor::new()).build_http());

    // A PUT may be repeated. Its body is saved while it streams, and sent again from the start.
    let request = Request::put(format!("http://{server}/note")).body(streamed())?;
    let response = client.send(request).await?;
    let report = response.extensions().get::<Report>().cloned().ok_or("a report of the retries")?;
    let echo = response.into_body().collect().await?.to_bytes();
    println!("PUT: {echo:?} after {} retries\n{report}\n", report.retries());
    assert_eq!((report.retries(), &echo[..]), (2, &b"hello world"[..]));

    // A POST might be processed twice, so its 503 is returned to the caller.
    let request = Request::post(format!("http://{server}/order")).body(streamed())?;
    let response = client.send(request).await?;
    let report = response.extensions().get::<Report>().ok_or("a report of the refusal")?;
    println!("POST: {}\n{report}\n", response.status());
    assert_eq!((response.status(), report.retries()), (StatusCode::SERVICE_UNAVAILABLE, 0));

    // With an idempotency key the server recognises the repeated POST.
    let request =
        Request::post(format!("http://{server}/order")).header(IDEMPOTENCY_KEY, "order-17").body(streamed())?;
    let response = client.send(request).await?;
    let report = response.extensions().get::<Report>().ok_or("a report of the retry")?;
    println!("POST with a key: {}\n{report}", response.status());
    assert_eq!((response.status(), report.retries()), (StatusCode::OK, 1));
    Ok(())
}

/// Returns a body that arrives in pieces.
fn streamed() -> StreamBody<impl stream::Stream<Item = Result<Frame<Bytes>, std::io::Error>>> {
    let pieces = ["hello ", "world"].map(|piece| Ok(Frame::data(Bytes::from(piece))));
    StreamBody::new(stream::iter(pieces))
}
