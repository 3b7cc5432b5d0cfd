//! A budget wrapper for the second of two layers that share a budget.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Budget, Permit};
use crate::{Evidence, Failure, Warning};

/// A budget that grants retries and records no failures or successes.
///
/// Use it if a retry layer and a hedge layer share a budget. Without it, both layers would report the same outcomes.
/// Pass the budget itself to the retry layer, and `SpendOnly(budget.clone())` to the hedge layer. Retries and hedges
/// still cost tokens.
///
/// ```
/// use core::time::Duration;
/// use reattempt::budget::{Budget, SpendOnly, Unlimited};
/// use reattempt::schedule::{Failure, FailureKind};
/// # mod reattempt { pub use reattempt_core as budget; pub use reattempt_core as schedule; }
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

    /// Asks the budget, which records the attempt: a server that refuses everything must not get twice its load from
    /// hedges. The other layer's record of the same attempt is part of the same [event](Evidence#events).
    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        self.0.on_unprocessed(destination, evidence, now)
    }

    fn is_full(&self) -> bool {
        true
    }

    fn is_noop(&self) -> bool {
        true
    }

    fn is_keyed(&self) -> bool {
        self.0.is_keyed()
    }

    fn most_retries(&self, within: Duration) -> Option<u32> {
        self.0.most_retries(within)
    }

    fn validate(&self) -> Vec<Warning> {
        self.0.validate()
    }
}
