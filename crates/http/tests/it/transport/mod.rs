//! Tests that provoke each transport error for real, on loopback, and check its verdict.

mod callers_own;
mod connectors;
mod crowd;
mod http1;
mod http2;
mod proxies;
#[cfg(feature = "reqwest")]
mod reqwest_client;
#[cfg(feature = "reqwest")]
mod reqwest_proxies;
mod server;
mod tls;
#[cfg(feature = "tonic")]
mod tonic_channel;
#[cfg(feature = "ureq")]
mod ureq_client;

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reattempt_core::{Failure, FailureKind, Fault, Undone, Verdict};
use reattempt_http::{fault_of_error, reset_reason, undone, verdict_of_error};

const NOT_CONNECTED: Verdict = Verdict::NotProcessed(Failure::new(FailureKind::Connect));
const REFUSED: Verdict = Verdict::NotProcessed(Failure::new(FailureKind::Network));
const LOST: Verdict = Verdict::Transient(Failure::new(FailureKind::Network));
const TIMED_OUT: Verdict = Verdict::Transient(Failure::new(FailureKind::Timeout));

type Body = BoxBody<Bytes, std::io::Error>;

fn builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    builder
}

fn http1_client() -> Client<HttpConnector, Body> {
    builder().build_http()
}

fn http2_client() -> Client<HttpConnector, Body> {
    builder().http2_only(true).build_http()
}

fn get(uri: &str) -> Request<Body> {
    let body = Empty::new().map_err(|never| match never {}).boxed();
    Request::builder().uri(uri).body(body).unwrap()
}

/// Returns a request whose own body breaks off, with an error that looks just like a lost connection's.
fn post_that_breaks_off(uri: &str) -> Request<Body> {
    Request::builder().method(Method::POST).uri(uri).body(breaks_off().boxed()).unwrap()
}

fn breaks_off() -> Fails {
    Fails(|| std::io::ErrorKind::ConnectionReset.into())
}

/// A body that fails with this error when it is first polled.
#[derive(Debug)]
struct Fails(fn() -> std::io::Error);

impl http_body::Body for Fails {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Err((self.0)())))
    }
}

/// Asserts the verdict, and shows the chain on which it is based. Of the errors checked this way, only a server's
/// refusal counts as unprocessed on an existing connection.
#[track_caller]
fn assert_verdict<T>(result: Result<T, impl Error + 'static>, expected: impl Into<Option<Verdict>>) {
    let Err(error) = result else { panic!("the call succeeded") };
    let expected = expected.into();
    assert_eq!(verdict_of_error(&error), expected, "{error:?}");
    let undone = undone(&error);
    assert_eq!(undone.is_some(), expected == Some(REFUSED), "{error:?}");
    assert!(matches!(undone, None | Some(Undone::Refused | Undone::Excluded)), "{error:?}");
}

/// Asserts that a request was never passed to its connection.
#[track_caller]
fn assert_not_dispatched(error: &(dyn Error + 'static)) {
    assert_eq!(verdict_of_error(error), Some(NOT_CONNECTED), "{error:?}");
    assert_eq!(undone(error), Some(Undone::NotDispatched), "{error:?}");
}

/// Asserts the verdict for a failure of a proxy or resolver, which shows nothing about the server.
#[track_caller]
fn assert_on_the_way(case: &str, error: &(dyn Error + 'static), expected: Verdict) {
    assert_eq!(verdict_of_error(error), Some(expected), "{case}: {error:?}");
    assert_eq!(fault_of_error(error), Some(Fault::Local), "{case}: {error:?}");
}
