//! The layer that adds retries to a client.

use reattempt_core::Schedule;
use tower_layer::Layer;

use super::Retry;
use crate::policy::RetryPolicy;
use crate::protocol::Protocol;

/// A layer that adds retries to a client.
///
/// All services that it creates share the policy's budget. Put this layer outside everything that applies to each
/// attempt, such as authentication, attempt timeouts, a breaker or load balancing. Put it inside everything that
/// applies to each call, such as a trace or an overall timeout. See [`order`][order].
///
/// Delays require a tokio runtime with its time driver enabled ([`RetryPolicy`]).
///
/// ```
/// use reattempt::RetryLayer;
/// use tower::ServiceBuilder;
///
/// let builder = ServiceBuilder::new().layer(RetryLayer::http());
/// ```
///
/// [order]: https://docs.rs/reattempt/latest/reattempt/order/index.html
#[derive(Debug, Clone)]
pub struct RetryLayer<Policy = RetryPolicy> {
    policy: Policy,
}

impl RetryLayer {
    /// Creates a layer that retries HTTP requests, with the defaults of [`RetryPolicy::http`].
    pub fn http() -> Self {
        Self::new(RetryPolicy::http())
    }
}

impl<Policy> RetryLayer<Policy> {
    /// Creates a layer that retries with this policy.
    pub fn new(policy: Policy) -> Self {
        Self { policy }
    }
}

impl<S, Policy> Layer<S> for RetryLayer<Policy>
where
    S: Clone,
    Policy: Clone,
{
    type Service = Retry<S, Policy>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(self.policy.clone(), inner)
    }
}

/// A policy is itself a layer, so it can be passed to a `ServiceBuilder` directly.
///
/// ```
/// use reattempt::RetryPolicy;
/// use tower::ServiceBuilder;
///
/// let builder = ServiceBuilder::new().layer(RetryPolicy::http().max_attempts(4));
/// ```
impl<S, P, Backoff, B, Mode> Layer<S> for RetryPolicy<P, Backoff, B, Mode>
where
    S: Clone,
    P: Protocol,
    Backoff: Schedule,
{
    type Service = Retry<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(self.clone(), inner)
    }
}
