//! An endpoint's last event, so that attempts which fail of one cause count once.

use std::time::Duration;

use reattempt_core::event::is_member;

use crate::sync::{AtomicU64, Ordering};

/// The time at which the first failure of the last event was seen, in nanoseconds plus 1, or 0 before any event.
///
/// Only failures of a shared cause read it, so successes never do.
#[derive(Debug, Default)]
pub(crate) struct EventWord(AtomicU64);

impl EventWord {
    /// Records a failure at `now` of an attempt that was sent at `sent`. Returns `true` if it opens a new event, and
    /// `false` if the attempt was sent before the last event was seen. The failure is then a member of that event.
    pub(crate) fn opens(&self, sent: Duration, now: Duration) -> bool {
        let (sent, opened) = (nanoseconds(sent), nanoseconds(now).saturating_add(1));
        let mut word = self.0.load(Ordering::Relaxed);
        while word.checked_sub(1).is_none_or(|seen| !is_member(sent, seen)) {
            // If another thread opens an event first, this failure is usually a member of it.
            match self.0.compare_exchange(word, opened, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
        false
    }
}

/// Converts a time to nanoseconds, up to 584 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
