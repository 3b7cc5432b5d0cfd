//! The layer that hedges a client's calls.

use tower_layer::Layer;

use super::{Hedge, HedgePolicy};
use crate::protocol::Protocol;

/// A layer that hedges a client's calls: a slow call is sent again, and the first good response wins.
///
/// # Hazards
///
/// - **Hedging multiplies load**, especially when a server is slow because it is overloaded. Keep the budget, and
///   prefer the running quantile to a fixed delay. One call in twenty may exceed a fixed delay today, but half of all
///   calls may exceed it in an outage.
/// - **The server processes a request more than once, concurrently.** Over HTTP, only safe methods (GET, HEAD, OPTIONS,
///   TRACE, QUERY) are hedged, unless [`idempotent_methods`](HedgePolicy::idempotent_methods) or
///   [`CallOptions::repeatable`](crate::CallOptions::repeatable) allows others. **A protocol that cannot distinguish
///   safe methods hedges every call**: use this layer only for methods that may run more than once.
/// - A losing attempt is cancelled but not undone: the server may still process it completely.
/// - **Over HTTP/2, many losers can end their connection.** Put a [`LingerLayer`](crate::linger::LingerLayer) around
///   the client.
/// - **After a failed attempt, the next one is sent immediately.** Over HTTP/2, the next attempt may use the same
///   broken connection and fail too. An outer [`RetryLayer`](crate::RetryLayer) retries after a delay.
/// # Order of layers
///
/// Put this layer inside everything that applies to each call, such as a trace or an overall timeout. Put it outside
/// everything that applies to each attempt, such as authentication, a breaker or load balancing. Hedges go to another
/// server only if a load balancer is inside this layer.
///
/// With a [`RetryLayer`](crate::RetryLayer), put hedging **inside** it in most cases. Each attempt of the retry layer
/// is then a set of hedged attempts. A retry follows only if the whole set fails, and a backoff is not mistaken for a
/// slow call. If hedging is **outside**, each hedge is a call with its own retries, and a backoff in the first call
/// starts a hedge. In either order, attempts multiply: two in each layer make four. If a protocol forbids combining
/// retries and hedging, use only one of the layers. Both layers read a request's
/// [`CallOptions`](crate::CallOptions).
///
/// To share a budget, set it on the retry policy, and wrap it in a [`SpendOnly`](crate::budget::SpendOnly) for the
/// hedge policy. The budget then records one outcome for each set of hedged attempts. Otherwise, both layers would
/// record the same outcomes.
///
/// ```
/// use reattempt::{RetryBudget, RetryPolicy};
/// use reattempt::budget::SpendOnly;
/// use reattempt::hedge::HedgePolicy;
///
/// let budget = RetryBudget::default();
/// let hedges = HedgePolicy::http().budget(SpendOnly(budget.clone()));
/// let retries = RetryPolicy::http().budget(budget);
/// ```
///
/// ```
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use http::{Request, Response};
/// use reattempt::{ReplayBody, Report};
/// use reattempt::hedge::{HedgeLayer, HedgePolicy};
/// use reattempt::retry::AttemptNumber;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Infallible> {
/// // A server whose first response takes a minute.
/// let server = service_fn(|request: Request<ReplayBody<String>>| async move {
///     if request.extensions().get::<AttemptNumber>().is_none() {
///         tokio::time::sleep(Duration::from_secs(60)).await;
///     }
///     Ok::<_, Infallible>(Response::new(String::from("hello")))
/// });
///
/// let policy = HedgePolicy::http().max_attempts(3).delay(Duration::from_millis(50));
/// let client = HedgeLayer::new(policy).layer(server);
/// let response = client.oneshot(Request::get("http://one.example/").body(String::new()).unwrap()).await?;
///
/// let report = Report::of(&response).unwrap();
/// assert_eq!((report.retries(), report.winner()), (1, Some(2)));
/// # Ok(())
/// # }
/// ```
// HG-14, CALL-1, HG-9
#[doc(alias("backup_request", "speculative_retry"))]
#[derive(Debug, Clone)]
pub struct HedgeLayer<Policy = HedgePolicy> {
    policy: Policy,
}

impl HedgeLayer {
    /// Creates a layer that hedges HTTP requests, with the defaults of [`HedgePolicy::http`].
    pub fn http() -> Self {
        Self::new(HedgePolicy::http())
    }
}

impl<Policy> HedgeLayer<Policy> {
    /// Creates a layer that hedges with this policy.
    pub fn new(policy: Policy) -> Self {
        Self { policy }
    }
}

impl<S, Policy> Layer<S> for HedgeLayer<Policy>
where
    S: Clone,
    Policy: Clone,
{
    type Service = Hedge<S, Policy>;

    fn layer(&self, inner: S) -> Self::Service {
        Hedge::new(self.policy.clone(), inner)
    }
}

/// A policy is itself a layer, so it can be passed to a `ServiceBuilder` directly.
impl<S, P, B, Mode> Layer<S> for HedgePolicy<P, B, Mode>
where
    S: Clone,
    P: Protocol,
{
    type Service = Hedge<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Hedge::new(self.clone(), inner)
    }
}
