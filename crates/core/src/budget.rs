//! The contract of a retry budget: a bucket of tokens that stands in front of every retry.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::{Failure, ServerHint};

/// Decides whether one more retry can be afforded.
///
/// `destination` names whom the request is for, so that one bad host cannot spend what the others
/// need; an implementation with a single bucket ignores it. `now` is monotonic time since any fixed
/// moment. Clones of a budget share its tokens, and all calls of a client share the budget, on
/// whatever thread they are and for as long as an answer is read.
pub trait Budget: Send + Sync + 'static {
    /// Takes what a retry after `failure` costs, or returns `None` and takes nothing.
    ///
    /// The last thing a decision does. The permit gives the tokens back when it is dropped unspent.
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit>;

    /// A call has succeeded. `paid` is the cost of the call's last retry, 0 when it had none.
    fn succeeded(&self, destination: &str, paid: u32) {
        let _ = (destination, paid);
    }

    /// A call has ended in a response that is a failure another attempt would not mend; `hint` is what the
    /// server asked for beside it, [`Stop`](ServerHint::Stop) only where the call might have been retried.
    /// Not called for a call that has ended in an error, for only a response earns credit.
    ///
    /// Counts as a success unless it is said otherwise: the server is there, and has answered.
    fn failed_for_good(&self, destination: &str, hint: ServerHint, paid: u32) {
        let _ = hint;
        self.succeeded(destination, paid);
    }

    /// An attempt has failed with a failure that is worth a retry, whether or not one follows; of a
    /// call that is not to be retried at all nothing is told.
    fn failed(&self, destination: &str, failure: &Failure) {
        let _ = (destination, failure);
    }

    /// True when [`succeeded`](Budget::succeeded) would change nothing for any destination, nor would
    /// [`failed_for_good`](Budget::failed_for_good) without a hint, so that the caller need not even
    /// find out which one it is.
    #[inline]
    fn is_full(&self) -> bool {
        false
    }

    /// True when nothing that it is told ever changes anything, now or later.
    #[inline]
    fn is_indifferent(&self) -> bool {
        false
    }
}

impl<B: Budget + ?Sized> Budget for Arc<B> {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        (**self).acquire(destination, failure, now)
    }

    fn succeeded(&self, destination: &str, paid: u32) {
        (**self).succeeded(destination, paid);
    }

    fn failed_for_good(&self, destination: &str, hint: ServerHint, paid: u32) {
        (**self).failed_for_good(destination, hint, paid);
    }

    fn failed(&self, destination: &str, failure: &Failure) {
        (**self).failed(destination, failure);
    }

    fn is_full(&self) -> bool {
        (**self).is_full()
    }

    fn is_indifferent(&self) -> bool {
        (**self).is_indifferent()
    }
}

/// Where an unspent permit returns its tokens.
pub trait GiveBack: Send + Sync {
    /// Puts `cost` back, as if it had never been taken.
    fn give_back(&self, cost: u32);
}

/// Tokens taken for one retry.
///
/// Dropped before the retry was sent, it gives them back; [`spend`](Permit::spend) keeps them.
#[must_use = "an unspent permit gives its tokens back when it is dropped"]
pub struct Permit {
    source: Option<Arc<dyn GiveBack>>,
    cost: u32,
}

impl Permit {
    /// A permit that was paid for with `cost` tokens (in the budget's own unit) from `source`.
    #[inline]
    pub fn new(source: Arc<dyn GiveBack>, cost: u32) -> Self {
        Self { source: Some(source), cost }
    }

    /// A permit that cost nothing.
    #[inline]
    pub const fn free() -> Self {
        Self { source: None, cost: 0 }
    }

    /// The retry is being sent: the tokens are gone. Returns what was paid.
    #[inline]
    pub fn spend(mut self) -> u32 {
        self.source = None;
        self.cost
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if let Some(source) = &self.source {
            source.give_back(self.cost);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// No budget at all: every retry is granted.
///
/// Only for callers whose retries are bounded elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn is_full(&self) -> bool {
        true
    }

    fn is_indifferent(&self) -> bool {
        true
    }
}

/// A budget that is spent from, and not told how attempts and calls end.
///
/// For the second of two layers on the way of one call that share a budget: hedging beside retries,
/// whichever of them is outside. Both would tell it of the same success and of the same failure; so the
/// retry layer, which sees every call, is given the budget itself, and the hedge layer a clone in here. A
/// retry and a hedge still take a token each.
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

    fn is_indifferent(&self) -> bool {
        true
    }
}
