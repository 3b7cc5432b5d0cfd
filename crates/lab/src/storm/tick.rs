//! Conversions between durations and ticks, the virtual time of a storm.

use std::time::Duration;

/// Converts a duration to milliseconds, the resolution of tokio's timers.
pub(super) fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Converts ticks to a duration.
pub(super) fn time(ticks: u64) -> Duration {
    Duration::from_millis(ticks)
}
