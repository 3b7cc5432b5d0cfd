//! The interface between a budget's stores and its kinds of bucket.
//!
//! The implementations are here, because the model checker includes the bucket files alone.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{FailureKind, PermitIssuer};

use super::bucket::{Bucket, Rule, Take};
use super::cautious::{Caution, CautiousBucket, Event};
use super::not_full::{NotFull, Slot};
use super::settings::Costs;
use crate::destination_table::Entry;

/// A bucket that can be stored in a table of destinations.
pub(super) trait DestinationBucket: Entry + PermitIssuer + Sized + 'static {
    /// The settings of this kind of bucket.
    type Rule: Copy + Send + Sync;

    /// Creates a full bucket. `slot` counts it while a success would change it.
    fn create(rule: Self::Rule, counted: (Arc<NotFull>, Slot)) -> Self;
    /// Returns the capacity in millionths.
    fn capacity(rule: Self::Rule) -> u64;
    /// Returns the tokens that an event requests.
    fn cost(rule: Self::Rule, event: Event) -> u32;
    /// Records an event, and takes the tokens that it requests.
    fn record(&self, event: Event, cost: u32, now: Duration) -> Take;
    /// Records a success. Returns `false` if the bucket was removed from the table.
    fn credit(&self) -> bool;
    /// Returns the tokens in millionths; `None` once the bucket was removed from the table.
    fn balance(&self) -> Option<u64>;
    /// Returns the doubt, which blocks retries even if there are tokens; 0 for kinds without doubt.
    fn doubt(&self) -> u64 {
        0
    }
    /// Returns the time as of which the balance holds, in the units of this kind.
    fn at(&self) -> u64;
    /// Takes over a former bucket's balance, up to the capacity. Called before the bucket is used.
    fn restore(&self, former: Balance);
    /// Fills the bucket if time has filled it by `now`.
    fn catch_up(&self, now: Duration);
}

/// A bucket's tokens in millionths, and its doubt, which blocks retries even if there are tokens.
#[derive(Clone, Copy)]
pub(super) struct Balance {
    pub(super) tokens: u64,
    pub(super) doubt: u64,
    /// The time as of which the balance holds, in the units of the kind of bucket.
    pub(super) at: u64,
}

impl Balance {
    pub(super) fn of<B: DestinationBucket>(bucket: &B, rule: B::Rule) -> Self {
        let tokens = bucket.balance().unwrap_or(B::capacity(rule));
        Self { tokens, doubt: bucket.doubt(), at: bucket.at() }
    }

    pub(super) fn is_full(self, capacity: u64) -> bool {
        self.tokens >= capacity && self.doubt == 0
    }
}

impl Entry for Bucket {
    /// Retires the bucket. The destination's next one starts full, so the tokens in use may be granted again.
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

    fn at(&self) -> u64 {
        self.refilled_until()
    }

    fn restore(&self, former: Balance) {
        self.restore(former.tokens, former.at);
    }

    fn catch_up(&self, now: Duration) {
        self.catch_up(now);
    }
}

impl Entry for CautiousBucket {
    /// Retires the bucket. The destination's next one starts full, so the tokens in use may be granted again.
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

    fn at(&self) -> u64 {
        self.last_failure()
    }

    fn restore(&self, former: Balance) {
        self.restore(former.tokens, former.doubt, former.at);
    }

    fn catch_up(&self, now: Duration) {
        self.catch_up(now);
    }
}
