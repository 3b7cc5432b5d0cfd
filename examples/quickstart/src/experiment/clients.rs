//! The two clients: hyper's, and the same in a retry layer. **Read this file** to see how a client
//! is wrapped.

use std::time::Duration;

use http_body::Body;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reattempt::error::BoxedError;
use reattempt::schedule::Exponential;
use reattempt::{Http, ReplayBody, Retry, RetryBudget, RetryLayer, RetryPolicy};
use tower::ServiceBuilder;
use tower::timeout::Timeout;

use super::ATTEMPT_TIMEOUT;
use super::names::Names;
use super::upload::Upload;

type HyperClient<B> = Client<HttpConnector<Names>, B>;

/// The policy of [`reattempt`]: HTTP, the default schedule and budget, errors boxed because a time
/// limit may interrupt an attempt.
type Policy = RetryPolicy<Http, Exponential, RetryBudget, BoxedError>;

/// Returns the plain client, with the time limit that any client should have.
pub(crate) fn unwrapped(names: Names) -> Timeout<HyperClient<Upload>> {
    ServiceBuilder::new().timeout(ATTEMPT_TIMEOUT).service(hyper_client(names))
}

/// Returns that client in a retry layer.
pub(crate) fn reattempt(names: Names, seed: u64, calls: u32) -> Retry<HyperClient<ReplayBody<Upload>>, Policy> {
    let policy = RetryPolicy::http()
        .attempt_timeout(ATTEMPT_TIMEOUT)
        .budget(budget(calls))
        // A seed makes the delays reproducible; leave it out elsewhere.
        .seed(seed);
    ServiceBuilder::new().layer(RetryLayer::new(policy)).service(hyper_client(names))
}

/// Returns a budget with room for every possible retry.
///
/// In this script half of the calls meet a fault, so the default budget would refuse retries, as it should. The
/// refused calls would depend on timing, but every run of a seed should end alike. There is one bucket, because all
/// names belong to one server.
fn budget(calls: u32) -> RetryBudget {
    let retries = calls * 2;
    RetryBudget::percent(10).capacity(f64::from(retries.max(10))).shared(true)
}

fn hyper_client<B>(names: Names) -> HyperClient<B>
where
    B: Body + Send,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new())
        // hyper-util's own retry, on a connection that closed before the request was written. It is
        // safe and useful, but here every attempt should come from the retry layer.
        .retry_canceled_requests(false)
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(1))
        .build(HttpConnector::new_with_resolver(names))
}
