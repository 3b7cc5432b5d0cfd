//! The counters of a shared interval.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// Event counts since a [`Responsive`](crate::Responsive) was created.
///
/// Each count is exact. The counts are read one after the other, so one may include a call that another does not
/// include yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResponsiveMetrics {
    /// The number of calls sent. Under a retry layer, this is the number of attempts.
    pub invocations: u64,
    /// The number of times the interval grew, including when `max` limited it.
    pub times_up: u64,
    /// The number of times the interval shrank, including to zero.
    pub times_down: u64,
    /// The number of delays. With turns, a delay is counted when it ends, and cancelled delays are not counted. In a
    /// schedule, a delay is counted when it is returned, even if a limit or the budget then prevents the retry.
    pub times_slept: u64,
    /// The sum of the delays counted in `times_slept`. It saturates at 584 years.
    pub total_slept: Duration,
}

/// Counters that do not affect decisions. Every call writes to them, so they have their own cache lines (which
/// processors fetch in pairs of 64 bytes).
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Counters {
    invocations: AtomicU64,
    times_slept: AtomicU64,
    nanos_slept: AtomicU64,
}

impl Counters {
    #[inline]
    pub(crate) fn invoked(&self) {
        self.invocations.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn not_invoked(&self) {
        let less = |invocations: u64| Some(invocations.saturating_sub(1));
        // Always `Ok`, because `less` always returns a value.
        let _ = self.invocations.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn slept(&self, wait: Duration) {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.times_slept.fetch_add(1, Ordering::Relaxed);
        let add = |total: u64| Some(total.saturating_add(nanos));
        // Always `Ok`, because `add` always returns a value.
        let _ = self.nanos_slept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns all counts. The numbers of moves are passed in.
    pub(crate) fn snapshot(&self, times_up: u64, times_down: u64) -> ResponsiveMetrics {
        ResponsiveMetrics {
            invocations: self.invocations.load(Ordering::Relaxed),
            times_up,
            times_down,
            times_slept: self.times_slept.load(Ordering::Relaxed),
            total_slept: Duration::from_nanos(self.nanos_slept.load(Ordering::Relaxed)),
        }
    }
}
