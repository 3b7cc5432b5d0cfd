//! A pass: the ticket of one attempt. It ends the ticket exactly once, also if the attempt is dropped or panics.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Arrival, BodyEnd, End, Guard, Refused, Resume};

use super::health::Judged;
use super::shared::{Shared, now};
use crate::call::cut_off::is_cut_off;
use crate::call::options::CallOptions;

/// The ticket of one attempt, with the data that its end needs.
///
/// Dropping it, also during a panic, ends the ticket by the phase that the attempt has reached.
pub struct Pass<G: Guard, K> {
    pub(super) shared: Arc<Shared<G, K>>,
    /// Absent once the ticket has ended or the guard has taken it back.
    ticket: Option<G::Ticket>,
    phase: Phase,
    /// The moment at which the attempt was sent; once its outcome is known, that of the outcome.
    since: Duration,
    latest: Option<Duration>,
    options: Option<Box<CallOptions>>,
}

/// The phase of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been sent.
    Unsent,
    /// The inner future was polled, and the outcome is not known.
    Sent,
    /// A part of the response body has come at this moment, and the outcome is still to be read from its end.
    Answered(Duration),
    /// The outcome is known, and the guard holds its place until the body ends.
    Held,
}

impl<G: Guard, K> Pass<G, K> {
    #[inline]
    pub(crate) fn new(
        shared: Arc<Shared<G, K>>,
        ticket: G::Ticket,
        arrival: &Arrival<'_>,
        options: Option<Box<CallOptions>>,
    ) -> Self {
        let (since, latest) = (arrival.now, arrival.latest);
        Self { shared, ticket: Some(ticket), phase: Phase::Unsent, since, latest, options }
    }

    /// Returns the options of the call.
    #[inline]
    pub(super) fn options(&self) -> Option<&CallOptions> {
        self.options.as_deref()
    }

    /// Returns the attempt as it arrives again at `now`.
    fn arrival<'a>(&self, destination: &'a str, now: Duration) -> Arrival<'a> {
        let mut arrival = Arrival::new(destination, now);
        (arrival.latest, arrival.timeout) = (self.latest, self.shared.attempt_timeout);
        arrival
    }

    /// Asks the guard again for an attempt that waits.
    pub(super) fn resume(&mut self, destination: &str, now: Duration, waker: &Waker) -> Resume {
        let arrival = self.arrival(destination, now);
        let Some(ticket) = &mut self.ticket else { return Resume::Admitted };
        let resumed = self.shared.guard.resume(ticket, &arrival, waker);
        if let Resume::Refused(_) = resumed {
            self.ticket = None;
        }
        resumed
    }

    /// Lets the guards decide again, because the attempt has waited for the inner service since.
    pub(super) fn renew(&mut self, destination: &str, now: Duration) -> Result<(), Refused> {
        let arrival = self.arrival(destination, now);
        let Some(ticket) = self.ticket.take() else { return Ok(()) };
        self.ticket = Some(self.shared.guard.renew(ticket, &arrival)?);
        Ok(())
    }

    /// Records when the attempt is sent.
    pub(super) fn sending(&mut self, now: Duration) {
        self.since = now;
    }

    /// Records that the inner future is polled: from now on the attempt may have reached the server.
    pub(super) fn polled(&mut self) {
        self.phase = Phase::Sent;
    }

    /// Records that a layer further in refused the attempt.
    pub(super) fn refused(&mut self) {
        self.phase = Phase::Unsent;
    }

    /// Ends the ticket with an outcome. Returns `true` if the guard holds its place until the body ends.
    #[inline]
    pub(super) fn judge(&mut self, judged: Judged) -> bool {
        let is_timed = judged != Judged::SERVED
            || self.ticket.as_ref().is_some_and(|ticket| self.shared.guard.times_success(ticket));
        let now = if is_timed { now() } else { self.since };
        self.end_judged(judged, now);
        (self.phase, self.since) = (Phase::Held, now);
        self.ticket.is_some()
    }

    /// Ends the ticket with an outcome. Returns the pass if the guard holds its place until the body ends.
    pub(super) fn judged(mut self, judged: Judged) -> Option<Self> {
        self.judge(judged).then_some(self)
    }

    /// Returns `true` if the outcome is still to be read from the body.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Sent | Phase::Answered(_))
    }

    /// Records that a part of the body has come. If the rest is dropped, the server has done its work.
    pub(super) fn answered(&mut self) {
        if self.phase != Phase::Sent {
            return;
        }
        if self.ticket.as_ref().is_some_and(|ticket| self.shared.guard.is_probe(ticket)) {
            self.judge(Judged::SERVED);
        } else {
            self.phase = Phase::Answered(now());
        }
    }

    /// Ends the place of an attempt whose body has ended.
    pub(super) fn over(mut self, end: BodyEnd) {
        self.end(&End::Over(end), now());
    }

    /// Ends the place of an attempt whose body ended with its head.
    pub(super) fn over_with_head(mut self) {
        self.end(&End::Over(BodyEnd::Complete), self.since);
    }

    #[inline]
    fn end_judged(&mut self, Judged { health, hint, quota }: Judged, now: Duration) {
        let after = now.saturating_sub(self.since);
        self.end(&End::Judged { health, hint, quota, after }, now);
    }

    /// Passes an end to the guard, and keeps the ticket that it returns.
    #[inline]
    fn end(&mut self, end: &End, now: Duration) {
        if let Some(ticket) = self.ticket.take() {
            self.ticket = self.shared.guard.end(ticket, end, now);
        }
    }
}

impl<G: Guard, K> Drop for Pass<G, K> {
    fn drop(&mut self) {
        if self.ticket.is_none() {
            return;
        }
        let now = now();
        match self.phase {
            Phase::Unsent => self.end(&End::Unsent, now),
            Phase::Sent | Phase::Answered(_) if is_cut_off() || self.latest.is_some_and(|latest| latest <= now) => {
                let judged = if self.shared.serves { Judged::SERVED } else { Judged::TIMED_OUT };
                self.end_judged(judged, now);
            }
            Phase::Answered(at) => self.end_judged(Judged::SERVED, at),
            Phase::Sent => {
                let after = now.saturating_sub(self.since);
                self.end(&End::Abandoned { after }, now);
            }
            Phase::Held => {}
        }
        // A ticket that is still there was held for a body that has been dropped.
        self.end(&End::Over(BodyEnd::Dropped), now);
    }
}

impl<G: Guard, K> fmt::Debug for Pass<G, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("phase", &self.phase).finish_non_exhaustive()
    }
}
