//! The events of a fleet budget, and their counts.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A function that is called for each event, with its destination.
pub(crate) type Observer = Arc<dyn Fn(&str, &FleetEvent<'_>) + Send + Sync>;

/// An event of a fleet budget.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum FleetEvent<'a> {
    /// The store was asked for a retry.
    Asked,
    /// The store granted a retry in time.
    Granted {
        /// The time from the question to the answer.
        round_trip: Duration,
    },
    /// The store refused a retry in time.
    Refused {
        /// The time from the question to the answer.
        round_trip: Duration,
    },
    /// A retry was refused because of a refusal before it. The store was not asked.
    Remembered,
    /// The process decided alone: the store is failing or late, or there is no runtime or no place in the table.
    Alone,
    /// The store did not answer within the patience.
    Late,
    /// The store failed.
    Failed {
        /// The error of the store.
        error: &'a (dyn Error + Send + Sync + 'static),
    },
}

/// The counts of a budget's events since it was built, over all destinations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetStats {
    /// The retries for which the store was asked.
    pub asked: u64,
    /// The retries that the store granted in time.
    pub granted: u64,
    /// The retries that the store refused in time.
    pub refused: u64,
    /// The retries refused because of a refusal before them.
    pub remembered: u64,
    /// The retries that this process decided about alone.
    pub alone: u64,
    /// The questions without an answer within the patience.
    pub late: u64,
    /// The messages that ended with an error of the store.
    pub failed: u64,
    /// The average time from a question to its answer. Each answer in time moves it by an eighth of the difference.
    pub round_trip: Duration,
}

impl FleetStats {
    /// Returns `true` if more than a tenth of the answers were late. The store is too far away, or too slow, so this
    /// process decides alone too often for the budget to be of use.
    pub fn is_too_late(&self) -> bool {
        self.late.saturating_mul(10) > self.asked
    }
}

/// The counts behind [`FleetStats`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    asked: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    remembered: AtomicU64,
    alone: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
    /// In nanoseconds; 0 before the first answer.
    round_trip: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self, event: &FleetEvent<'_>) {
        let (counter, round_trip) = match event {
            FleetEvent::Asked => (&self.asked, None),
            FleetEvent::Granted { round_trip } => (&self.granted, Some(*round_trip)),
            FleetEvent::Refused { round_trip } => (&self.refused, Some(*round_trip)),
            FleetEvent::Remembered => (&self.remembered, None),
            FleetEvent::Alone => (&self.alone, None),
            FleetEvent::Late => (&self.late, None),
            FleetEvent::Failed { .. } => (&self.failed, None),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(round_trip) = round_trip {
            let new = u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX).max(1);
            let old = self.round_trip.load(Ordering::Relaxed);
            let next = if old == 0 { new } else { old - old / 8 + new / 8 };
            // Two answers at once may count as one: it is an average.
            self.round_trip.store(next, Ordering::Relaxed);
        }
    }

    pub(crate) fn stats(&self) -> FleetStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FleetStats {
            asked: read(&self.asked),
            granted: read(&self.granted),
            refused: read(&self.refused),
            remembered: read(&self.remembered),
            alone: read(&self.alone),
            late: read(&self.late),
            failed: read(&self.failed),
            round_trip: Duration::from_nanos(read(&self.round_trip)),
        }
    }
}
