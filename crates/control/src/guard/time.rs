//! Times as nanoseconds.

use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Times below this many seconds (544 years) have fewer than 2⁶⁴ nanoseconds.
const NARROW_SECONDS: u64 = 1 << 34;

/// Converts a time to nanoseconds, saturating at 544 years.
#[inline]
pub(crate) fn nanos(time: Duration) -> u64 {
    if time.as_secs() < NARROW_SECONDS { time.as_secs() * SECOND + u64::from(time.subsec_nanos()) } else { u64::MAX }
}
