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
    /// The store was asked to grant a retry.
    Asked,
    /// The store granted a retry in time.
    Granted {
        /// The time between the request and the answer.
        round_trip: Duration,
    },
    /// The store refused a retry in time.
    Refused {
        /// The time between the request and the answer.
        round_trip: Duration,
    },
    /// A retry was refused without asking the store, because the store had recently refused another retry.
    Remembered,
    /// The process decided without the store, because the store is failing or late, there is no runtime, or the table
    /// is full.
    Alone,
    /// A retry was refused because the store is failing or late, and no retry of this process has succeeded recently.
    Withheld,
    /// The store did not answer in time.
    Late,
    /// More than a tenth of the last 20 answers were late, so the store is too far away or too slow to be useful. This
    /// event comes after the last of the 20 answers. Log it as a warning.
    LateOften {
        /// The number of late answers among the last 20.
        late: u32,
    },
    /// The store failed.
    Failed {
        /// The store's error.
        error: &'a (dyn Error + Send + Sync + 'static),
    },
}

/// A budget's event counts since it was created, for all destinations together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetStats {
    /// The number of retries that the store was asked to grant.
    pub asked: u64,
    /// The number of retries that the store granted in time.
    pub granted: u64,
    /// The number of retries that the store refused in time.
    pub refused: u64,
    /// The number of retries refused because the store had recently refused another retry.
    pub remembered: u64,
    /// The number of retries that this process decided on without the store.
    pub alone: u64,
    /// The number of retries refused because the store was failing or late, and no retry of this process had succeeded
    /// recently.
    pub withheld: u64,
    /// The number of requests that the store did not answer in time.
    pub late: u64,
    /// The number of messages that ended with a store error.
    pub failed: u64,
    /// The moving average of the time between a request and its answer. Each timely answer moves the average toward its
    /// own time by 1/8 of the difference.
    pub round_trip: Duration,
}

impl FleetStats {
    /// Returns `true` if more than a tenth of all requests were not answered in time. The store is then too far away or
    /// too slow, and this process decides alone too often for the budget to be useful. [`FleetEvent::LateOften`]
    /// considers only the last 20 answers.
    pub fn is_too_late(&self) -> bool {
        self.late.saturating_mul(10) > self.asked
    }
}

/// The number of answers after which the late ones are counted.
const RECENT: u64 = 20;
const MOST_LATE: u64 = RECENT / 10;

/// The counts behind [`FleetStats`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    asked: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    remembered: AtomicU64,
    alone: AtomicU64,
    withheld: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
    /// In nanoseconds; 0 before the first answer.
    round_trip: AtomicU64,
    /// The answers since the last check, and in the upper 32 bits the late ones among them.
    recent: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self, event: &FleetEvent<'_>) {
        let (counter, round_trip) = match event {
            FleetEvent::Asked => (&self.asked, None),
            FleetEvent::Granted { round_trip } => (&self.granted, Some(*round_trip)),
            FleetEvent::Refused { round_trip } => (&self.refused, Some(*round_trip)),
            FleetEvent::Remembered => (&self.remembered, None),
            FleetEvent::Alone => (&self.alone, None),
            FleetEvent::Withheld => (&self.withheld, None),
            FleetEvent::Late => (&self.late, None),
            FleetEvent::LateOften { .. } => return,
            FleetEvent::Failed { .. } => (&self.failed, None),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(round_trip) = round_trip {
            let new = u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX).max(1);
            let old = self.round_trip.load(Ordering::Relaxed);
            let next = if old == 0 { new } else { old - old / 8 + new / 8 };
            // Two concurrent answers may be counted as one, which is acceptable for an average.
            self.round_trip.store(next, Ordering::Relaxed);
        }
    }

    /// Records a timely or late answer. Returns a warning if it is due.
    pub(crate) fn check_late(&self, event: &FleetEvent<'_>) -> Option<FleetEvent<'static>> {
        let answer = match event {
            FleetEvent::Granted { .. } | FleetEvent::Refused { .. } => 1,
            FleetEvent::Late => (1 << 32) + 1,
            _ => return None,
        };
        let recent = self.recent.fetch_add(answer, Ordering::Relaxed) + answer;
        let (late, answers) = (recent >> 32, recent & u64::from(u32::MAX));
        if answers != RECENT {
            return None;
        }
        self.recent.fetch_sub(recent, Ordering::Relaxed);
        let late = u32::try_from(late).unwrap_or(u32::MAX);
        (u64::from(late) > MOST_LATE).then_some(FleetEvent::LateOften { late })
    }

    pub(crate) fn stats(&self) -> FleetStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FleetStats {
            asked: read(&self.asked),
            granted: read(&self.granted),
            refused: read(&self.refused),
            remembered: read(&self.remembered),
            alone: read(&self.alone),
            withheld: read(&self.withheld),
            late: read(&self.late),
            failed: read(&self.failed),
            round_trip: Duration::from_nanos(read(&self.round_trip)),
        }
    }
}
