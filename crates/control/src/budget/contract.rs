//! The implementation of core's [`Budget`] for [`RetryBudget`].

use std::time::Duration;

use reattempt_core::{Budget, Evidence, Failure, Permit, Warning};

use super::cautious::{Cause, Event, Wants};
use super::retry_budget::RetryBudget;
use super::settings::Kind;
use crate::sync::Ordering;

impl Budget for RetryBudget {
    /// Takes a retry's cost from the bucket for `destination`. Allocates only on a destination's first take.
    ///
    /// A cautious budget treats this as a hedge: it costs 2 tokens and adds 1 to the doubt.
    #[inline]
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        self.take(destination, Event { kind: failure.kind(), cause: Cause::Own, wants: Wants::Hedge }, now)
    }

    #[inline]
    fn acquire_after_failure(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        self.take(destination, event(evidence, Wants::Retry), now)
    }

    /// Adds doubt to a cautious budget. No other kind counts failures.
    #[inline]
    fn on_failure(&self, destination: &str, evidence: &Evidence, now: Duration) {
        if let (Kind::Cautious(_), Some(buckets)) = (self.state.settings.kind, &self.state.buckets) {
            drop(buckets.record(destination, event(evidence, Wants::Nothing), now));
        }
    }

    /// Adds doubt if the server refused the request, and returns `true` if the doubt is at most 3. An endpoint without
    /// a connection adds none, because another endpoint may be well. In kinds other than a cautious budget, only
    /// refused requests add doubt. An unlimited budget permits every replacement.
    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        let Some(buckets) = self.brake() else { return true };
        match evidence.undone {
            Some(_) => buckets.record(destination, event(evidence, Wants::Replacement), now).is_some(),
            None => buckets.allows_moves(destination),
        }
    }

    /// Adds the ratio to the bucket for `destination`. Under a quota, a retried call adds nothing, because its last
    /// retry returned its cost.
    #[inline]
    fn on_success(&self, destination: &str, retries: u32) {
        if self.is_full() {
            return;
        }
        if retries == 0 || !matches!(self.state.settings.kind, Kind::Quota(..)) {
            self.state.buckets.iter().for_each(|buckets| buckets.on_success(destination));
        }
        if let Some(brake) = self.state.brake.get() {
            brake.on_success(destination);
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.state.not_full.count() == 0
    }

    #[inline]
    fn is_noop(&self) -> bool {
        matches!(self.state.settings.kind, Kind::Unlimited)
    }

    #[inline]
    fn is_keyed(&self) -> bool {
        self.state.settings.max_destinations.is_some()
    }

    fn most_retries(&self, within: Duration) -> Option<u32> {
        self.state.settings.kind.most_retries(within)
    }

    fn validate(&self) -> Vec<Warning> {
        self.state.settings.validate()
    }
}

impl RetryBudget {
    /// Returns the permit that `event` requests, or counts a refusal.
    #[inline]
    fn take(&self, destination: &str, event: Event, now: Duration) -> Option<Permit> {
        let Some(buckets) = &self.state.buckets else { return Some(Permit::free()) };
        let permit = buckets.try_take(destination, event, now);
        permit.or_else(|| buckets.record(destination, event, now)).or_else(|| self.refuse())
    }

    #[cold]
    fn refuse(&self) -> Option<Permit> {
        self.state.refusals.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Returns the bucket's view of a failure.
#[inline]
fn event(evidence: &Evidence, wants: Wants) -> Event {
    let cause = if evidence.is_local() || evidence.is_callers_time() {
        Cause::Local
    } else if evidence.is_shared() {
        Cause::Shared { sent: evidence.sent }
    } else {
        Cause::Own
    };
    Event { kind: evidence.failure.kind(), cause, wants }
}
