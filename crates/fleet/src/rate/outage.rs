//! The failures of a store in a row, which all destinations of a limit share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time after the first failure until the store is asked again. It doubles with each failure.
// L-4
const FIRST: Duration = Duration::from_millis(100);
/// The maximum of that time, and the time for which a question may be on its way.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// `true` from a failure of the store until its next answer.
#[derive(Debug, Default)]
pub(super) struct Outage {
    is_on: AtomicBool,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last_at: Duration,
    ask_at: Duration,
}

impl Outage {
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Returns `true` if the store may be asked. During an outage, one destination asks at a time.
    pub(super) fn may_ask(&self, now: Duration) -> bool {
        if !self.is_on() {
            return true;
        }
        let mut failures = self.failures();
        let may = failures.ask_at <= now;
        if may {
            failures.ask_at = now + LONGEST;
        }
        may
    }

    /// Returns the time of the next question during an outage, or else zero.
    pub(super) fn ask_at(&self) -> Duration {
        if self.is_on() { self.failures().ask_at } else { Duration::ZERO }
    }

    /// Records that a question failed. Questions that were sent before the last failure count with it.
    pub(super) fn on_failure(&self, asked_at: Duration, now: Duration) {
        let mut failures = self.failures();
        if self.is_on() && asked_at < failures.last_at {
            return;
        }
        let wait = FIRST.saturating_mul(1 << failures.count.min(10)).min(LONGEST);
        *failures = Failures { count: failures.count.saturating_add(1), last_at: now, ask_at: now + wait };
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Records that the store has answered.
    pub(super) fn on_answer(&self) {
        if self.is_on() {
            *self.failures() = Failures::default();
            self.is_on.store(false, Ordering::Relaxed);
        }
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
