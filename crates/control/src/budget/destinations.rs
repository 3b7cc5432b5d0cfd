//! A bucket for each destination, in a table of bounded size.
//!
//! What flows in: takes and credits with the name of a destination. What flows out: the bucket that
//! a token was taken from. The table is copied when it changes and read without any lock; only a
//! destination that asks for its first token has to wait for another such newcomer.
//!
//! A destination that never asked for a token has a full bucket, so it needs none here. When the
//! table has no place left, the full buckets go, for the same reason. Each is *retired* first, by
//! the same compare-and-swap that a take needs: a take that comes too late is told so, and looks
//! again behind the lock, where the new table is in place. If no bucket is full, the newcomer shares
//! one bucket with all others who find no place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::bucket::{Bucket, Rule, Take};
use crate::sync::AtomicUsize;

type Buckets = HashMap<Arc<str>, Arc<Bucket>>;

pub(crate) struct Destinations {
    buckets: ArcSwap<Buckets>,
    /// Held by whoever changes the table; a bucket is retired only under it.
    changing: Mutex<()>,
    /// The bucket of all who have no place in the table. It is never retired.
    others: Arc<Bucket>,
    most: usize,
    rule: Rule,
    not_full: Arc<AtomicUsize>,
}

impl Destinations {
    /// An empty table with room for `most` destinations.
    pub(crate) fn new(most: usize, rule: Rule, not_full: Arc<AtomicUsize>) -> Self {
        Self {
            buckets: ArcSwap::default(),
            changing: Mutex::new(()),
            others: Arc::new(Bucket::new(rule, Arc::clone(&not_full))),
            most,
            rule,
            not_full,
        }
    }

    /// Takes one token for `destination` and returns the bucket that it came from.
    pub(crate) fn take(&self, destination: &str, now: Duration) -> Option<Arc<Bucket>> {
        let buckets = self.buckets.load();
        if let Some(bucket) = buckets.get(destination) {
            match bucket.take(now) {
                Take::Taken => return Some(Arc::clone(bucket)),
                Take::Refused => return None,
                Take::Retired => {}
            }
        } else if buckets.len() >= self.most && !buckets.values().any(|own| own.is_full_at(now)) {
            return taken_from(&self.others, now);
        }
        drop(buckets);
        self.take_as_newcomer(destination, now)
    }

    /// Credits a success of `destination`. One that has no bucket of its own is one of those that
    /// share the bucket of the others.
    pub(crate) fn credit(&self, destination: &str) {
        self.buckets.load().get(destination).unwrap_or(&self.others).credit();
    }

    /// The balance that `destination` would draw on, in millionths.
    pub(crate) fn balance(&self, destination: &str) -> u64 {
        let buckets = self.buckets.load();
        let balance = match buckets.get(destination) {
            Some(bucket) => bucket.balance(),
            None if buckets.len() < self.most => None,
            None => self.others.balance(),
        };
        balance.unwrap_or(self.rule.capacity)
    }

    /// Every destination that has a bucket, with its balance in millionths, in no order.
    pub(crate) fn balances(&self) -> Vec<(Arc<str>, u64)> {
        let buckets = self.buckets.load();
        let balance = |bucket: &Bucket| bucket.balance().unwrap_or(self.rule.capacity);
        buckets.iter().map(|(name, bucket)| (Arc::clone(name), balance(bucket))).collect()
    }

    /// The balance of the bucket that the destinations without a place share, in millionths.
    pub(crate) fn balance_of_others(&self) -> u64 {
        self.others.balance().unwrap_or(self.rule.capacity)
    }

    /// Finds `destination` a place and takes its first token, behind the lock.
    fn take_as_newcomer(&self, destination: &str, now: Duration) -> Option<Arc<Bucket>> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = self.buckets.load_full();
        // Another thread may have brought it in meanwhile.
        if let Some(bucket) = buckets.get(destination) {
            return taken_from(bucket, now);
        }
        let mut changed = Buckets::clone(&buckets);
        if changed.len() >= self.most {
            changed.retain(|_, bucket| !bucket.retire(now));
        }
        if changed.len() >= self.most {
            return taken_from(&self.others, now);
        }
        let bucket = Arc::new(Bucket::new(self.rule, Arc::clone(&self.not_full)));
        changed.insert(destination.into(), Arc::clone(&bucket));
        self.buckets.store(Arc::new(changed));
        taken_from(&bucket, now)
    }
}

/// One token from a bucket that cannot be retired while this runs.
fn taken_from(bucket: &Arc<Bucket>, now: Duration) -> Option<Arc<Bucket>> {
    (bucket.take(now) == Take::Taken).then(|| Arc::clone(bucket))
}
