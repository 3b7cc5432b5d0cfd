//! Downloads that go on, over real connections that the fault kit breaks.

mod clients;
mod endpoints;
mod wire;

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG};
use http::{HeaderValue, StatusCode};
use reattempt::RetryBudget;
use reattempt::resume::ResumeLayer;
use reattempt::schedule::Constant;
use reattempt_faults::Reply;

/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(120);

const LENGTH: usize = 4096;

/// Returns the content of a version. No version has the byte of another at any position.
fn content(version: u8) -> Bytes {
    (0..LENGTH).map(|at| u8::try_from(at % 83).unwrap() * 3 + version).collect()
}

/// Returns the layer without delays, whose budget grants everything.
fn layer() -> ResumeLayer<Constant, RetryBudget> {
    ResumeLayer::http().backoff(Constant::immediate()).budget(RetryBudget::unlimited())
}

fn tag(version: u8) -> HeaderValue {
    format!("\"{version}\"").parse().unwrap()
}

/// Returns a reply with a whole version. The kit's HTTP/2 server sends a length only if it is set.
fn whole(version: u8) -> Reply {
    Reply::status(StatusCode::OK).header(ETAG, tag(version)).body(content(version)).content_length(4096)
}

/// Returns a reply with the rest of a version.
fn rest(version: u8, start: usize) -> Reply {
    let range = format!("bytes {start}-{}/{LENGTH}", LENGTH - 1).parse().unwrap();
    let reply = Reply::status(StatusCode::PARTIAL_CONTENT).header(ETAG, tag(version)).header(CONTENT_RANGE, range);
    reply.body(content(version).slice(start..))
}

/// The number of bytes in the head of [`whole`] over HTTP/1.1, which `Reply::cut` counts.
fn head() -> usize {
    "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 4096\r\n\r\n".len()
}
