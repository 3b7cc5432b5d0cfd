//! The layer.

use reattempt_core::Schedule;
use tower_layer::Layer;

use super::Retry;
use crate::policy::RetryPolicy;
use crate::protocol::Protocol;

/// Wraps a client in retries. A wait needs a tokio runtime with its time driver on
/// ([`RetryPolicy`]).
///
/// Every service it makes shares the policy's budget. It goes outside of anything that must happen
/// once for each attempt (authentication, a timeout for each attempt, a breaker, load balancing) and
/// inside of what must happen once for each call (a trace of the whole call, an overall limit).
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
    /// Retries of HTTP requests with every default ([`RetryPolicy::http`]).
    pub fn http() -> Self {
        Self::new(RetryPolicy::http())
    }
}

impl<P> RetryLayer<P> {
    /// Retries as `policy` says.
    pub fn new(policy: P) -> Self {
        Self { policy }
    }
}

impl<K: Protocol, D: Schedule, B, M> RetryPolicy<K, D, B, M> {
    /// Returns the layer that retries with this policy.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use tower::ServiceBuilder;
    ///
    /// let builder = ServiceBuilder::new().layer(RetryPolicy::http().max_attempts(4).into_layer());
    /// ```
    pub fn into_layer(self) -> RetryLayer<Self> {
        RetryLayer::new(self)
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
