//! The time for which calls to a destination have failed, and the events among their failures.

use std::time::Duration;

use reattempt_core::event::is_member;

/// The successes in a row that end the failing.
const ENDED_BY: u32 = 20;

/// The latest failures of a destination, as needed to tell a short interruption from an outage.
///
/// The *failing* begins when the server was first seen to fail, and goes on until 20 calls in a row have succeeded. It
/// survives a change of state: a breaker that closes after one successful probe may be closed too early.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failing {
    /// Failures since the last success, including those that have left the window.
    pub(crate) run: u32,
    /// The number of times that the breaker has opened since the start.
    pub(crate) openings: u32,
    /// The start, or `None` before the first failure.
    began: Option<Duration>,
    /// Successes since the last failure.
    successes: u32,
    /// The time at which the first failure of the latest event was seen.
    lost: Option<Duration>,
}

impl Failing {
    /// Records successes.
    pub(crate) fn succeed(&mut self, successes: u32) {
        self.run = 0;
        self.successes = self.successes.saturating_add(successes);
    }

    /// Records a failure whose cause began at this time. If it is `in_run`, it extends the run.
    pub(crate) fn fail(&mut self, cause_began: Duration, in_run: bool) {
        if self.successes >= ENDED_BY || self.began.is_none() {
            (self.began, self.openings) = (Some(cause_began), 0);
        }
        self.successes = 0;
        self.run = self.run.saturating_add(u32::from(in_run));
    }

    /// Records a lost attempt that was sent at this time. Returns `true` if it belongs to an event whose first failure
    /// has already been seen. Otherwise, it begins an event.
    pub(crate) fn lose(&mut self, sent: Duration, now: Duration) -> bool {
        let in_event = self.lost.is_some_and(|seen| is_member(sent, seen));
        self.lost = if in_event { self.lost } else { Some(now) };
        in_event
    }

    /// Ends the event, because the results of all earlier calls are discarded.
    pub(crate) fn end_event(&mut self) {
        self.lost = None;
    }

    /// Returns its length at `now`.
    pub(crate) fn time(&self, now: Duration) -> Duration {
        self.began.map_or(Duration::ZERO, |began| now.saturating_sub(began))
    }
}
