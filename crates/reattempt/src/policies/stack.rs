//! One entry of a table: a retry policy with its guards and endpoints.

use std::fmt;
use std::sync::Arc;

use reattempt_core::guard::SharedGuard;
use reattempt_core::{Budget, SharedSchedule};
use reattempt_endpoints::EndpointsLayer;
use reattempt_engine::RetryPolicy;
use reattempt_engine::protocol::RequestProtocol;
use reattempt_guard::GuardLayer;

/// The type-erased budget of the policies in a table.
pub type TableBudget = Arc<dyn Budget>;

/// A retry policy whose schedule and budget are chosen at run time.
pub type TablePolicy<P> = RetryPolicy<P, SharedSchedule, TableBudget, <P as RequestProtocol>::Errors>;

/// A policy of a [`PolicyTable`](super::PolicyTable): retries, then the guards of each attempt, then the endpoints.
///
/// Guards and endpoints are optional. Retries and guards classify outcomes with the same protocol value, and
/// endpoints with that of their own layer. Clones share the state of the budget, the guards and the endpoints.
pub struct PolicyStack<P: RequestProtocol> {
    pub(super) policy: TablePolicy<P>,
    pub(super) guards: GuardLayer<Option<SharedGuard>, P, P::Errors>,
    pub(super) endpoints: Option<EndpointsLayer<P, P::Errors>>,
}

impl<P: RequestProtocol + Clone> PolicyStack<P> {
    /// Creates a policy for this protocol with [default](RetryPolicy) retries, and without guards or endpoints.
    pub fn new(protocol: P) -> Self {
        let (schedule, budget) = (SharedSchedule::new(P::default_backoff()), Arc::new(P::default_budget()));
        let policy = RetryPolicy::with_protocol(protocol.clone(), schedule, budget as TableBudget);
        Self { policy, guards: GuardLayer::of(protocol, None), endpoints: None }
    }

    /// Changes the retry policy.
    ///
    /// Set the time limit of attempts with [`guards`](Self::guards), so that the guards record a timeout as a failure.
    pub fn retries(self, change: impl FnOnce(TablePolicy<P>) -> TablePolicy<P>) -> Self {
        Self { policy: change(self.policy), ..self }
    }

    /// Changes the guard layer, such as its time limit for attempts or its observers.
    pub fn guards(
        self,
        change: impl FnOnce(GuardLayer<Option<SharedGuard>, P, P::Errors>) -> GuardLayer<Option<SharedGuard>, P, P::Errors>,
    ) -> Self {
        Self { guards: change(self.guards), ..self }
    }

    /// Sets the guards of each attempt. Guards decide in the given order. Default: none.
    ///
    /// Each admitted attempt allocates once per guard and once per pair of guards
    /// ([`erase`](reattempt_guard::contract::erase)).
    pub fn guarded_by(self, guards: impl IntoIterator<Item = SharedGuard, IntoIter: DoubleEndedIterator>) -> Self {
        let chained = |rest, first| reattempt_core::guard::erase((first, rest));
        let all = guards.into_iter().rev().reduce(chained);
        Self { guards: self.guards.with_guard(all), ..self }
    }

    /// Sets the endpoints. Each request to their base URL is sent to one of them; other requests are sent unchanged.
    /// Default: none.
    pub fn endpoints(self, endpoints: EndpointsLayer<P, P::Errors>) -> Self {
        Self { endpoints: Some(endpoints), ..self }
    }
}

impl<P: RequestProtocol + Clone> Clone for PolicyStack<P> {
    fn clone(&self) -> Self {
        let (guards, endpoints) = (self.guards.clone(), self.endpoints.clone());
        Self { policy: self.policy.clone(), guards, endpoints }
    }
}

impl<P: RequestProtocol + fmt::Debug> fmt::Debug for PolicyStack<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyStack")
            .field("retries", &self.policy.limits())
            .field("has_guards", &self.guards.guard().is_some())
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}
