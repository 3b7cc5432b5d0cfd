//! The decision after a response that is not the result yet.

use core::time::Duration;

use super::{Call, Decision};
use crate::decide::{FailedAttempt, Terms, longest_wait, spread};
use crate::{Delays, Random, ServerHint, StopReason};

/// The shortest wait before the client asks again. Without it, `Retry-After: 0` would be a loop without a pause.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

impl<D: Delays> Call<D> {
    /// Decides whether the client asks again after a [pending](crate::Verdict::pending) response. It is not a failure,
    /// so the schedule and the budget do not apply, and the next attempt keeps the number. Only time ends it.
    ///
    /// If the client does not ask again, the response is the call's result.
    pub(super) fn pending(&mut self, terms: &Terms, failed: &FailedAttempt<'_>, random: &mut dyn Random) -> Decision {
        // If the attempt was a paid retry, it has reached a server that works.
        self.paid = false;
        let (ServerHint::After(asked) | ServerHint::AtLeast(asked) | ServerHint::Exactly(asked)) =
            failed.classification.hint
        else {
            return Decision::Return(StopReason::Succeeded);
        };
        if !terms.repeatable || terms.forbidden.is_some() || !failed.replayable || terms.limits.max_attempts < 2 {
            return Decision::Return(StopReason::Succeeded);
        }
        let wait = asked.max(SHORTEST_WAIT);
        let most = longest_wait(&terms.limits, failed.elapsed, failed.until_deadline);
        if asked > terms.limits.max_server_delay {
            Decision::Return(StopReason::ServerDelayTooLong)
        } else if failed.until_deadline.is_some_and(|left| wait >= left) {
            Decision::Return(StopReason::DeadlineExceeded)
        } else if wait > most {
            Decision::Return(StopReason::ElapsedExhausted)
        } else {
            self.resends = true;
            self.granted(spread(wait, most, random), failed)
        }
    }
}
