//! A process's state as a member of the fleet: its destinations, and whether the store is failing.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::courier::Courier;
use crate::destination::Destination;
use crate::key::key_of;
use crate::stats::{FleetEvent, Observer, Tally};
use crate::store::BoxError;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::table::Table;

/// The time for which a failed store is not asked again.
const FAILURE_MEMORY: Duration = Duration::from_secs(1);

pub(crate) struct Member {
    pub(crate) prefix: Box<str>,
    pub(crate) patience: Duration,
    pub(crate) observer: Option<Observer>,
    pub(crate) tally: Tally,
    destinations: Table<Destination>,
    /// The time until which a failing store is not asked.
    failing_until: Mutex<Option<Duration>>,
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
            failing_until: Mutex::new(None),
            random: AtomicU64::new(courier.seed()),
            courier,
        }
    }

    /// Returns `true` if a message may be sent to the store at `now`. While the store fails, one message per second may
    /// be sent.
    pub(crate) fn may_send(&self, now: Duration) -> bool {
        let mut failing_until = self.failing_until.lock().unwrap_or_else(PoisonError::into_inner);
        let may = failing_until.is_none_or(|until| until <= now);
        if may && failing_until.is_some() {
            *failing_until = Some(now + FAILURE_MEMORY);
        }
        may
    }

    /// Records that the store has answered in time.
    pub(crate) fn store_works(&self) {
        *self.failing_until.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records that the store has not answered in time.
    pub(crate) fn store_is_late(&self) {
        let until = self.courier.now() + FAILURE_MEMORY;
        *self.failing_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Records that the store has failed.
    pub(crate) fn store_failed(&self, destination: &Destination, error: &BoxError) {
        self.store_is_late();
        self.note(&destination.name, &FleetEvent::Failed { error: &**error });
    }

    pub(crate) fn note(&self, destination: &str, event: &FleetEvent<'_>) {
        self.tally.count(event);
        if let Some(observer) = &self.observer {
            observer(destination, event);
        }
        if let Some(warning) = self.tally.check_late(event) {
            self.note(destination, &warning);
        }
    }

    /// Returns the state of a destination, or `None` if the table has no room for it.
    pub(crate) fn destination(&self, name: &str) -> Option<Arc<Destination>> {
        let new = || Destination::new(name, key_of(&self.prefix, name));
        self.destinations.get(name, || self.courier.now(), Destination::is_idle, new)
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
