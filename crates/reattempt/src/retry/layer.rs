//! The layer that adds retries to a client.

use reattempt_core::Schedule;
use tower_layer::Layer;

use super::Retry;
use crate::policy::RetryPolicy;
use crate::protocol::Protocol;

/// A layer that adds retries to a client.
///
/// All its services share the policy's budget. Put this layer outside everything that applies to each attempt:
/// authentication, attempt timeouts, a breaker, load balancing. Put it inside everything that applies to each call: a
/// trace of the whole call, an overall time limit. See [`order`](crate::order).
///
/// Waiting requires a tokio runtime with its time driver ([`RetryPolicy`]).
///
/// ```
/// use reattempt::RetryLayer;
/// use tower::ServiceBuilder;
///
/// let builder = ServiceBuilder::new().layer(RetryLayer::http());
/// ```
#[derive(Debug, Clone)]
pub struct RetryLayer<P = RetryPolicy> {
    policy: P,
}

impl RetryLayer {
    /// Creates a layer that retries HTTP requests, with the defaults of [`RetryPolicy::http`].
    pub fn http() -> Self {
        Self::new(RetryPolicy::http())
    }
}

impl<P> RetryLayer<P> {
    /// Creates a layer that retries with this policy.
    pub fn new(policy: P) -> Self {
        Self { policy }
    }
}

impl<S, P> Layer<S> for RetryLayer<P>
where
    S: Clone,
    P: Clone,
{
    type Service = Retry<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(self.policy.clone(), inner)
    }
}

/// A policy is a layer, so that its settings can be written where the layer is used.
///
/// ```
/// use reattempt::RetryPolicy;
/// use tower::ServiceBuilder;
///
/// let builder = ServiceBuilder::new().layer(RetryPolicy::http().max_attempts(4));
/// ```
impl<S, K, D, B, M> Layer<S> for RetryPolicy<K, D, B, M>
where
    S: Clone,
    K: Protocol,
    D: Schedule,
{
    type Service = Retry<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(self.clone(), inner)
    }
}
