//! The arrival times of response heads whose bodies have not ended, used to detect unread bodies.

use std::time::Duration;

use super::time::nanos;
use crate::sync::{AtomicU64, Ordering};

/// The number of lock-free slots, half of a bulkhead's default limit.
pub(crate) const HEADS: usize = if cfg!(loom) { 1 } else { 32 };

/// The number of slots that a call tries.
const TRIES: usize = if cfg!(loom) { 1 } else { 4 };

/// Arrival times, in slots that are taken and cleared without a lock. A free slot is 0.
pub(crate) struct Heads([AtomicU64; HEADS]);

impl Heads {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Stores a time in a free slot, and returns the slot if there was one. Calls start at the slot given by
    /// `in_flight`, so they rarely collide.
    #[inline]
    pub(crate) fn note(&self, in_flight: u32, now: Duration) -> Option<usize> {
        let stamp = nanos(now).saturating_add(1);
        (in_flight as usize..).take(TRIES).map(|number| number % HEADS).find(|slot| {
            let slot = &self.0[*slot];
            let relaxed = Ordering::Relaxed;
            slot.load(relaxed) == 0 && slot.compare_exchange(0, stamp, relaxed, relaxed).is_ok()
        })
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn clear(&self, slot: usize) {
        if let Some(slot) = self.0.get(slot) {
            slot.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn since(&self) -> impl Iterator<Item = Duration> {
        let stamps = self.0.iter().map(|slot| slot.load(Ordering::Relaxed));
        stamps.filter(|stamp| *stamp > 0).map(|stamp| Duration::from_nanos(stamp - 1))
    }
}

/// Arrival times of response heads, in slots guarded by the owner's lock.
#[derive(Default)]
pub(crate) struct MoreHeads {
    since: Vec<Option<Duration>>,
    free: Vec<usize>,
}

impl MoreHeads {
    pub(crate) fn since(&self) -> impl Iterator<Item = Duration> {
        self.since.iter().copied().flatten()
    }

    pub(crate) fn insert(&mut self, now: Duration) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.since.push(None);
            self.since.len() - 1
        });
        self.since[slot] = Some(now);
        slot
    }

    pub(crate) fn remove(&mut self, slot: usize) {
        if self.since.get_mut(slot).and_then(Option::take).is_some() {
            self.free.push(slot);
        }
    }
}
