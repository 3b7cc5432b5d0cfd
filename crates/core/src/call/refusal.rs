//! The decision after one of this client's guards refused an attempt.

use core::time::Duration;

use super::{Call, Decision};
use crate::decide::{FailedAttempt, Terms, longest_wait, not_repeatable, spread};
use crate::guard::{GuardKind, Refused};
use crate::{Delays, Random, StopReason, Verdict};

/// The longest wait after which a refused attempt is sent again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The longest wait for an open breaker. Its callers' delays differ by at most 10 %. If they all returned after 5 s,
/// they would overload the protected server, and a busy client's breaker would keep reopening.
const LONGEST_WAIT_OPEN: Duration = Duration::from_secs(1);

impl<D: Delays> Call<D> {
    /// Decides what to do after a refusal. A refusal is not a server failure, so the schedule and the budget do not
    /// apply. A retry's permit is kept for the next try, or returned.
    ///
    /// The verdict shows whether the refusal proves that the request was not processed. An earlier hop, or another copy
    /// of the request, may have been processed. Without that proof, only a repeatable request is sent again.
    ///
    /// The request is sent again, with the same attempt number, if the refusal's wait is at most [`LONGEST_WAIT`] (or
    /// [`LONGEST_WAIT_OPEN`]). The wait must also fit within the elapsed-time limit and the deadline. If another
    /// endpoint is available, the request is sent there immediately. A call is sent again at most `max_attempts` times
    /// in total.
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
        match failed.classification.verdict {
            Verdict::Transient(failure) if !terms.repeatable => {
                return Decision::Return(not_repeatable(&failure));
            }
            Verdict::Transient(_) | Verdict::NotProcessed(_) => {}
            Verdict::Success | Verdict::Permanent => {
                return Decision::Return(StopReason::Permanent);
            }
        }
        let attempts = terms.limits.max_attempts;
        let again = attempts > 1 && self.refusals <= attempts && failed.replayable;
        let most = longest_wait(&terms.limits, failed.elapsed, failed.until_deadline);
        let longest = match refused.guard() {
            GuardKind::CIRCUIT_BREAKER => LONGEST_WAIT_OPEN,
            _ => LONGEST_WAIT,
        };
        // The call moves to another endpoint immediately only if the refusal proves that nothing was processed.
        // Otherwise an earlier hop of a redirect may have been processed at this attempt's endpoint.
        let proven = matches!(failed.classification.verdict, Verdict::NotProcessed(_));
        let wait = if failed.elsewhere && proven { Some(Duration::ZERO) } else { refused.wait() };
        match wait.filter(|wait| again && *wait <= longest.min(most)) {
            Some(wait) => {
                (self.permit, self.resends) = (permit, true);
                self.granted(spread(wait, most, random), failed)
            }
            None => Decision::Return(StopReason::Refused),
        }
    }
}
