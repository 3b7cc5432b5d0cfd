//! An attempt that a guard on this side refused: it was not sent.

use core::time::Duration;

use super::{Call, Decision, FailedAttempt, Terms};
use crate::decide::spread;
use crate::guard::Refused;
use crate::{Delays, Random, StopReason};

/// The longest wait of a guard that a call sits out. Callers that wait longer for an open breaker come back together,
/// and overload the server that it spares.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl<D: Delays> Call<D> {
    /// Decides what follows a refusal. It is no failure of the server, so schedule and budget do not apply, and the
    /// permit of a retry is kept for its next try or returned.
    ///
    /// The request is sent again, under the same number, if the guard knows the wait, and the wait is at most
    /// [`LONGEST_WAIT`] and fits the elapsed time and the deadline: at most `max_attempts` times in a call.
    pub(super) fn refused(
        &mut self,
        terms: &Terms,
        failed: &FailedAttempt<'_>,
        refused: Refused,
        random: &mut dyn Random,
    ) -> Decision {
        let permit = self.paid.then(|| self.account.take_back());
        self.paid = false;
        self.refusals = self.refusals.saturating_add(1);
        if let Some(reason) = terms.forbidden {
            return Decision::Return(reason);
        }
        let most = terms.limits.max_attempts;
        let again = most > 1 && self.refusals <= most && failed.replayable;
        let wait = refused.wait().filter(|wait| again && *wait <= LONGEST_WAIT);
        match wait.and_then(|wait| fitting(wait, terms, failed, random)) {
            Some(after) => {
                (self.permit, self.resends) = (permit, true);
                Decision::Retry { after }
            }
            None => Decision::Return(StopReason::Refused),
        }
    }
}

/// Returns the wait, lengthened by up to a tenth, if it fits the limits of the call.
fn fitting(
    wait: Duration,
    terms: &Terms,
    failed: &FailedAttempt<'_>,
    random: &mut dyn Random,
) -> Option<Duration> {
    const TICK: Duration = Duration::from_nanos(1);
    let of_elapsed = terms.limits.max_elapsed.map(|most| most.saturating_sub(failed.elapsed));
    // A request must be sent before the deadline, not at it.
    let of_deadline = failed.until_deadline.map(|left| left.saturating_sub(TICK));
    let most = of_elapsed.into_iter().chain(of_deadline).min().unwrap_or(Duration::MAX);
    (wait <= most).then(|| spread(wait, most, random))
}
