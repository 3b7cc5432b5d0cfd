//! The two clients: hyper's, and the same in a retry layer. **This is the file to look at** to see
//! how a client is wrapped.

use std::time::Duration;

use http_body::Body;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reattempt::schedule::Exponential;
use reattempt::{
    BoxedError, ConfigError, Http, ReplayBody, Retry, RetryBudget, RetryLayer, RetryPolicy,
};
use tower::ServiceBuilder;
use tower::timeout::Timeout;

use super::ATTEMPT_TIMEOUT;
use super::names::Names;
use super::upload::Upload;

type HyperClient<B> = Client<HttpConnector<Names>, B>;

/// The policy of [`reattempt`]: HTTP, the default schedule and budget, errors boxed because a time
/// limit may interrupt an attempt.
type Policy = RetryPolicy<Http, Exponential, RetryBudget, BoxedError>;

/// The client as it is, with the time limit that any client should have.
pub(crate) fn unwrapped(names: Names) -> Timeout<HyperClient<Upload>> {
    ServiceBuilder::new().timeout(ATTEMPT_TIMEOUT).service(hyper_client(names))
}

/// The same client, wrapped.
pub(crate) fn reattempt(
    names: Names,
    seed: u64,
    calls: u32,
) -> Result<Retry<HyperClient<ReplayBody<Upload>>, Policy>, ConfigError> {
    let policy = RetryPolicy::http()
        .attempt_timeout(ATTEMPT_TIMEOUT)
        .budget(budget(calls)?)
        // The same delays each time; elsewhere, leave it out.
        .seed(seed);
    Ok(ServiceBuilder::new().layer(RetryLayer::new(policy)).service(hyper_client(names)))
}

/// The default budget with room for every retry that could be asked for.
///
/// By default it holds 10 tokens, and in a script where half of the calls meet a fault it would
/// soon refuse to add to the load, as it should. Which calls it then refuses depends on who asks
/// first; here every run of a seed is to end alike. One bucket, for all names are one server.
fn budget(calls: u32) -> Result<RetryBudget, ConfigError> {
    let retries = calls * 2;
    Ok(RetryBudget::default().capacity(f64::from(retries.max(10)))?.shared())
}

fn hyper_client<B>(names: Names) -> HyperClient<B>
where
    B: Body + Send,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new())
        // hyper-util's own retry, on a connection that had closed before the request was written:
        // safe and welcome, but here every attempt is to be one that was asked for.
        .retry_canceled_requests(false)
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(1))
        .build(HttpConnector::new_with_resolver(names))
}
