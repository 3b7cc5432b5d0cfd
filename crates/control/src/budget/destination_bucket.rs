//! The interface between the table of destinations and the kinds of bucket in it.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::PermitIssuer;

use super::bucket::{Bucket, Rule};
use super::cautious::{Caution, CautiousBucket};
use super::not_full::{NotFull, Slot};
use crate::destination_table::Entry;

/// A bucket that a table of destinations can hold.
pub(crate) trait DestinationBucket: Entry + PermitIssuer + Sized + 'static {
    /// The settings of such a bucket.
    type Rule: Copy + Send + Sync;

    /// Creates a full bucket, which is counted in that slot while a success would change it.
    fn create(rule: Self::Rule, counted: (Arc<NotFull>, Slot)) -> Self;
    /// Returns the most that the bucket holds, in millionths.
    fn capacity(rule: Self::Rule) -> u64;
    /// Records a success. Returns `false` if the bucket has left the table.
    fn credit(&self) -> bool;
    /// Returns the tokens in millionths; `None` once the bucket has left the table.
    fn balance(&self) -> Option<u64>;
    /// Returns the doubt that keeps retries back although there are tokens; only some kinds have any.
    fn doubt(&self) -> u64 {
        0
    }
    /// Fills the bucket if time has filled it by `now`.
    fn settle(&self, now: Duration);
    /// Returns `true` if [`retire`](Entry::retire) would find it full.
    fn is_full_at(&self, now: Duration) -> bool;
}

impl Entry for Bucket {
    fn retire(&self, now: Duration) -> bool {
        self.retire(now)
    }
}

impl DestinationBucket for Bucket {
    type Rule = Rule;

    fn create(rule: Rule, counted: (Arc<NotFull>, Slot)) -> Self {
        Self::new(rule, (rule.ratio > 0).then_some(counted))
    }

    fn capacity(rule: Rule) -> u64 {
        rule.capacity
    }

    #[inline]
    fn credit(&self) -> bool {
        self.credit()
    }

    fn balance(&self) -> Option<u64> {
        self.balance()
    }

    fn settle(&self, now: Duration) {
        self.settle(now);
    }

    fn is_full_at(&self, now: Duration) -> bool {
        self.is_full_at(now)
    }
}

impl Entry for CautiousBucket {
    fn retire(&self, now: Duration) -> bool {
        self.retire(now)
    }
}

impl DestinationBucket for CautiousBucket {
    type Rule = Caution;

    fn create(rule: Caution, counted: (Arc<NotFull>, Slot)) -> Self {
        Self::new(rule, counted)
    }

    fn capacity(rule: Caution) -> u64 {
        rule.capacity
    }

    #[inline]
    fn credit(&self) -> bool {
        self.credit()
    }

    fn balance(&self) -> Option<u64> {
        self.balance()
    }

    fn doubt(&self) -> u64 {
        self.doubt()
    }

    fn settle(&self, now: Duration) {
        self.settle(now);
    }

    fn is_full_at(&self, now: Duration) -> bool {
        self.is_full_at(now)
    }
}
