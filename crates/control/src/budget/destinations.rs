//! A bucket for each destination, in a table of bounded size.
//!
//! Input: events and successes with the name of a destination. Output: permits of the bucket that
//! tokens were taken from. The table is [`DestinationTable`].
//!
//! A destination without a take, or under a cautious budget without a failure, has a full bucket and needs no entry.
//! For the same reason the full buckets leave when the table has no place left.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reattempt_core::Permit;

use super::bucket::Take;
use super::cautious::Event;
use super::destination_bucket::DestinationBucket;
use super::not_full::{NotFull, Slot};
use super::store::{Balance, Store, record_in};
use crate::destination_table::{DestinationTable, Entries, Place, find};
use crate::sync::{AtomicU64, Ordering};

/// The least time in seconds between two searches for buckets that time has filled up.
const SECONDS_BETWEEN_SETTLEMENTS: u64 = 10;

/// The number of destinations that a credit finds without the table: two kilobytes for each budget.
const FIRSTS: usize = 64;

pub(super) struct Destinations<B: DestinationBucket> {
    table: DestinationTable<B>,
    /// The first destination of those whose hashes end alike. A credit that finds its bucket here does not search the
    /// table. The entry stays after the bucket has left the table.
    firsts: Box<[OnceLock<Place<B>>]>,
    /// The number of buckets that a success would change; 0 if only time adds tokens.
    not_full: Arc<NotFull>,
    /// The second from which on the next event settles the buckets.
    settle_at: AtomicU64,
    rule: B::Rule,
}

impl<B: DestinationBucket> Store for Destinations<B> {
    #[inline(never)]
    fn record(&self, destination: &str, event: Event, now: Duration) -> Option<Permit> {
        let (hash, cost) = (self.table.hash(destination), B::cost(self.rule, event));
        let table = self.table.load();
        if now.as_secs() >= self.settle_at.load(Ordering::Relaxed) {
            self.settle(&table, now);
        }
        if let Some(bucket) = find(&table, hash, destination) {
            match bucket.record(event, cost, now) {
                Take::Taken => return Some(Permit::new(Arc::<B>::clone(bucket), cost)),
                Take::Refused => return None,
                Take::Retired => {}
            }
        } else if self.table.is_full(&table) && !table.iter().any(|own| own.entry.is_full_at(now)) {
            return record_in(self.table.others(), event, cost, now);
        }
        drop(table);
        self.record_as_newcomer(destination, event, cost, now)
    }

    /// Credits the bucket of `destination`. A destination without a bucket of its own uses the shared one.
    fn on_success(&self, destination: &str) {
        let hash = self.table.hash(destination);
        if self.not_full.count_for(hash) > 0 {
            self.credit_first_or_listed(hash, destination);
        }
    }

    fn balance(&self, destination: &str) -> Option<u64> {
        let table = self.table.load();
        let balance = match find(&table, self.table.hash(destination), destination) {
            Some(bucket) => bucket.balance(),
            None if self.table.is_full(&table) => self.table.others().balance(),
            None => None,
        };
        balance.or(Some(B::capacity(self.rule)))
    }

    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance) {
        let table = self.table.load();
        let balance = |bucket: &B| Balance::of(bucket, self.rule);
        let own = table.iter().map(|place| (Arc::clone(&place.name), balance(&place.entry)));
        (own.collect(), balance(self.table.others()))
    }
}

impl<B: DestinationBucket> Destinations<B> {
    /// Creates full buckets for at most that many destinations. They are counted in `not_full`.
    pub(super) fn new(most: usize, rule: B::Rule, not_full: Arc<NotFull>) -> Self {
        let others = B::create(rule, (Arc::clone(&not_full), Slot::OTHERS));
        Self {
            table: DestinationTable::new(most, others),
            firsts: (0..FIRSTS).map(|_| OnceLock::new()).collect(),
            not_full,
            settle_at: AtomicU64::new(0),
            rule,
        }
    }

    /// Credits the bucket of `destination`, found in `firsts` or in the table. Not inlined, so that a success without
    /// effect saves fewer registers.
    #[inline(never)]
    fn credit_first_or_listed(&self, hash: u64, destination: &str) {
        let first = self.first(hash).get();
        // A bucket that has not left the table is the one that is in it.
        if !first.is_some_and(|first| *first.name == *destination && first.entry.credit()) {
            self.credit_listed(hash, destination);
        }
    }

    #[inline(never)]
    fn credit_listed(&self, hash: u64, destination: &str) {
        find(&self.table.load(), hash, destination).unwrap_or(self.table.others()).credit();
    }

    fn first(&self, hash: u64) -> &OnceLock<Place<B>> {
        &self.firsts[usize::from(hash.to_le_bytes()[0]) % FIRSTS]
    }

    /// Fills the buckets that time has filled up, if it is this thread's turn.
    ///
    /// Without it, a bucket that is no longer used would stay less than full, and every success would compute the hash
    /// of its destination.
    #[cold]
    fn settle(&self, table: &Entries<B>, now: Duration) {
        let seconds = now.as_secs();
        let next = seconds.saturating_add(SECONDS_BETWEEN_SETTLEMENTS);
        let due = self.settle_at.load(Ordering::Relaxed);
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        if seconds >= due && self.settle_at.compare_exchange(due, next, set, failed).is_ok() {
            table.iter().map(|place| &place.entry).for_each(|bucket| bucket.settle(now));
            self.table.others().settle(now);
        }
    }

    /// Finds `destination` a place and records its first event, behind the lock.
    #[cold]
    fn record_as_newcomer(
        &self,
        destination: &str,
        event: Event,
        cost: u32,
        now: Duration,
    ) -> Option<Permit> {
        let create = |name: &Arc<str>| {
            let hash = self.table.hash(name);
            let counted = (Arc::clone(&self.not_full), Slot::of(hash));
            let bucket = Arc::new(B::create(self.rule, counted));
            let place = Place { name: Arc::clone(name), entry: Arc::clone(&bucket) };
            self.first(hash).get_or_init(|| place);
            bucket
        };
        let record = |bucket: &Arc<B>| record_in(bucket, event, cost, now);
        self.table.enter(destination, now, create, record)
    }
}
