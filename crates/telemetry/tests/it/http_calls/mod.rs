//! Tests of HTTP telemetry: what a person reads in a dashboard and in a trace.

mod metrics;
mod spans;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use reattempt::error::BoxedError;
use reattempt::{Http, RetryBudget, RetryPolicy};
use reattempt_schedule_fixed::Constant;
use tokio::time::sleep;
use tower::{BoxError, Service, service_fn};

/// An attempt's outcome, 10 ms after it was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Status(u16),
    Refused,
    Never,
}

/// A policy whose retries follow after 100 ms.
pub(crate) type Policy = RetryPolicy<Http, Constant, RetryBudget, BoxedError>;

pub(crate) fn policy() -> Policy {
    let delay = Constant::new(Duration::from_millis(100));
    RetryPolicy::http().backoff(delay).budget(RetryBudget::unlimited()).boxed_errors()
}

/// Returns a service with these replies, the last one for ever.
pub(crate) fn replies<Req: Send + 'static>(
    replies: &'static [Reply],
) -> impl Service<Req, Response = Response<Empty<Bytes>>, Error = BoxError, Future: Send> + Clone {
    let sent = Arc::new(AtomicUsize::new(0));
    service_fn(move |_: Req| {
        let reply = replies[sent.fetch_add(1, Ordering::Relaxed).min(replies.len() - 1)];
        async move {
            sleep(Duration::from_millis(10)).await;
            match reply {
                Reply::Status(status) => Ok(Response::builder().status(status).body(Empty::new())?),
                Reply::Refused => Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
                Reply::Never => std::future::pending().await,
            }
        }
    })
}

pub(crate) fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::get(uri).body(Full::default()).unwrap()
}
