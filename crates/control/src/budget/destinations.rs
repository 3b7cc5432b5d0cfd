//! A bounded table with one bucket per destination.
//!
//! Input: events and successes with a destination name. Output: permits from the bucket that paid. The table is
//! [`Keyed`].
//!
//! A destination without a take (for a cautious budget: without a failure) has a full bucket and needs no entry. For
//! the same reason, full buckets are evicted first from a full table. A permit holds its bucket, so a bucket with a
//! retry in flight is not evicted.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Permit;

use super::bucket::Take;
use super::cautious::Event;
use super::destination_bucket::{Balance, DestinationBucket};
use super::not_full::{NotFull, Slot};
use super::store::Store;
use crate::bounded_name::bounded_name;
use crate::keyed::{Found, Keyed, PastBound};
use crate::sync::{AtomicU64, Ordering};

/// The minimum time in seconds between two searches for buckets that time has filled up.
const SECONDS_BETWEEN_SEARCHES: u64 = 10;

pub(super) struct Destinations<B: DestinationBucket> {
    buckets: Keyed<B>,
    /// The number of buckets that a success would change; 0 if only time adds tokens.
    not_full: Arc<NotFull>,
    /// The second after which the next event lets the buckets catch up.
    catch_up_at: AtomicU64,
    rule: B::Rule,
}

impl<B: DestinationBucket> Store for Destinations<B> {
    #[inline(never)]
    fn record(&self, destination: &str, event: Event, now: Duration) -> Option<Permit> {
        let cost = B::cost(self.rule, event);
        if now.as_secs() >= self.catch_up_at.load(Ordering::Relaxed) {
            self.catch_up(now);
        }
        let create = |name: &Arc<str>| {
            let slot = Slot::of(self.buckets.hash(name));
            B::create(self.rule, (Arc::clone(&self.not_full), slot))
        };
        let record = |bucket: &Found<'_, B>| match bucket.record(event, cost, now) {
            Take::Taken => Some(Some(Permit::new(Arc::<B>::clone(bucket.entry()), cost))),
            Take::Refused => Some(None),
            Take::Retired => None,
        };
        self.buckets.with(destination, now, PastBound::Shared, create, record).flatten()
    }

    /// Credits the bucket of `destination`, or the shared bucket if the destination has none.
    fn on_success(&self, destination: &str) {
        if let Cow::Owned(name) = bounded_name(destination) {
            return self.on_success(&name);
        }
        let hash = self.buckets.hash(destination);
        if self.not_full.count_for(hash) > 0 {
            self.credit(hash, destination);
        }
    }

    fn balance(&self, destination: &str) -> Option<u64> {
        let bucket = self.buckets.get(destination);
        bucket.and_then(|bucket| bucket.balance()).or(Some(B::capacity(self.rule)))
    }

    fn is_full(&self, destination: &str) -> bool {
        let bucket = self.buckets.get(destination);
        let capacity = B::capacity(self.rule);
        bucket.is_none_or(|bucket| Balance::of(&*bucket, self.rule).is_full(capacity))
    }

    fn restore(&self, destination: &str, former: Balance) {
        let create = |name: &Arc<str>| {
            let slot = Slot::of(self.buckets.hash(name));
            B::create(self.rule, (Arc::clone(&self.not_full), slot))
        };
        let restore = |bucket: &Found<'_, B>| {
            bucket.restore(former);
            Some(())
        };
        // A name without room in a smaller table uses the shared bucket, whose balance is restored apart.
        self.buckets.with(destination, Duration::ZERO, PastBound::Nothing, create, restore);
    }

    fn restore_shared(&self, former: Balance) {
        if let Some(bucket) = self.buckets.shared() {
            bucket.restore(former);
        }
    }

    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance) {
        let mut all = Vec::new();
        self.buckets.for_each(|place| {
            all.push((Arc::clone(&place.name), Balance::of(&*place.entry, self.rule)));
        });
        let full = Balance { tokens: B::capacity(self.rule), doubt: 0, at: 0 };
        let mut all = all.into_iter();
        // The shared bucket comes first.
        let others = all.next().map_or(full, |(_, others)| others);
        (all.collect(), others)
    }
}

impl<B: DestinationBucket> Destinations<B> {
    /// Creates full buckets for at most `most` destinations. They are counted in `not_full`.
    pub(super) fn new(most: usize, rule: B::Rule, not_full: Arc<NotFull>) -> Self {
        let others = B::create(rule, (Arc::clone(&not_full), Slot::OTHERS));
        Self { buckets: Keyed::new(Some(most), others), not_full, catch_up_at: AtomicU64::new(0), rule }
    }

    /// Credits the bucket of `destination`. Not inlined, so that a success without effect saves fewer registers.
    #[inline(never)]
    fn credit(&self, hash: u64, destination: &str) {
        let own = self.buckets.find(hash, destination);
        own.or_else(|| self.buckets.shared()).iter().for_each(|bucket| {
            bucket.credit();
        });
    }

    /// Fills the buckets that time has filled up, if a search is due and this thread wins it.
    ///
    /// Otherwise an unused bucket would never be marked as full, and every success would compute its destination's
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
