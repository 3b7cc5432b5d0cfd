//! How each contender is built: the best configuration that does the same job.
//!
//! That job: up to two retries of what failed with a 5xx status or an error, after exponential
//! backoff with jitter, limited by a budget.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use reattempt::{Retry, RetryPolicy};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware};
use reqwest_retry::policies::ExponentialBackoff as ReqwestBackoff;
use reqwest_retry::{Jitter, RetryTransientMiddleware};
use tower::retry::Policy;
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::retry::budget::{Budget, TpsBudget};
use tower::util::rng::HasherRng;
use tower_resilience_retry::{ExponentialRandomBackoff, RetryBudgetBuilder, RetryConfigBuilder};

use crate::requests::{Body, clone_of};

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(5);

/// Ours, with every default.
pub(crate) fn ours<S: Clone>(inner: S) -> Retry<S> {
    Retry::new(RetryPolicy::http(), inner)
}

/// tower's `Retry` with the best policy one can write by hand.
pub(crate) fn by_hand<S>(inner: S) -> tower::retry::Retry<ByHand, S> {
    tower::retry::Retry::new(ByHand::new(BASE, CAP, 0.99, TpsBudget::default()), inner)
}

/// A policy that clones head and body and knows nothing but the status.
#[derive(Debug, Clone)]
pub(crate) struct ByHand {
    retries_left: u32,
    backoff: ExponentialBackoff,
    budget: Arc<TpsBudget>,
}

impl ByHand {
    pub(crate) fn new(base: Duration, cap: Duration, jitter: f64, budget: TpsBudget) -> Self {
        let backoff = ExponentialBackoffMaker::new(base, cap, jitter, HasherRng::new())
            .unwrap()
            .make_backoff();
        Self { retries_left: 2, backoff, budget: Arc::new(budget) }
    }
}

impl<B, E> Policy<Request<Body>, Response<B>, E> for ByHand {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response<B>, E>,
    ) -> Option<Self::Future> {
        let failed = result.as_ref().map_or(true, |response| response.status().is_server_error());
        if !failed {
            self.budget.deposit();
            return None;
        }
        if self.retries_left == 0 || !self.budget.withdraw() {
            return None;
        }
        self.retries_left -= 1;
        Some(self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        if self.retries_left == 0 {
            return None;
        }
        let mut clone = clone_of(request);
        *clone.extensions_mut() = request.extensions().clone();
        Some(clone)
    }
}

/// The same where one attempt is allowed, so that nothing is cloned but the policy.
pub(crate) fn by_hand_once<S>(inner: S) -> tower::retry::Retry<ByHand, S> {
    let mut policy = ByHand::new(BASE, CAP, 0.99, TpsBudget::default());
    // Known when the policy is built, not when the program is: there is one policy for all calls.
    policy.retries_left = black_box(0);
    tower::retry::Retry::new(policy, inner)
}

/// The layer of tower-resilience-retry.
pub(crate) type Resilience<B, E> =
    tower_resilience_retry::RetryLayer<Request<Body>, Response<B>, E>;

/// What is set on tower-resilience-retry in every row.
pub(crate) fn resilience_with<B, E>(
    backoff: impl tower_resilience_retry::IntervalFunction + 'static,
    tokens_per_second: f64,
) -> Resilience<B, E> {
    let budget = RetryBudgetBuilder::new()
        .token_bucket()
        .tokens_per_second(tokens_per_second)
        .max_tokens(1_000_000)
        .build();
    RetryConfigBuilder::new()
        .max_attempts(3)
        .retry_on_response(|response: &Response<B>| response.status().is_server_error())
        .backoff(backoff)
        .budget(budget.unwrap())
        .build()
}

/// tower-resilience-retry.
pub(crate) fn resilience<B, E>() -> Resilience<B, E> {
    resilience_with(ExponentialRandomBackoff::new(BASE, 1.0).unwrap().max_interval(CAP), 10.0)
}

/// reqwest-middleware with nothing in it, for the cost of the chain itself.
pub(crate) fn middleware_bare(
    client: reqwest::Client,
    end: impl Middleware,
) -> ClientWithMiddleware {
    ClientBuilder::new(client).with(end).build()
}

/// reqwest-retry with these bounds of its delays.
pub(crate) fn reqwest_retry(
    client: reqwest::Client,
    base: Duration,
    cap: Duration,
) -> ClientBuilder {
    let policy = ReqwestBackoff::builder()
        .retry_bounds(base, cap)
        .jitter(Jitter::Full)
        .build_with_max_retries(2);
    ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(policy))
}

/// reqwest-retry with the delays of every row but one.
pub(crate) fn reqwest_retry_usual(client: reqwest::Client) -> ClientBuilder {
    reqwest_retry(client, BASE, CAP)
}
