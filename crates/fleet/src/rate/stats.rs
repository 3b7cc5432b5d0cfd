//! The events of a fleet rate limit, and their counts.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A function that is called for each event, with its destination.
pub(super) type RateObserver = Arc<dyn Fn(&str, &FleetRateEvent<'_>) + Send + Sync>;

/// A change of the party that limits a destination's calls: the store, or this process alone.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum FleetRateEvent<'a> {
    /// The store failed, so the process's own limit admits the calls.
    Failed {
        /// The store's error, or `None` if no answer came in a second or the runtime has ended.
        error: Option<&'a (dyn Error + Send + Sync + 'static)>,
    },
    /// The store's answer takes longer than 50 ms, so the process's own limit admits calls until it comes.
    Late,
    /// The store answers, but has granted no process a token for 10 s. The process's own limit admits the calls.
    GrantsNobody,
    /// The store's tokens admit the calls again.
    Shared,
}

/// A limit's event counts since it was created, for all destinations together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetRateStats {
    /// The number of requests to the store.
    pub asked: u64,
    /// The number of tokens that the store granted.
    pub granted: u64,
    /// The number of calls that this process admitted with its own limit, and of those for which the table of
    /// destinations had no room.
    pub alone: u64,
    /// The number of requests that the store did not answer in 50 ms.
    pub late: u64,
    /// The number of requests without an answer in a second, or with an error.
    pub failed: u64,
}

/// The counts behind [`FleetRateStats`].
#[derive(Debug, Default)]
pub(super) struct RateTally {
    pub(super) asked: AtomicU64,
    pub(super) granted: AtomicU64,
    pub(super) alone: AtomicU64,
    pub(super) late: AtomicU64,
    pub(super) failed: AtomicU64,
}

impl RateTally {
    pub(super) fn stats(&self) -> FleetRateStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FleetRateStats {
            asked: read(&self.asked),
            granted: read(&self.granted),
            alone: read(&self.alone),
            late: read(&self.late),
            failed: read(&self.failed),
        }
    }
}
