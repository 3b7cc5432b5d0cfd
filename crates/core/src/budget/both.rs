//! A pair of budgets, both of which must grant a retry.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Budget, Permit};
use crate::{Evidence, Failure, ServerHint, Warning};

/// A pair of budgets. A retry needs a permit from each, and every event is reported to both.
///
/// Each budget is refunded exactly the tokens that it charged. If the second budget refuses, the first is refunded
/// immediately. Granting a retry allocates once; nothing else allocates.
impl<A: Budget, B: Budget> Budget for (A, B) {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        let first = self.0.acquire(destination, failure, now)?;
        let second = self.1.acquire(destination, failure, now)?;
        Some(first.and(second))
    }

    fn acquire_after_failure(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        let Some(first) = self.0.acquire_after_failure(destination, evidence, now) else {
            self.1.on_failure(destination, evidence, now);
            return None;
        };
        let second = self.1.acquire_after_failure(destination, evidence, now)?;
        Some(first.and(second))
    }

    fn on_failure(&self, destination: &str, evidence: &Evidence, now: Duration) {
        self.0.on_failure(destination, evidence, now);
        self.1.on_failure(destination, evidence, now);
    }

    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        let first = self.0.on_unprocessed(destination, evidence, now);
        self.1.on_unprocessed(destination, evidence, now) && first
    }

    fn on_success(&self, destination: &str, retries: u32) {
        self.0.on_success(destination, retries);
        self.1.on_success(destination, retries);
    }

    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        self.0.on_permanent_failure(destination, hint, retries);
        self.1.on_permanent_failure(destination, hint, retries);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.0.is_full() && self.1.is_full()
    }

    #[inline]
    fn is_noop(&self) -> bool {
        self.0.is_noop() && self.1.is_noop()
    }

    #[inline]
    fn is_keyed(&self) -> bool {
        self.0.is_keyed() || self.1.is_keyed()
    }

    fn most_retries(&self, within: Duration) -> Option<u32> {
        let both = [self.0.most_retries(within), self.1.most_retries(within)];
        both.into_iter().flatten().min()
    }

    fn validate(&self) -> Vec<Warning> {
        [self.0.validate(), self.1.validate()].concat()
    }
}
