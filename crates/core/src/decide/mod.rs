//! The retry decision, a single function of plain values.

mod failed_attempt;

use core::fmt;
use core::time::Duration;

use crate::{Budget, Delays, Evidence, Failure, Limits, NextRetry, Permit, Random, ServerHint, Verdict};

pub use failed_attempt::FailedAttempt;

/// The limits and permissions of a call, fixed when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The limits of the call.
    pub limits: Limits,
    /// `true` if the request may safely be processed twice.
    pub repeatable: bool,
    /// The reason why the call must not be retried, if any.
    pub forbidden: Option<StopReason>,
}

impl Terms {
    /// Creates the terms of a repeatable call with these `limits`.
    pub const fn new(limits: Limits) -> Self {
        Self { limits, repeatable: true, forbidden: None }
    }
}

/// The attempts of a call so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoFar {
    /// The number of attempts, including the one that failed.
    pub(crate) attempts: u32,
    /// The number of retries sent immediately to another endpoint, without a delay from the schedule.
    pub(crate) at_once: u32,
    /// The last delay requested from the schedule.
    pub(crate) previous: Option<Duration>,
}

/// Returns `true` if the next attempt is sent immediately to another endpoint, because no server has responded.
pub(crate) fn goes_elsewhere(failed: &FailedAttempt<'_>) -> bool {
    failed.elsewhere && !failed.responded && failed.classification.hint == ServerHint::None
}

/// The reason why a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The call succeeded.
    Succeeded,
    /// The attempt failed, and another attempt would fail the same way.
    Permanent,
    /// All allowed attempts have been made.
    AttemptsExhausted,
    /// The request may have been processed and must not be repeated.
    NotRepeatable,
    /// The failed hop processed nothing, but an earlier hop of a redirect may have processed the request.
    ///
    /// To retry such requests, set `redirects_below(false)` on a client that does not follow redirects.
    EarlierHop,
    /// The request cannot be sent again because its body was not saved: it is too large, or saving is off. A body that
    /// can be opened again need not be saved (`UploadBody` of the crate `reattempt`).
    BodyNotKept,
    /// The request body could not be opened again for a retry, or is not the same anymore. The call's outcome is that
    /// of the last attempt.
    BodyNotOpened,
    /// The schedule has no further delay.
    ScheduleEnded,
    /// The server asked the client not to retry.
    ServerSaidStop,
    /// The server requested a delay longer than the limit.
    ServerDelayTooLong,
    /// The next delay would exceed the limit on elapsed time.
    ElapsedExhausted,
    /// The interval shared by all calls would exceed the limit on elapsed time.
    ///
    /// The interval is never shortened to fit. Retries resume once successes have shortened it.
    IntervalTooLong,
    /// The call's deadline has passed, or the next delay would pass it.
    DeadlineExceeded,
    /// The retry budget has no tokens left.
    BudgetExhausted,
    /// The inner service was not ready for another attempt.
    NotReady,
    /// The caller or the kind of request forbids retries.
    Forbidden,
    /// One of this client's guards refused the attempt. The wait until the attempt may be admitted is unknown, too long
    /// for the call's limits, or longer than 5 s (circuit breaker: 1 s).
    Refused,
    /// Another retry layer, inside or outside this one, already retries this call.
    Nested,
    /// The call cannot wait for the delay, because it runs outside a runtime.
    NoTimer,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Succeeded => "succeeded",
            StopReason::Permanent => "the failure is permanent",
            StopReason::AttemptsExhausted => "all allowed attempts have been made",
            StopReason::NotRepeatable => "the request must not be repeated",
            StopReason::EarlierHop => {
                "an earlier hop may have processed the request (redirects_below(false) rules it out)"
            }
            StopReason::BodyNotKept => "the request body was not kept",
            StopReason::BodyNotOpened => "the request body could not be opened again",
            StopReason::ScheduleEnded => "the schedule has ended",
            StopReason::ServerSaidStop => "the server asked not to be called again",
            StopReason::ServerDelayTooLong => "the server asked for a longer wait than is allowed",
            StopReason::ElapsedExhausted => "the next delay would pass the limit on elapsed time",
            StopReason::IntervalTooLong => "the shared interval would pass the limit on elapsed time",
            StopReason::DeadlineExceeded => "the deadline has passed, or would pass before another attempt",
            StopReason::BudgetExhausted => "the retry budget is exhausted",
            StopReason::NotReady => "the service was not ready for another attempt",
            StopReason::Forbidden => "retries are ruled out for this call",
            StopReason::Refused => "a guard refused the attempt",
            StopReason::Nested => "another retry layer answers for this call",
            StopReason::NoTimer => "there is no runtime to wait on",
        })
    }
}

/// Decides what to do after a failed attempt.
///
/// The checks, in order: attempts left → safe to repeat → body kept → the server's stop → delay → elapsed time →
/// deadline → budget. The budget comes last because it is the only check with a side effect. A call refused earlier
/// takes no token.
///
/// A delay from the server replaces the schedule's, but the schedule still counts the retry. The delay is randomly
/// lengthened by up to 10 %, so that clients do not retry at the same time. The random part is clamped to the time
/// limits, so it never prevents a retry that the server's delay alone allows.
///
/// If the server's delay cannot be read, the schedule's is drawn from the upper half of its jitter, because the server
/// has asked the client to wait.
///
/// If no server has responded, another endpoint may still work. The retry is then sent there immediately, and the
/// schedule does not advance. If a failing server has requested a delay, that delay does not bind a retry at another
/// endpoint.
pub(crate) fn decide<B: Budget + ?Sized>(
    terms: &Terms,
    so_far: &SoFar,
    (failed, evidence): (&FailedAttempt<'_>, &Evidence),
    delays: &mut dyn Delays,
    random: &mut dyn Random,
    budget: &B,
) -> Result<(Duration, Permit), StopReason> {
    let refused = match delay(terms, so_far, failed, delays, random) {
        Ok(after) => {
            let permit = budget.acquire_after_failure(failed.destination, evidence, failed.now);
            return permit.map(|permit| (after, permit)).ok_or(StopReason::BudgetExhausted);
        }
        Err(reason) => reason,
    };
    if failed.classification.verdict.failure().is_some() && terms.limits.max_attempts > 1 {
        budget.on_failure(failed.destination, evidence, failed.now);
    }
    Err(refused)
}

/// Returns the delay before the retry, or the reason why there is no retry. The budget is not consulted.
fn delay(
    terms: &Terms,
    so_far: &SoFar,
    failed: &FailedAttempt<'_>,
    delays: &mut dyn Delays,
    random: &mut dyn Random,
) -> Result<Duration, StopReason> {
    let failure = permitted(terms, so_far, failed)?;
    let limits = &terms.limits;
    let (after, too_long) = match goes_elsewhere(failed) {
        true => (Duration::ZERO, StopReason::ElapsedExhausted),
        false => wait(limits, so_far, failed, failure, delays, random)?,
    };
    if limits.max_elapsed.is_some_and(|most| failed.elapsed.saturating_add(after) > most) {
        Err(too_long)
    } else if failed.until_deadline.is_some_and(|left| after >= left) {
        Err(StopReason::DeadlineExceeded)
    } else {
        Ok(after)
    }
}

/// Returns the delay from the schedule or the server, and the stop reason that applies if it is too long.
fn wait(
    limits: &Limits,
    so_far: &SoFar,
    failed: &FailedAttempt<'_>,
    failure: Failure,
    delays: &mut dyn Delays,
    random: &mut dyn Random,
) -> Result<(Duration, StopReason), StopReason> {
    let number = so_far.attempts.saturating_sub(1).saturating_sub(so_far.at_once);
    let retry = NextRetry { number, previous: so_far.previous, failure, sent_at: failed.sent_at };
    let hint = match failed.elsewhere && failed.responded {
        true => failed.classification.hint_elsewhere(),
        false => failed.classification.hint,
    };
    let scheduled = match hint {
        ServerHint::Unreadable => delays.next_delay(&retry, &mut UpperHalf(random)),
        _ => delays.next_delay(&retry, random),
    };
    let scheduled = scheduled.ok_or(StopReason::ScheduleEnded)?;
    let most = || longest_wait(limits, failed.elapsed, failed.until_deadline);
    let scheduled_too_long = match delays.is_shared() {
        true => StopReason::IntervalTooLong,
        false => StopReason::ElapsedExhausted,
    };
    Ok(match hint {
        ServerHint::After(asked) | ServerHint::AtLeast(asked) if asked > limits.max_server_delay => {
            return Err(StopReason::ServerDelayTooLong);
        }
        // A delay of zero, or a date in the past, sets no minimum.
        ServerHint::After(Duration::ZERO) | ServerHint::None | ServerHint::Unreadable | ServerHint::Stop => {
            (scheduled, scheduled_too_long)
        }
        ServerHint::After(asked) => (spread(asked, most(), random), StopReason::ElapsedExhausted),
        ServerHint::AtLeast(asked) => match spread(asked, most(), random) {
            longer if longer > scheduled => (longer, StopReason::ElapsedExhausted),
            _ => (scheduled, scheduled_too_long),
        },
        ServerHint::Exactly(asked) => (asked, StopReason::ElapsedExhausted),
    })
}

/// Draws from the upper half of every range.
struct UpperHalf<'a>(&'a mut dyn Random);

impl Random for UpperHalf<'_> {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64() | 1 << 63
    }
}

/// Returns the longest wait that the limit on elapsed time and the deadline allow.
pub(crate) fn longest_wait(limits: &Limits, elapsed: Duration, until_deadline: Option<Duration>) -> Duration {
    const TICK: Duration = Duration::from_nanos(1);
    let of_elapsed = limits.max_elapsed.map(|most| most.saturating_sub(elapsed));
    // A request must be sent before the deadline, not at it.
    let of_deadline = until_deadline.map(|left| left.saturating_sub(TICK));
    of_elapsed.into_iter().chain(of_deadline).min().unwrap_or(Duration::MAX)
}

/// Returns the server's delay, randomly lengthened so that its clients do not retry at the same time.
///
/// The range is clamped before the draw, so that delays do not cluster at the limit.
pub(crate) fn spread(asked: Duration, most: Duration, random: &mut dyn Random) -> Duration {
    random.between(asked, asked.saturating_add(asked / 10).min(most))
}

/// Returns the failure to retry, or the reason why it must not be retried. The delay is checked elsewhere.
fn permitted(terms: &Terms, so_far: &SoFar, failed: &FailedAttempt<'_>) -> Result<Failure, StopReason> {
    let (failure, harmless) = match failed.classification.verdict {
        Verdict::Success => return Err(StopReason::Succeeded),
        Verdict::Permanent => return Err(StopReason::Permanent),
        Verdict::Transient(failure) => (failure, terms.repeatable),
        Verdict::NotProcessed(failure) => (failure, true),
    };
    if so_far.attempts >= terms.limits.max_attempts {
        Err(StopReason::AttemptsExhausted)
    } else if !harmless {
        Err(not_repeatable(&failure))
    } else if !failed.replayable {
        Err(StopReason::BodyNotKept)
    } else if failed.classification.hint == ServerHint::Stop {
        Err(StopReason::ServerSaidStop)
    } else {
        Ok(failure)
    }
}

/// Returns the stop reason for a request that must not be processed twice.
pub(crate) fn not_repeatable(failure: &Failure) -> StopReason {
    match failure.is_after_hop() {
        true => StopReason::EarlierHop,
        false => StopReason::NotRepeatable,
    }
}

#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traps;
