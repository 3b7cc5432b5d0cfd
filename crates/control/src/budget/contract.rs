//! The implementation of core's [`Budget`] for [`RetryBudget`].

use std::time::Duration;

use reattempt_core::{Budget, Failure, FailureKind, Permit, Warning};

use super::cautious::Event;
use super::retry_budget::{Buckets, RetryBudget};
use super::settings::Kind;
use crate::sync::Ordering;

impl Budget for RetryBudget {
    /// Takes the cost of a retry from the bucket of `destination`. Allocates only at the first take for a destination.
    ///
    /// A cautious budget takes this for a hedge: it costs 2 tokens and adds 1 to the doubt.
    #[inline]
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        self.take(destination, Event::Hedge, failure, now)
    }

    #[inline]
    fn acquire_after_failure(
        &self,
        destination: &str,
        failure: &Failure,
        now: Duration,
    ) -> Option<Permit> {
        self.take(destination, Event::FailureAndRetry(failure.kind()), failure, now)
    }

    /// Adds to the doubt of a cautious budget. No other kind counts failures.
    #[inline]
    fn on_failure(&self, destination: &str, failure: &Failure, now: Duration) {
        if let Buckets::Cautious(store) = &self.state.buckets {
            store.take(destination, now, |bucket| {
                bucket.record(Event::Failure(failure.kind()), now)
            });
        }
    }

    /// Adds the ratio to the bucket of `destination`. Under a quota a retried call adds nothing, because its last
    /// retry has returned its cost.
    #[inline]
    fn on_success(&self, destination: &str, retries: u32) {
        if !self.is_full() {
            self.credit(destination, retries);
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.state.not_full.count() == 0
    }

    #[inline]
    fn is_noop(&self) -> bool {
        matches!(self.state.buckets, Buckets::None)
    }

    #[inline]
    fn is_keyed(&self) -> bool {
        self.state.settings.max_destinations.is_some()
    }

    fn validate(&self) -> Vec<Warning> {
        self.state.settings.kind.validate().into_iter().collect()
    }
}

impl RetryBudget {
    /// Not inlined, so that a success of a full budget saves no registers.
    #[inline(never)]
    fn credit(&self, destination: &str, retries: u32) {
        match &self.state.buckets {
            Buckets::None => {}
            Buckets::Tokens(store) => {
                if retries == 0 || !matches!(self.state.settings.kind, Kind::Quota(..)) {
                    store.on_success(destination);
                }
            }
            Buckets::Cautious(store) => store.on_success(destination),
        }
    }

    /// Takes tokens. A cautious budget records `event` in the same step.
    #[inline]
    fn take(
        &self,
        destination: &str,
        event: Event,
        failure: &Failure,
        now: Duration,
    ) -> Option<Permit> {
        let permit = match &self.state.buckets {
            Buckets::None => return Some(Permit::free()),
            Buckets::Tokens(store) => {
                let cost = self.cost(failure);
                store
                    .take(destination, now, |bucket| bucket.take(cost, now))
                    .map(|bucket| Permit::new(bucket, cost))
            }
            Buckets::Cautious(store) => store
                .take(destination, now, |bucket| bucket.record(event, now))
                .map(|bucket| Permit::new(bucket, event.cost())),
        };
        permit.or_else(|| self.refuse())
    }

    /// Returns the cost of a retry after this failure.
    #[inline]
    fn cost(&self, failure: &Failure) -> u32 {
        match self.state.settings.kind {
            Kind::Quota(_, quota) if failure.kind() == FailureKind::Timeout => quota.after_timeout,
            Kind::Quota(_, quota) => quota.retry,
            _ => 1,
        }
    }

    #[cold]
    fn refuse(&self) -> Option<Permit> {
        self.state.refusals.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}
