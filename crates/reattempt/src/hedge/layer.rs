//! The layer.

use tower_layer::Layer;

use super::{Hedge, HedgePolicy};
use crate::protocol::Protocol;

/// Wraps a client in hedging: a call that takes long is sent again, and the first response that is not
/// worth another attempt wins.
///
/// # Hazards
///
/// - **Hedging multiplies load**, and most of all when a server is slow because it is overloaded. Keep
///   the budget, and prefer the running quantile to a fixed delay: a delay that was the 95th percentile
///   in spring is the median in an outage.
/// - **Requests are carried out more than once, at the same time.** Over HTTP only GET, HEAD, OPTIONS
///   and TRACE are hedged, unless [`idempotent_methods`](HedgePolicy::idempotent_methods) or
///   [`CallOptions::repeatable`](crate::CallOptions::repeatable) says otherwise. **A protocol that
///   cannot tell its methods apart hedges all of them** (rule HG-14): put this layer only in front of methods
///   that may run more than once.
/// - A loser is cancelled, not undone: the server may carry it out to its end.
///
/// # Order of layers
///
/// Inside of what happens once for each call (a trace, an overall timeout), outside of what must happen
/// once for each attempt (authentication, a breaker, load balancing, which is what sends a hedge
/// to another server than the attempt before it).
///
/// Beside a [`RetryLayer`](crate::RetryLayer), hedging usually goes **inside**: each attempt that is
/// retried is then a set of hedged ones, the retry comes when the whole set has failed, and the delay of
/// the back-off is no slowness to be hedged against. The other way round every hedge is a call with
/// retries of its own, and a back-off of the first attempt starts a hedge. Either way the attempts multiply: two in
/// each are four. Use one of the two where a protocol's rules have no retry on top of hedging (rules CALL-1,
/// HG-9). [`CallOptions`](crate::CallOptions) in a request speak to both.
///
/// One budget for both stands in the retry policy as it is, and in the hedge policy as
/// [`SpendOnly`](crate::budget::SpendOnly): else a success would be credited by both, and a failure
/// charged. Of a set of hedged attempts inside it is then told what the retry layer sees: one outcome.
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
/// use reattempt::ReplayBody;
/// use reattempt::hedge::{HedgeLayer, HedgePolicy, HedgeReport};
/// use reattempt::retry::AttemptNumber;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Infallible> {
/// // A server whose first answer takes a minute.
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
/// let report = response.extensions().get::<HedgeReport>().unwrap();
/// assert_eq!((report.attempts(), report.winner()), (2, 2));
/// # Ok(())
/// # }
/// ```
#[doc(alias("backup_request", "speculative_retry"))]
#[derive(Debug, Clone)]
pub struct HedgeLayer<P = HedgePolicy> {
    policy: P,
}

impl HedgeLayer {
    /// Hedging of HTTP requests with every default ([`HedgePolicy::http`]).
    pub fn http() -> Self {
        Self::new(HedgePolicy::http())
    }
}

impl<P> HedgeLayer<P> {
    /// Hedges as `policy` says.
    pub fn new(policy: P) -> Self {
        Self { policy }
    }
}

impl<K: Protocol, B, M> HedgePolicy<K, B, M> {
    /// Returns the layer that hedges with this policy.
    pub fn into_layer(self) -> HedgeLayer<Self> {
        HedgeLayer::new(self)
    }
}

impl<S, P> Layer<S> for HedgeLayer<P>
where
    S: Clone,
    P: Clone,
{
    type Service = Hedge<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Hedge::new(self.policy.clone(), inner)
    }
}
