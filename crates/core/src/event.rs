//! The rule by which failures of one cause are one event.
//!
//! Budgets, breakers, endpoints and reports each remember when they saw the first failure of the last
//! [event](crate::Evidence#events). They all compare by this rule, each in its own unit.

use core::time::Duration;

/// The coarsest unit in which the time of an event is remembered.
const COARSEST: Duration = Duration::from_millis(1);

/// Returns `true` if a failure of an attempt that was sent at `sent` is a member of the event whose first failure was
/// seen at `seen`.
///
/// Both times are in the same unit and are rounded down. The unit is at most a millisecond.
///
/// ```
/// use core::time::Duration;
/// use reattempt_core::event::{is_member, sent_after_failure};
///
/// let seen = Duration::from_micros(20_300);
/// assert!(is_member(Duration::from_millis(5), seen), "it was in flight");
///
/// // A retry that is sent at once may fail of the next cause, even where times are whole milliseconds.
/// let retry = sent_after_failure(seen);
/// assert!(!is_member(retry.as_millis(), seen.as_millis()));
/// ```
#[inline]
pub fn is_member<T: PartialOrd>(sent: T, seen: T) -> bool {
    sent <= seen
}

/// Returns the time of sending of an attempt that follows a failure of its own call and is sent at `now`.
///
/// The result is later by a millisecond, so it is in a later unit than the failure, and the attempt is no member of an
/// event that this failure opened. A first attempt follows no failure, so its time is exact.
#[must_use]
pub const fn sent_after_failure(now: Duration) -> Duration {
    now.saturating_add(COARSEST)
}
