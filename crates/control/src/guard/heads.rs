//! The moments at which response heads arrived whose bodies are not over, so that unread bodies can be found.

use std::time::Duration;

use super::time::nanos;
use crate::sync::{AtomicU64, Ordering};

/// The slots that are used without a lock: half of a bulkhead's default limit.
pub(crate) const HEADS: usize = if cfg!(loom) { 1 } else { 32 };

/// The slots that a call tries.
const TRIES: usize = if cfg!(loom) { 1 } else { 4 };

/// The moments, in slots that calls take and clear without a lock. A free slot is 0.
pub(crate) struct Heads([AtomicU64; HEADS]);

impl Heads {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Notes a moment in a free slot. Calls begin at the slot for their number of calls in flight, so they rarely meet.
    /// Returns the slot, if there was one.
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

/// The moments at which response heads arrived, in slots behind the lock of their owner.
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
