//! The buckets of a budget: one for all destinations, or a bounded table with one for each.
//!
//! Input: events and successes with a destination name. Output: permits from the bucket that paid. The table is
//! [`Keyed`].
//!
//! A destination that has taken no tokens (under a cautious budget: has had no failures) would have a full bucket, so
//! it needs no entry. For the same reason, full buckets are evicted first when the table is full. A permit holds its
//! bucket, so a bucket with a retry in flight is not evicted.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Permit;

use super::any_bucket::{AnyBucket, Balance};
use super::cautious::Event;
use super::not_full::{BucketCount, NotFull, Slot};
use super::settings::BucketRule;
use crate::bounded_name::bounded_name;
use crate::keyed::{Found, Keyed, PastBound};
use crate::sync::{AtomicU64, Ordering};

/// The minimum time in seconds between two searches for buckets that have filled up over time.
const SECONDS_BETWEEN_SEARCHES: u64 = 10;

pub(super) struct Destinations {
    buckets: Keyed<AnyBucket>,
    /// The number of these buckets that are not full.
    not_full: Arc<NotFull>,
    /// The second from which the next event updates all buckets that have filled up over time.
    catch_up_at: AtomicU64,
    rule: BucketRule,
}

impl Destinations {
    /// Creates full buckets for at most `most` destinations, or one for all. Those that are not full are counted in
    /// `not_full`.
    pub(super) fn new(most: Option<usize>, rule: BucketRule, not_full: Arc<NotFull>) -> Self {
        let others = BucketCount { not_full: Arc::clone(&not_full), slot: Slot::OTHERS };
        let others = AnyBucket::new(rule, others);
        Self { buckets: Keyed::new(most, others), not_full, catch_up_at: AtomicU64::new(0), rule }
    }

    /// Inlined fast path of [`record`](Self::record) for an event that requests tokens. Returns `None` in all but the
    /// usual case.
    #[inline(always)]
    pub(super) fn try_take(&self, destination: &str, event: Event, now: Duration) -> Option<Permit> {
        let bucket = self.buckets.at_hand(destination)?;
        let is_due = now.as_secs() >= self.catch_up_at.load(Ordering::Relaxed);
        if is_due { None } else { bucket.entry.try_take(event, now) }
    }

    /// Records `event` for `destination`. Returns a permit if the event requests tokens and the bucket grants them.
    #[inline(never)]
    pub(super) fn record(&self, destination: &str, event: Event, now: Duration) -> Option<Permit> {
        if now.as_secs() >= self.catch_up_at.load(Ordering::Relaxed) {
            self.catch_up(now);
        }
        let record = |bucket: &Found<'_, AnyBucket>| bucket.entry().record(event, now);
        self.buckets.with(destination, now, PastBound::Shared, |name| self.create(name), record).flatten()
    }

    /// Credits the bucket of `destination`, or the shared bucket if the destination has none.
    pub(super) fn on_success(&self, destination: &str) {
        if let Some(bucket) = self.buckets.at_hand(destination) {
            return bucket.entry.credit();
        }
        if let Cow::Owned(name) = bounded_name(destination) {
            return self.on_success(&name);
        }
        let hash = self.buckets.hash(destination);
        if self.not_full.count_for(hash) > 0 {
            self.credit(hash, destination);
        }
    }

    /// Returns `true` if the doubt lets a call to `destination` move to another endpoint without a token.
    pub(super) fn allows_moves(&self, destination: &str) -> bool {
        self.buckets.get(destination).is_none_or(|bucket| bucket.allows_moves())
    }

    /// Returns the balance of the bucket that `destination` would use, in millionths.
    pub(super) fn balance(&self, destination: &str) -> i64 {
        self.balance_of(destination).tokens
    }

    /// Returns `true` if a success would not change the bucket that `destination` would use.
    pub(super) fn is_full(&self, destination: &str) -> bool {
        self.is_full_at(self.balance_of(destination))
    }

    /// Returns `true` if a success would not change a bucket with this balance.
    pub(super) fn is_full_at(&self, balance: Balance) -> bool {
        balance.is_full(self.rule.capacity())
    }

    /// Restores the balances of former buckets, up to the capacity. Called before the buckets are used.
    pub(super) fn restore(&self, former: &Self) {
        let (own, others) = former.balances();
        for (name, balance) in own {
            let restore = |bucket: &Found<'_, AnyBucket>| {
                bucket.restore(balance);
                Some(())
            };
            // A name that does not fit into a smaller table uses the shared bucket, whose balance is restored
            // separately.
            self.buckets.with(&name, Duration::ZERO, PastBound::Nothing, |name| self.create(name), restore);
        }
        self.buckets.shared().into_iter().for_each(|bucket| bucket.restore(others));
    }

    /// Returns the destinations' buckets, unsorted, and the shared bucket.
    pub(super) fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance) {
        let mut all = Vec::new();
        self.buckets.for_each(|place| {
            all.push((Arc::clone(&place.name), place.entry.balance().unwrap_or(self.full())));
        });
        let mut all = all.into_iter();
        // The shared bucket comes first.
        let others = all.next().map_or(self.full(), |(_, others)| others);
        (all.collect(), others)
    }

    fn full(&self) -> Balance {
        Balance { tokens: self.rule.capacity().cast_signed(), doubt: 0, at: 0 }
    }

    fn balance_of(&self, destination: &str) -> Balance {
        self.buckets.get(destination).and_then(|bucket| bucket.balance()).unwrap_or(self.full())
    }

    fn create(&self, name: &str) -> AnyBucket {
        let slot = Slot::of(self.buckets.hash(name));
        AnyBucket::new(self.rule, BucketCount { not_full: Arc::clone(&self.not_full), slot })
    }

    /// Credits the bucket of `destination`. Not inlined, so that a success without an effect need not save as many
    /// registers.
    #[inline(never)]
    fn credit(&self, hash: u64, destination: &str) {
        let own = self.buckets.find(hash, destination);
        own.or_else(|| self.buckets.shared()).into_iter().for_each(|bucket| bucket.credit());
    }

    /// Marks buckets that have filled up over time as full, if a search is due and no other thread has started it.
    ///
    /// Without this, an unused bucket would never be marked as full, and every success would compute its destination's
    /// hash.
    #[cold]
    fn catch_up(&self, now: Duration) {
        let seconds = now.as_secs();
        let next = seconds.saturating_add(SECONDS_BETWEEN_SEARCHES);
        let due = self.catch_up_at.load(Ordering::Relaxed);
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        if seconds >= due && self.catch_up_at.compare_exchange(due, next, set, failed).is_ok() {
            self.buckets.for_each(|place| place.entry.catch_up(now));
        }
    }
}
