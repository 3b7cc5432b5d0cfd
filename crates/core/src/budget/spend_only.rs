//! A budget for the second of two layers that share one.

use core::time::Duration;

use super::{Budget, Permit};
use crate::Failure;

/// A budget that grants retries and records no outcomes.
///
/// For the second of two layers on the way of one call that share a budget, such as hedging beside
/// retries. Both would report the same success and the same failure. The retry layer, which sees every
/// call, is given the budget itself, and the hedge layer a clone in here. A retry and a hedge still take a
/// token each.
///
/// ```
/// use core::time::Duration;
/// use reattempt_core::{Budget, Failure, FailureKind, SpendOnly, Unlimited};
///
/// let failure = Failure::new(FailureKind::Timeout);
/// let hedges = SpendOnly(Unlimited);
/// assert!(hedges.acquire("one.example", &failure, Duration::ZERO).is_some());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SpendOnly<B>(pub B);

impl<B: Budget> Budget for SpendOnly<B> {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        self.0.acquire(destination, failure, now)
    }

    fn is_full(&self) -> bool {
        true
    }

    fn is_noop(&self) -> bool {
        true
    }
}
