//! A process's state as a member of the fleet: its destinations, and whether the store is failing.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reattempt_core::snapshot::Part;
use reattempt_core::user_code;

use crate::courier::Courier;
use crate::destination::{Destination, between};
use crate::key::key_of;
use crate::stats::{FleetEvent, Observer, Tally};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::table::Table;

/// The time for which a failed store is not asked again.
const FAILURE_MEMORY: Duration = Duration::from_secs(1);

/// The range of the time, from the store's first failure, in which this process sends no retry alone unless its retries
/// succeed. Processes that began to send at once, in a failure of the store during an outage, would be the storm that a
/// shared budget prevents.
// FB-1
const WITHHELD: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

/// The number of first successes that are recorded by destination. A process with more is not one that restarts in a
/// loop, so a destination that it has no record of counts as one with a success.
// FB-2
const YOUNG: u64 = 64;

#[derive(Debug, Clone, Copy)]
struct Failing {
    /// The time until which the store is not asked.
    ask_at: Duration,
    /// The time from which this process decides alone.
    alone_at: Duration,
}

pub(crate) struct Member {
    pub(crate) prefix: Box<str>,
    pub(crate) patience: Duration,
    pub(crate) observer: Option<Observer>,
    pub(crate) tally: Tally,
    destinations: Table<Destination>,
    /// The state of a store that fails or is late, until it answers in time.
    failing: Mutex<Option<Failing>>,
    /// The number of successes after which this process is not young any more.
    young: AtomicU64,
    random: AtomicU64,
    pub(crate) courier: Arc<dyn Courier>,
}

impl Member {
    pub(crate) fn new(
        prefix: Box<str>,
        patience: Duration,
        observer: Option<Observer>,
        courier: Arc<dyn Courier>,
    ) -> Self {
        Self {
            prefix,
            patience,
            observer,
            tally: Tally::default(),
            destinations: Table::new(),
            failing: Mutex::new(None),
            young: AtomicU64::new(YOUNG),
            random: AtomicU64::new(courier.seed()),
            courier,
        }
    }

    /// Returns `true` if a message may be sent to the store at `now`. While the store fails, one message per second may
    /// be sent.
    pub(crate) fn may_send(&self, now: Duration) -> bool {
        let mut failing = self.failing();
        let Some(failing) = &mut *failing else { return true };
        let may = failing.ask_at <= now;
        if may {
            failing.ask_at = now + FAILURE_MEMORY;
        }
        may
    }

    /// Returns `true` if this process may send a retry without the store: at once if its retries succeed there,
    /// and otherwise 5 to 10 s after the store's first failure.
    // FB-1
    pub(crate) fn may_send_alone(&self, destination: &Destination, now: Duration) -> bool {
        let withheld = self.failing().is_some_and(|failing| now < failing.alone_at);
        !withheld || destination.retries_succeed(now)
    }

    /// Records that the store has answered in time.
    pub(crate) fn store_works(&self) {
        *self.failing() = None;
    }

    /// Records that the store has not answered in time.
    pub(crate) fn store_is_late(&self) {
        let (now, random) = (self.courier.now(), self.random());
        let mut failing = self.failing();
        let alone_at = failing.map_or(now + between(WITHHELD.0, WITHHELD.1, random), |failing| failing.alone_at);
        *failing = Some(Failing { ask_at: now + FAILURE_MEMORY, alone_at });
    }

    /// Adds the state of the store, and the time for which this process still sends no retry without it.
    pub(crate) fn inspect(&self, part: Part) -> Part {
        let (failing, now) = (*self.failing(), self.courier.now());
        let withheld = failing.map(|failing| failing.alone_at.saturating_sub(now)).filter(|left| !left.is_zero());
        part.field("store_fails", failing.is_some()).field_if("withheld_for", withheld)
    }

    fn failing(&self) -> MutexGuard<'_, Option<Failing>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event and notifies the observer.
    pub(crate) fn note(&self, destination: &str, event: &FleetEvent<'_>) {
        self.tally.count(event);
        if let Some(observer) = &self.observer {
            user_code::notify(|| observer(destination, event));
        }
        if let Some(warning) = self.tally.check_late(event) {
            self.note(destination, &warning);
        }
    }

    /// Returns the state of a destination, or `None` if the table has no room for it.
    pub(crate) fn destination(&self, name: &str) -> Option<Arc<Destination>> {
        let new = |name: &str| Destination::new(name, key_of(&self.prefix, name), !self.is_young());
        self.destinations.get(name, || self.courier.now(), Destination::is_idle, new)
    }

    /// Returns `true` if a success must be recorded although no bucket changes.
    #[inline]
    pub(crate) fn is_young(&self) -> bool {
        self.young.load(Ordering::Relaxed) > 0
    }

    /// Records a success of a young process.
    pub(crate) fn on_first_successes(&self, destination: &str) {
        if let Some(destination) = self.destination(destination) {
            destination.on_success();
        }
        let _ = self.young.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    }

    /// Returns a random number (SplitMix64), for jitter.
    pub(crate) fn random(&self) -> u64 {
        let state = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
