//! The peers that are published as crates.

use std::time::Duration;

use http::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware};
use reqwest_retry::policies::ExponentialBackoff as ReqwestBackoff;
use reqwest_retry::{Jitter, RetryTransientMiddleware};
use tower_resilience_retry::{ExponentialRandomBackoff, RetryBudgetBuilder, RetryConfigBuilder};

use super::{BASE, CAP};
use crate::requests::Body;

/// The layer of tower-resilience-retry.
pub(crate) type Resilience<B, E> = tower_resilience_retry::RetryLayer<Request<Body>, Response<B>, E>;

/// Configures tower-resilience-retry for every row.
pub(crate) fn resilience_with<B, E>(
    backoff: impl tower_resilience_retry::IntervalFunction + 'static,
    tokens_per_second: f64,
) -> Resilience<B, E> {
    let budget =
        RetryBudgetBuilder::new().token_bucket().tokens_per_second(tokens_per_second).max_tokens(1_000_000).build();
    RetryConfigBuilder::new()
        .max_attempts(3)
        .retry_on_response(|response: &Response<B>| response.status().is_server_error())
        .backoff(backoff)
        .budget(budget.unwrap())
        .build()
}

/// Creates tower-resilience-retry's layer.
pub(crate) fn resilience<B, E>() -> Resilience<B, E> {
    resilience_with(ExponentialRandomBackoff::new(BASE, 1.0).unwrap().max_interval(CAP), 10.0)
}

/// Creates an empty reqwest-middleware chain, for the cost of the chain itself.
pub(crate) fn middleware_bare(client: reqwest::Client, end: impl Middleware) -> ClientWithMiddleware {
    ClientBuilder::new(client).with(end).build()
}

/// Adds reqwest-retry with these bounds of its delays.
pub(crate) fn reqwest_retry(client: reqwest::Client, base: Duration, cap: Duration) -> ClientBuilder {
    let policy = ReqwestBackoff::builder().retry_bounds(base, cap).jitter(Jitter::Full).build_with_max_retries(2);
    ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(policy))
}

/// Adds reqwest-retry with the delays of every row but one.
pub(crate) fn reqwest_retry_usual(client: reqwest::Client) -> ClientBuilder {
    reqwest_retry(client, BASE, CAP)
}
