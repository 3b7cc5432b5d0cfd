//! The decision after a guard of this client refused to send an attempt.

use core::time::Duration;

use super::{Call, Decision};
use crate::decide::{FailedAttempt, Terms, longest_wait, not_repeatable, spread};
use crate::guard::{GuardKind, Refused};
use crate::{Delays, Random, StopReason, Verdict};

/// The longest wait in a guard's refusal after which an attempt is sent again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The longest wait for an open breaker. The delays of its callers differ by at most a tenth. After 5 s, all these
/// callers would overload the server that the breaker protects, and a busy client's breaker would keep opening.
const LONGEST_WAIT_OPEN: Duration = Duration::from_secs(1);

impl<D: Delays> Call<D> {
    /// Decides what follows a refusal. A refusal is not a server failure, so schedule and budget do not apply. A
    /// retry's permit is kept for its next try or returned.
    ///
    /// The verdict shows whether the refusal proves that the request was not processed. An earlier hop, or another copy
    /// of the request, may have been processed. Without that proof, only a repeatable request is sent again.
    ///
    /// The request is sent again under the same number if the refusal has a wait of at most [`LONGEST_WAIT`], or
    /// [`LONGEST_WAIT_OPEN`]. The wait must fit the elapsed time and the deadline. If another endpoint is left, the
    /// request is sent there at once. Both happen at most `max_attempts` times in a call.
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
        // Only a refusal that proves that nothing was processed lets the call go to another endpoint at once. Otherwise
        // an earlier hop of a redirect may have been processed at this attempt's endpoint.
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
