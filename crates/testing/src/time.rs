//! Short names for durations.

use std::time::Duration;

/// Returns a duration in milliseconds.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns a duration in seconds.
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
