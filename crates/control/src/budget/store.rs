//! The interface between a budget and its buckets.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{FailureKind, Permit};

/// All buckets of a budget. A call through it decides at once their kind, and whether each destination has its own.
pub(super) trait Store: Send + Sync {
    /// Records a failure of `destination`, and returns a permit for its retry if the tokens were there.
    fn retry(&self, destination: &str, failure: FailureKind, now: Duration) -> Option<Permit>;

    /// Returns a permit for a hedge if the tokens were there.
    fn hedge(&self, destination: &str, failure: FailureKind, now: Duration) -> Option<Permit>;

    /// Records a failure of `destination` that is not retried.
    fn on_failure(&self, destination: &str, failure: FailureKind, now: Duration);

    /// Records a success of `destination`.
    fn on_success(&self, destination: &str);

    /// Returns the balance that `destination` would draw on, in millionths.
    fn balance(&self, destination: &str) -> u64;

    /// Returns the buckets of destinations, in no order, and the bucket that destinations share.
    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance);
}

/// The tokens of a bucket in millionths, and the doubt that keeps retries back although there are tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Balance {
    pub(super) tokens: u64,
    pub(super) doubt: u64,
}

/// No buckets: every retry is granted.
pub(super) struct Unlimited;

impl Store for Unlimited {
    fn retry(&self, _: &str, _: FailureKind, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn hedge(&self, _: &str, _: FailureKind, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn on_failure(&self, _: &str, _: FailureKind, _: Duration) {}

    fn on_success(&self, _: &str) {}

    fn balance(&self, _: &str) -> u64 {
        u64::MAX
    }

    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance) {
        (Vec::new(), Balance { tokens: u64::MAX, doubt: 0 })
    }
}
