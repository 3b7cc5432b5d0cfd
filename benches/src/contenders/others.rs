//! The peers that are published as crates.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware};
use reqwest_retry::policies::ExponentialBackoff as ReqwestBackoff;
use reqwest_retry::{Jitter, RetryTransientMiddleware};
use seatbelt::retry::Retry;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;
use tokio::runtime::Runtime;
use tower::Layer;
use tower_resilience_retry::{ExponentialRandomBackoff, RetryBudgetBuilder, RetryConfigBuilder};

use super::{BASE, CAP};
use crate::inner::Answer;
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

/// Wraps a service in seatbelt's retry, which has no budget. Its clock needs a runtime.
pub(crate) fn seatbelt_retry<S>(
    inner: S,
    (base, cap): (Duration, Duration),
    runtime: &Runtime,
) -> Retry<Request<Body>, Result<Answer, Infallible>, S> {
    let clock = runtime.block_on(async { Clock::new_tokio() });
    let layer = Retry::layer("retry", &ResilienceContext::new(&clock))
        .max_retry_attempts(2)
        .base_delay(base)
        .max_delay(cap)
        .clone_input()
        .recovery_with(|outcome: &Result<Answer, Infallible>, _| match outcome {
            Ok(answer) if answer.status().is_server_error() => RecoveryInfo::retry(),
            _ => RecoveryInfo::never(),
        });
    layer.layer(inner)
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
