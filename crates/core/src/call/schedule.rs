//! The schedule's interface for a single call.

use crate::{Delays, Failure, Random, Schedule, SentAt};

/// The schedule of one call.
///
/// Every [`Schedule`] implements it. A driver that selects one of several schedules implements it for a type that
/// borrows the selected one.
pub trait CallSchedule {
    /// The state of one call.
    type Delays: Delays;

    /// Creates fresh state when the call first fails, and after an [exact](crate::ServerHint::Exactly) delay.
    fn fresh_delays(&self) -> Self::Delays;

    /// Records a failed attempt, before the delay is computed.
    fn on_attempt_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random);
}

impl<S: Schedule + ?Sized> CallSchedule for S {
    type Delays = S::Delays;

    fn fresh_delays(&self) -> Self::Delays {
        self.delays()
    }

    fn on_attempt_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        Schedule::on_failure(self, sent_at, failure, random);
    }
}
