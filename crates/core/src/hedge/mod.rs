//! The decisions of a hedged call, whose attempts run in parallel.
//!
//! The decisions depend only on plain values: the terms of the call, the state of its attempts, an event and the time.
//! The rules are those of gRPC's proposal A6. They also apply to HTTP.

mod permits;

use core::time::Duration;

use crate::decide::spread;
use crate::{Classification, Limits, Random, ServerHint, StopReason, Verdict};

pub use permits::HedgePermits;

/// The limits of a hedged call, fixed when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HedgeTerms {
    /// The limits of the call. After `max_elapsed` no further attempt is sent.
    pub limits: Limits,
    /// The time between attempts. Zero sends them all at the same time.
    // HG-2
    pub delay: Duration,
    /// The time from the start of the call to its deadline, after which no further attempt is sent.
    pub deadline: Option<Duration>,
}

impl HedgeTerms {
    /// Creates the terms of a call without a deadline.
    pub const fn new(limits: Limits, delay: Duration) -> Self {
        Self { limits, delay, deadline: None }
    }

    /// Returns the time since the start of the call after which no further attempt is sent.
    pub fn time_limit(&self) -> Option<Duration> {
        self.limits.max_elapsed.into_iter().chain(self.deadline).min()
    }
}

/// An event of a hedged call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeEvent {
    /// An attempt succeeded.
    Succeeded,
    /// An attempt ended with a response that another attempt would not improve, or with a failure that all attempts
    /// share.
    Fatal,
    /// An attempt had a retryable failure, with this server hint.
    Failed(ServerHint),
    /// An attempt ended with an error that is not known to be retryable.
    Errored,
    /// An inner layer refused an attempt, so it was not sent.
    Refused,
    /// An attempt ended because it could not read the rest of the request body.
    BodyLost,
    /// Another attempt was sent.
    Sent,
    /// No further attempt can be sent, for this reason.
    Stopped(StopReason),
    /// Time has passed without another event.
    TimePassed,
}

impl HedgeEvent {
    /// Returns the event for an attempt that ended with this classification. `responded` is `true` if a server has
    /// responded.
    ///
    /// A response with a permanent failure ends the call. A permanent error does not, because this client may have
    /// caused it.
    pub fn of(classification: &Classification, responded: bool) -> Self {
        match classification.verdict {
            Verdict::Success => Self::Succeeded,
            // Another attempt would not be the result either.
            verdict if verdict.is_pending() => Self::Succeeded,
            Verdict::Transient(_) | Verdict::NotProcessed(_) => Self::Failed(classification.hint),
            Verdict::Permanent if responded => Self::Fatal,
            Verdict::Permanent => Self::Errored,
        }
    }

    /// Returns the stop reason if this event ends the call in every state, or `None` otherwise.
    pub fn ends(self) -> Option<StopReason> {
        match self {
            // HG-3
            Self::Succeeded => Some(StopReason::Succeeded),
            // HG-5
            Self::Fatal => Some(StopReason::Permanent),
            _ => None,
        }
    }
}

/// The decision after an event of a hedged call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeDecision {
    /// The attempts in flight continue.
    Continue {
        /// The time of the next attempt, if there is one, measured from the start of the call.
        next: Option<Duration>,
    },
    /// The call ends with the last outcome that arrived. All other attempts are cancelled.
    Return(StopReason),
}

/// The state of a hedged call's attempts.
///
/// Times are measured from the start of the call. The driver sends each attempt at the given time, and reports events.
///
/// ```
/// use core::time::Duration;
/// use reattempt_core::{HedgeCall, HedgeDecision, HedgeEvent, HedgeTerms, Limits, StopReason};
/// # struct Zero;
/// # impl reattempt_core::Random for Zero { fn next_u64(&mut self) -> u64 { 0 } }
/// # let mut random = Zero;
///
/// let delay = Duration::from_millis(100);
/// let terms = HedgeTerms::new(Limits::default(), delay);
/// let mut call = HedgeCall::new(&terms);
/// let decision = call.next(&terms, HedgeEvent::TimePassed, Duration::ZERO, &mut random);
/// assert_eq!(decision, HedgeDecision::Continue { next: Some(delay) });
/// let decision = call.next(&terms, HedgeEvent::Sent, delay, &mut random);
/// assert_eq!(decision, HedgeDecision::Continue { next: Some(2 * delay) });
/// let decision = call.next(&terms, HedgeEvent::Succeeded, delay, &mut random);
/// assert_eq!(decision, HedgeDecision::Return(StopReason::Succeeded));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgeCall {
    sent: u32,
    in_flight: u32,
    /// The reason why no further attempt is sent, if any.
    frozen: Option<StopReason>,
    /// The time of the next attempt, unless it is forbidden.
    due: Duration,
    /// The end of a delay that a server requested.
    held_until: Option<Duration>,
}

impl HedgeCall {
    /// Creates the state of a call whose first attempt has just been sent.
    pub const fn new(terms: &HedgeTerms) -> Self {
        Self { sent: 1, in_flight: 1, frozen: None, due: terms.delay, held_until: None }
    }

    /// Returns the number of attempts that were sent.
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    /// Returns the number of attempts in flight.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Records an event at `now` and decides what to do next.
    pub fn next(
        &mut self,
        terms: &HedgeTerms,
        event: HedgeEvent,
        now: Duration,
        random: &mut dyn Random,
    ) -> HedgeDecision {
        if let Some(reason) = event.ends() {
            return HedgeDecision::Return(reason);
        }
        match event {
            HedgeEvent::Failed(hint) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.obey(terms, hint, now, random);
            }
            HedgeEvent::Errored => {
                self.in_flight = self.in_flight.saturating_sub(1);
                if self.in_flight == 0 {
                    return HedgeDecision::Return(StopReason::Permanent);
                }
            }
            // As in HG-8: if this client has no capacity for an attempt, no other is sent.
            HedgeEvent::Refused => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.sent = self.sent.saturating_sub(1).max(1);
                self.freeze(StopReason::NotReady);
            }
            // BUF-8: the attempt that reads the rest of the body is still in flight, unless it ended earlier.
            HedgeEvent::BodyLost => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.freeze(StopReason::BodyNotKept);
            }
            HedgeEvent::Sent => {
                self.sent = self.sent.saturating_add(1);
                self.in_flight = self.in_flight.saturating_add(1);
                self.due = now.saturating_add(terms.delay);
                self.held_until = None;
            }
            // HG-8, among others.
            HedgeEvent::Stopped(reason) => self.freeze(reason),
            HedgeEvent::Succeeded | HedgeEvent::Fatal | HedgeEvent::TimePassed => {}
        }
        match self.upcoming(terms, now) {
            Ok(due) => HedgeDecision::Continue { next: Some(due) },
            Err(_) if self.in_flight > 0 => HedgeDecision::Continue { next: None },
            // HG-9
            Err(reason) => HedgeDecision::Return(reason),
        }
    }

    /// Moves the next attempt to the time that a server requested.
    fn obey(&mut self, terms: &HedgeTerms, hint: ServerHint, now: Duration, random: &mut dyn Random) {
        match hint {
            // HG-4: another attempt's failure does not shorten a delay that a server requested.
            ServerHint::None => self.due = self.held_until.unwrap_or(now).max(now),
            // HG-7
            ServerHint::Exactly(wait) => self.hold(now.saturating_add(wait)),
            ServerHint::After(wait) | ServerHint::AtLeast(wait) if wait > terms.limits.max_server_delay => {
                self.freeze(StopReason::ServerDelayTooLong);
            }
            // This delay does not shorten one that another server requested.
            ServerHint::After(wait) | ServerHint::AtLeast(wait) => {
                let drawn = now.saturating_add(spread(wait, longest_wait(terms, now), random));
                self.hold(drawn.max(self.held_until.unwrap_or(now)));
            }
            // The next attempt is not sent earlier than planned.
            ServerHint::Unreadable => {}
            // HG-6
            ServerHint::Stop => self.freeze(StopReason::ServerSaidStop),
        }
    }

    /// Fixes the time of the next attempt. A failure without a server delay does not move it earlier.
    fn hold(&mut self, until: Duration) {
        self.due = until;
        self.held_until = Some(until);
    }

    /// Prevents all further attempts. The first reason is kept.
    fn freeze(&mut self, reason: StopReason) {
        self.frozen.get_or_insert(reason);
    }

    /// Returns the time of the next attempt, or the reason why there is none.
    fn upcoming(&self, terms: &HedgeTerms, now: Duration) -> Result<Duration, StopReason> {
        if self.sent >= terms.limits.max_attempts {
            return Err(StopReason::AttemptsExhausted);
        }
        if let Some(reason) = self.frozen {
            return Err(reason);
        }
        // An attempt that is already due is sent now, if at all.
        let soonest = self.due.max(now);
        if terms.deadline.is_some_and(|deadline| soonest >= deadline) {
            Err(StopReason::DeadlineExceeded)
        } else if terms.limits.max_elapsed.is_some_and(|latest| soonest >= latest) {
            Err(StopReason::ElapsedExhausted)
        } else {
            Ok(self.due)
        }
    }
}

/// Returns the longest wait from `now` after which an attempt may still be sent.
fn longest_wait(terms: &HedgeTerms, now: Duration) -> Duration {
    // Timers may count in whole milliseconds, rounded up.
    const TICK: Duration = Duration::from_millis(1);
    let wait = |end: Duration| end.saturating_sub(TICK).saturating_sub(now);
    terms.time_limit().map_or(Duration::MAX, wait)
}

#[cfg(test)]
mod tests;
