//! The one place where it is decided what follows on an event of a hedged call.
//!
//! In flow the rules of the call, the state of its attempts, an event and the time; out flow the new
//! state and what to do. No clock, no timer, no runtime. The rules named are those of gRPC's proposal
//! A6, which serve for HTTP as well.

use std::time::Duration;

use reattempt_core::StopReason;
use tokio::time::Instant;

use crate::clock;

/// What holds for one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// The most attempts in all, the first included.
    pub(super) max_attempts: u32,
    /// The time from one attempt to the next; zero for all at once (rule HG-2).
    pub(super) delay: Duration,
    /// From this moment on no further attempt is sent, for the limit on elapsed time.
    pub(super) latest: Option<Instant>,
    /// The same for the call's deadline.
    pub(super) deadline: Option<Instant>,
}

impl Rules {
    /// From when on no further attempt is sent.
    pub(super) fn end(&self) -> Option<Instant> {
        self.latest.into_iter().chain(self.deadline).min()
    }
}

/// What is known of the attempts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempts {
    /// How many were sent.
    pub(super) sent: u32,
    /// How many of them have not ended.
    pub(super) in_flight: u32,
    /// Why no further one is sent, whatever happens.
    frozen: Option<StopReason>,
    /// When the next one goes, unless something forbids it.
    due: Instant,
    /// Until when a server asked for none.
    held_until: Option<Instant>,
}

/// What a server that refused an attempt asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushback {
    /// Nothing.
    None,
    /// The next attempt is to come after exactly this time.
    Exactly(Duration),
    /// The next attempt is to come after this time or later, at best `spread` later.
    AtLeast { wait: Duration, spread: Duration },
    /// No attempt is to come, for this reason.
    Stop(StopReason),
}

/// Something that happened to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// An attempt has an answer that the caller wants.
    Answered,
    /// A response that no other attempt would better, or a failure that all of them share.
    Fatal,
    /// An attempt failed, and another may do better.
    Failed(Pushback),
    /// An attempt ended with an error that no other attempt is known to mend.
    Errored,
    /// A layer on this side turned an attempt away, so it was not sent.
    Refused,
    /// An attempt ended because it could not go on reading the request's body.
    Lost,
    /// A further attempt was sent.
    Sent,
    /// No further attempt can be sent, for this reason.
    Stopped(StopReason),
    /// Nothing but time has passed.
    Time,
}

/// What to do after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Go on with the attempts in flight, and send another one at this moment, if there is one.
    Go(Option<Instant>),
    /// The call is over: its outcome is the last that came, and all other attempts are cancelled.
    Return(StopReason),
}

impl Event {
    /// Why the call is over with this event, whatever came before it.
    pub(super) fn ends(self) -> Option<StopReason> {
        match self {
            // HG-3
            Event::Answered => Some(StopReason::Succeeded),
            // HG-5
            Event::Fatal => Some(StopReason::Permanent),
            _ => None,
        }
    }
}

impl Attempts {
    /// The first attempt, sent at `now`.
    pub(super) fn first(rules: &Rules, now: Instant) -> Self {
        let due = clock::later(now, rules.delay);
        Self { sent: 1, in_flight: 1, frozen: None, due, held_until: None }
    }
}

/// Takes an event at `now` into `attempts`, and says what to do.
pub(super) fn next(rules: &Rules, attempts: &mut Attempts, event: Event, now: Instant) -> Action {
    if let Some(reason) = event.ends() {
        return Action::Return(reason);
    }
    match event {
        Event::Failed(pushback) => {
            attempts.in_flight = attempts.in_flight.saturating_sub(1);
            match pushback {
                // HG-4; what a server asked for is not shortened by the failure of another attempt.
                Pushback::None => attempts.due = attempts.held_until.unwrap_or(now).max(now),
                // HG-7
                Pushback::Exactly(wait) => hold(attempts, clock::later(now, wait)),
                // What another server asked for is not shortened by this one.
                Pushback::AtLeast { wait, spread } => {
                    let least = clock::later(now, wait);
                    let drawn = cut(rules, least, clock::later(least, spread));
                    hold(attempts, drawn.max(attempts.held_until.unwrap_or(now)));
                }
                // HG-6
                Pushback::Stop(reason) => freeze(attempts, reason),
            }
        }
        // No error is fatal to the attempts in flight, for it may be this side's own.
        Event::Errored => {
            attempts.in_flight = attempts.in_flight.saturating_sub(1);
            if attempts.in_flight == 0 {
                return Action::Return(StopReason::Permanent);
            }
        }
        // As HG-8: what this side has no room for is not offered to it again.
        Event::Refused => {
            attempts.in_flight = attempts.in_flight.saturating_sub(1);
            attempts.sent = attempts.sent.saturating_sub(1).max(1);
            freeze(attempts, StopReason::NotReady);
        }
        // BUF-8: the attempt that reads on is in flight still, if it is not the one that answered.
        Event::Lost => {
            attempts.in_flight = attempts.in_flight.saturating_sub(1);
            freeze(attempts, StopReason::BodyNotKept);
        }
        Event::Sent => {
            attempts.sent = attempts.sent.saturating_add(1);
            attempts.in_flight = attempts.in_flight.saturating_add(1);
            attempts.due = clock::later(now, rules.delay);
            attempts.held_until = None;
        }
        // HG-8 among others
        Event::Stopped(reason) => freeze(attempts, reason),
        Event::Answered | Event::Fatal | Event::Time => {}
    }
    match upcoming(rules, attempts, now) {
        Ok(due) => Action::Go(Some(due)),
        Err(_) if attempts.in_flight > 0 => Action::Go(None),
        // HG-9
        Err(reason) => Action::Return(reason),
    }
}

/// The next attempt goes at this moment, and no failure without a wait brings it forward.
fn hold(attempts: &mut Attempts, until: Instant) {
    attempts.due = until;
    attempts.held_until = Some(until);
}

/// What was drawn for the next attempt, but no later than the limits allow if `least` is not.
fn cut(rules: &Rules, least: Instant, drawn: Instant) -> Instant {
    const TICK: Duration = Duration::from_millis(1);
    let last = rules.end().and_then(|end| end.checked_sub(TICK));
    last.map_or(drawn, |last| drawn.min(last)).max(least)
}

/// The first reason counts.
fn freeze(attempts: &mut Attempts, reason: StopReason) {
    attempts.frozen.get_or_insert(reason);
}

/// When the next attempt goes, or why there is none.
fn upcoming(rules: &Rules, attempts: &Attempts, now: Instant) -> Result<Instant, StopReason> {
    if attempts.sent >= rules.max_attempts {
        return Err(StopReason::AttemptsExhausted);
    }
    if let Some(reason) = attempts.frozen {
        return Err(reason);
    }
    // One that is due already is sent now, if at all.
    let soonest = attempts.due.max(now);
    if rules.deadline.is_some_and(|deadline| soonest >= deadline) {
        Err(StopReason::DeadlineExceeded)
    } else if rules.latest.is_some_and(|latest| soonest >= latest) {
        Err(StopReason::ElapsedExhausted)
    } else {
        Ok(attempts.due)
    }
}

#[cfg(test)]
mod tests;
