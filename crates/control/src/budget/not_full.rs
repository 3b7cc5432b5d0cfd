//! The number of buckets that a success would change, in total and by destination hash.
//!
//! If every bucket is full, a success needs one load. Otherwise it needs a hash and two more loads, and rarely reads
//! the table of destinations. Destinations whose hashes share a slot are counted together. A success may thus look up a
//! full bucket, but it never misses one that is not full.

use std::sync::Arc;

use crate::sync::{Apart, AtomicU32, AtomicUsize, Ordering};

/// The number of slots, which take one kilobyte per budget. One is enough for the model checker.
const SLOTS: usize = if cfg!(loom) { 1 } else { 256 };

pub(crate) struct NotFull {
    /// The total, which every success on every thread reads.
    all: Apart<AtomicUsize>,
    /// The last slot is for the shared bucket.
    by_slot: [AtomicU32; SLOTS + 1],
}

/// The slot in which a bucket is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot(usize);

impl Slot {
    /// The slot of the bucket that all destinations share.
    pub(crate) const OTHERS: Self = Self(SLOTS);

    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        Self(usize::from(hash.to_le_bytes()[0]) % SLOTS)
    }
}

/// The counters of one bucket.
pub(crate) struct BucketCount {
    pub(crate) not_full: Arc<NotFull>,
    pub(crate) slot: Slot,
}

impl NotFull {
    pub(crate) fn new() -> Self {
        Self { all: Apart::default(), by_slot: std::array::from_fn(|_| AtomicU32::default()) }
    }

    /// Returns the number of buckets that are not full. It may briefly be too high, but is never too low.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.all.0.load(Ordering::Acquire)
    }

    /// Returns the number of non-full buckets in the slots for this hash, an upper bound for its destination.
    #[inline]
    pub(crate) fn count_for(&self, hash: u64) -> u32 {
        let count = |slot: Slot| self.by_slot[slot.0].load(Ordering::Acquire);
        count(Slot::of(hash)) + count(Slot::OTHERS)
    }
}

impl BucketCount {
    /// Counts a bucket. Called before the bucket stops being full, so a thread that sees a non-full bucket also sees it
    /// counted.
    #[inline]
    pub(crate) fn add(&self) {
        self.not_full.all.0.fetch_add(1, Ordering::Relaxed);
        self.not_full.by_slot[self.slot.0].fetch_add(1, Ordering::Relaxed);
    }

    /// Stops counting a bucket. Called after the bucket has become full.
    #[inline]
    pub(crate) fn remove(&self) {
        self.not_full.all.0.fetch_sub(1, Ordering::Release);
        self.not_full.by_slot[self.slot.0].fetch_sub(1, Ordering::Release);
    }
}
