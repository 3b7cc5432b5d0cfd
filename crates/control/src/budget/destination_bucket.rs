//! The interface between the stores of a budget and the kinds of bucket in them.
//!
//! Its implementations are here, because the model checker includes the files of the buckets alone.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{FailureKind, PermitIssuer};

use super::bucket::{Bucket, Rule, Take};
use super::cautious::{Caution, CautiousBucket, Event};
use super::not_full::{NotFull, Slot};
use super::settings::Costs;
use crate::destination_table::Entry;

/// A bucket that a table of destinations can hold.
pub(super) trait DestinationBucket: Entry + PermitIssuer + Sized + 'static {
    /// The settings of such a bucket.
    type Rule: Copy + Send + Sync;

    /// Creates a full bucket, which is counted in a slot while a success would change it.
    fn create(rule: Self::Rule, counted: (Arc<NotFull>, Slot)) -> Self;
    /// Returns the most that the bucket holds, in millionths.
    fn capacity(rule: Self::Rule) -> u64;
    /// Returns the tokens that an event asks for.
    fn cost(rule: Self::Rule, event: Event) -> u32;
    /// Records an event, and takes the tokens that it asks for.
    fn record(&self, event: Event, cost: u32, now: Duration) -> Take;
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
}

impl Entry for Bucket {
    /// The next bucket of the destination is full, so it grants again what this one has granted.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.retire(now, forgets, is_idle)
    }
}

impl DestinationBucket for Bucket {
    type Rule = (Rule, Costs);

    fn create((rule, _): Self::Rule, counted: (Arc<NotFull>, Slot)) -> Self {
        Self::new(rule, counted)
    }

    fn capacity((rule, _): Self::Rule) -> u64 {
        rule.capacity
    }

    #[inline]
    fn cost((_, costs): Self::Rule, event: Event) -> u32 {
        if event.kind() == FailureKind::Timeout { costs.after_timeout } else { costs.retry }
    }

    #[inline]
    fn record(&self, _: Event, cost: u32, now: Duration) -> Take {
        self.take(cost, now)
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
}

impl Entry for CautiousBucket {
    /// The next bucket of the destination is full, so it grants again what this one has granted.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.retire(now, forgets, is_idle)
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
    fn cost(_: Caution, event: Event) -> u32 {
        event.cost()
    }

    #[inline]
    fn record(&self, event: Event, _: u32, now: Duration) -> Take {
        self.record(event, now)
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
}
