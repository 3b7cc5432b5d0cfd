//! The state of one call, from its first failed attempt to its end.
//!
//! Every driver uses it: the retry layer, the implementation of `tower::retry::Policy`, plain operations and
//! simulations. The driver sends attempts and waits; everything else happens here.

mod account;
mod pending;
mod refusal;
mod schedule;

use core::fmt;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::decide::{FailedAttempt, SoFar, Terms, decide, goes_elsewhere};
use crate::{
    Budget, Delays, Evidence, FailureKind, PaidRetry, Permit, Random, Resent, ServerHint, StopReason, Undone, Verdict,
    Work,
};

pub use account::{Account, CallEnd};
pub use schedule::CallSchedule;

/// The maximum number of times that a call moves to another endpoint without a permit, because an endpoint accepted no
/// connection.
pub const MOST_MOVES: u32 = 3;

/// The decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Return the outcome to the caller.
    Return(StopReason),
    /// Send the request again after a delay, during which the call holds the budget's permit.
    ///
    /// After a guard's refusal, the new attempt [replaces](Call::resends) the one that was not sent. After a
    /// [pending](crate::Verdict::pending) response, it replaces the one that was too early.
    Retry {
        /// The delay before the attempt is sent.
        after: Duration,
    },
    /// Send the request again immediately, in place of an attempt that was not processed. It needs no permit and does
    /// not count as a retry.
    Resend,
}

/// The state of one call, from its first failed attempt to its end.
///
/// It asks the schedule for delays and the budget for permits. Hedges have their own permits, in
/// [`HedgePermits`](crate::HedgePermits).
///
/// # Cancel safety
///
/// A call dropped between two attempts returns the permit of the unsent retry. A call dropped during a retry reports
/// the end of that retry.
///
/// ```
/// use core::time::Duration;
/// use reattempt_core::{
///     Call, Decision, FailedAttempt, Failure, FailureKind, Limits, ServerHint, StopReason, Terms,
///     Unlimited, Verdict, Work,
/// };
/// # use reattempt_core::{Delays, NextRetry, Random, Schedule};
/// # #[derive(Clone)] struct Second;
/// # impl Schedule for Second { type Delays = Self; fn delays(&self) -> Self { Second } }
/// # impl Delays for Second {
/// #     fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
/// #         Some(Duration::from_secs(1))
/// #     }
/// # }
/// # struct Zero;
/// # impl Random for Zero { fn next_u64(&mut self) -> u64 { 0 } }
/// # let (schedule, mut random) = (Second, Zero);
///
/// let mut limits = Limits::default();
/// limits.max_attempts = 2;
/// let (terms, budget) = (Terms::new(limits), Unlimited);
/// let verdict = Verdict::Transient(Failure::new(FailureKind::Timeout));
/// let failed = FailedAttempt::new(verdict, "api.example", Duration::ZERO);
///
/// let mut call = Call::new(&schedule);
/// let decision = call.failed(&terms, &failed, &schedule, &budget, &mut random);
/// assert_eq!(decision, Decision::Retry { after: Duration::from_secs(1) });
/// assert_eq!(call.evidence().map(|evidence| evidence.work), Some(Work::Maybe));
/// call.on_send();
/// assert_eq!(call.attempt(), 2);
/// let decision = call.failed(&terms, &failed, &schedule, &budget, &mut random);
/// assert_eq!(decision, Decision::Return(StopReason::AttemptsExhausted));
/// ```
pub struct Call<D> {
    delays: D,
    so_far: SoFar,
    last_delay: Option<Duration>,
    /// The evidence in the last failed attempt.
    evidence: Option<Evidence>,
    /// The permit of a granted retry that has not been sent yet.
    permit: Option<Permit>,
    account: Account,
    /// `true` if the current or next attempt is a resend.
    resends: bool,
    resent: Resent,
    /// The number of moves to another endpoint.
    moves: u32,
    /// `true` if the current attempt is a paid retry.
    paid: bool,
    /// The number of attempts refused by this client's guards.
    refusals: u32,
}

impl<D: Delays> Call<D> {
    /// Creates the state of a call whose first attempt is in flight, or has failed.
    pub fn new<S: CallSchedule<Delays = D>>(schedule: &S) -> Self {
        Self {
            delays: schedule.fresh_delays(),
            so_far: SoFar { attempts: 1, at_once: 0, previous: None },
            last_delay: None,
            evidence: None,
            permit: None,
            account: Account::default(),
            resends: false,
            resent: Resent::default(),
            moves: 0,
            paid: false,
            refusals: 0,
        }
    }

    /// Records that the current attempt has failed, and decides what to do next.
    ///
    /// The checks, in order: a guard's refusal → a failed request body → an immediate resend → the verdict → forbidden
    /// retries → the number of attempts → repeatability → a kept body → the server's request to stop → the delay → the
    /// elapsed time → the deadline → the budget → a timer.
    pub fn failed<S, B>(
        &mut self,
        terms: &Terms,
        failed: &FailedAttempt<'_>,
        schedule: &S,
        budget: &B,
        random: &mut dyn Random,
    ) -> Decision
    where
        S: CallSchedule<Delays = D>,
        B: Budget + ?Sized,
    {
        self.resends = false;
        let evidence = *self.evidence.insert(failed.evidence());
        if let Some(refused) = failed.refused {
            return self.refused(terms, failed, refused, random);
        }
        if failed.classification.verdict.is_pending() {
            return self.pending(terms, failed, random);
        }
        if failed.source_failed {
            // The caller's own body has failed, regardless of the error that the client reports.
            return Decision::Return(StopReason::Permanent);
        }
        if self.is_replaced(terms, (failed, &evidence), budget) {
            self.resends = true;
            return Decision::Resend;
        }
        if self.paid && evidence.is_local() {
            // The retry did not reach the server, so it is paid back.
            drop(self.account.take_back());
        } else {
            // The end of the retry is reported before the next one is paid for.
            self.account.last = PaidRetry::default();
        }
        self.paid = false;
        let verdict = failed.classification.verdict;
        let Some(failure) = verdict.failure() else {
            return Decision::Return(match verdict {
                Verdict::Success => StopReason::Succeeded,
                _ => StopReason::Permanent,
            });
        };
        schedule.on_attempt_failure(failed.sent_at, failure, random);
        if let Some(reason) = terms.forbidden {
            return Decision::Return(reason);
        }
        match decide(terms, &self.so_far, (failed, &evidence), &mut self.delays, random, budget) {
            Ok((after, permit)) => {
                (self.permit, self.last_delay) = (Some(permit), Some(after));
                if goes_elsewhere(failed) {
                    self.so_far.at_once = self.so_far.at_once.saturating_add(1);
                } else {
                    self.so_far.previous = Some(after);
                }
                if let ServerHint::Exactly(_) = failed.classification.hint {
                    // A pushback restarts the backoff (PB-5).
                    self.delays = schedule.fresh_delays();
                }
                self.granted(after, failed)
            }
            Err(reason) => Decision::Return(reason),
        }
    }

    /// Returns the decision for a granted retry, or withdraws it if the driver cannot wait.
    fn granted(&mut self, after: Duration, failed: &FailedAttempt<'_>) -> Decision {
        if after.is_zero() || (failed.can_wait)() {
            return Decision::Retry { after };
        }
        self.revoke();
        Decision::Return(StopReason::NoTimer)
    }

    /// Returns `true` if an attempt that provably was not processed is replaced immediately. No permit is needed, and
    /// the schedule does not advance.
    ///
    /// An attempt that never reached its server's connection, or that waited for another call's connection, is replaced
    /// once per call for each of these kinds. If the server refused the request, the budget must
    /// agree, because without its doubt a server that refuses everything would get twice its load. If an endpoint
    /// accepted no connection, the attempt moves to another one, at most [`MOST_MOVES`] times per call.
    // TR-1, TR-2, TR-4
    fn is_replaced<B: Budget + ?Sized>(
        &mut self,
        terms: &Terms,
        (failed, evidence): (&FailedAttempt<'_>, &Evidence),
        budget: &B,
    ) -> bool {
        let late = failed.until_deadline == Some(Duration::ZERO);
        if evidence.work == Work::Maybe || late || !failed.replayable || terms.forbidden.is_some() {
            return false;
        }
        let allows = || budget.on_unprocessed(failed.destination, evidence, failed.now);
        match failed.undone {
            Some(kind @ (Undone::Refused | Undone::Excluded)) => self.resent.insert(kind) && allows(),
            Some(kind) => self.resent.insert(kind),
            None => {
                let in_time = terms.limits.max_elapsed.is_none_or(|most| failed.elapsed <= most);
                let moves = evidence.failure.kind() == FailureKind::Connect && goes_elsewhere(failed) && in_time;
                let moves = moves && self.moves < MOST_MOVES && allows();
                self.moves += u32::from(moves);
                moves
            }
        }
    }
}

impl<D> Call<D> {
    /// Records that the next attempt is being sent, and spends its permit.
    pub fn on_send(&mut self) {
        if !self.resends {
            self.so_far.attempts = self.so_far.attempts.saturating_add(1);
            self.permit.get_or_insert_default();
        }
        if let Some(permit) = self.permit.take() {
            self.account.paid(permit.spend());
            self.paid = true;
        }
    }

    /// Polls for the budget's confirmation of the granted retry. A budget without a remote store confirms immediately.
    ///
    /// Meanwhile, the driver waits out the delay and keeps the failed outcome.
    ///
    /// # Errors
    ///
    /// Returns [`BudgetExhausted`](StopReason::BudgetExhausted) if the retry is refused. Its permit is then returned to
    /// the budget.
    #[inline]
    pub fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        let Some(permit) = &self.permit else { return Poll::Ready(Ok(())) };
        permit.poll_confirmed(cx).map(|confirmed| {
            if confirmed {
                return Ok(());
            }
            self.revoke();
            Err(StopReason::BudgetExhausted)
        })
    }

    /// Cancels a granted retry that will not be sent, and returns its permit to the budget.
    ///
    /// Call it, for example, if the request is no longer available or the call has timed out.
    pub fn revoke(&mut self) {
        self.permit = None;
        self.resends = false;
    }

    /// Returns the number of the last attempt sent, counting from 1. A resent attempt keeps its number.
    pub fn attempt(&self) -> u32 {
        self.so_far.attempts
    }

    /// Returns the evidence in the last failed attempt, which is made once.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }

    /// Returns the most recently decided delay.
    pub fn last_delay(&self) -> Option<Duration> {
        self.last_delay
    }

    /// Returns `true` if the current or next attempt is a [resend](Decision::Resend).
    pub fn resends(&self) -> bool {
        self.resends
    }

    /// Takes the account, to be reported to the budget when the call ends. An unspent permit is returned immediately.
    pub fn take_account(&mut self) -> Account {
        self.permit = None;
        core::mem::take(&mut self.account)
    }
}

impl<D> fmt::Debug for Call<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("attempt", &self.so_far.attempts)
            .field("last_delay", &self.last_delay)
            .field("resends", &self.resends)
            .finish_non_exhaustive()
    }
}
