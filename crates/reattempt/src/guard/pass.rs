//! A pass, which contains the ticket of one attempt and ends it exactly once, even if the attempt is dropped or panics.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Arrival, BodyEnd, End, Guard, Refused, Resume};

use super::health::Judged;
use super::shared::{Shared, now};
use crate::call::cut_off::{is_cut_off, set_server};
use crate::call::options::CallOptions;

/// The ticket of one attempt, with the data that is needed to end it.
///
/// Dropping the pass, even during a panic, ends the ticket according to the attempt's phase.
pub struct Pass<G: Guard, P> {
    pub(super) shared: Arc<Shared<G, P>>,
    /// `None` once the ticket has ended or has been returned to the guard.
    ticket: Option<G::Ticket>,
    phase: Phase,
    /// The time at which the attempt was sent, or at which its outcome became known.
    since: Duration,
    latest: Option<Duration>,
    options: Option<Box<CallOptions>>,
}

/// The phase of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been sent.
    Unsent,
    /// The inner future was polled, and the outcome is unknown.
    Sent,
    /// A part of the response body arrived at this time, and the outcome must still be read from its end.
    Answered(Duration),
    /// The outcome is known, and the guard holds its place until the body ends.
    Held,
}

impl<G: Guard, P> Pass<G, P> {
    #[inline]
    pub(crate) fn new(
        shared: Arc<Shared<G, P>>,
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

    /// Returns the attempt as a new arrival at `now`.
    fn arrival<'a>(&self, destination: &'a str, now: Duration) -> Arrival<'a> {
        let mut arrival = Arrival::new(destination, now);
        (arrival.latest, arrival.timeout) = (self.latest, self.shared.attempt_timeout);
        arrival
    }

    /// Requests the guard's decision for a waiting attempt.
    pub(super) fn resume(&mut self, destination: &str, now: Duration, waker: &Waker) -> Resume {
        let arrival = self.arrival(destination, now);
        let Some(ticket) = &mut self.ticket else { return Resume::Admitted };
        let resumed = self.shared.guard.resume(ticket, &arrival, waker);
        if let Resume::Refused(_) = resumed {
            self.ticket = None;
        }
        resumed
    }

    /// Requests a new decision from the guards, because the attempt has since waited for the inner service.
    pub(super) fn renew(&mut self, destination: &str, now: Duration) -> Result<(), Refused> {
        let arrival = self.arrival(destination, now);
        let Some(ticket) = self.ticket.take() else { return Ok(()) };
        self.ticket = Some(self.shared.guard.renew(ticket, &arrival)?);
        Ok(())
    }

    /// Records the time at which the attempt is sent.
    pub(super) fn sending(&mut self, now: Duration) {
        self.since = now;
    }

    /// Returns the name of the server that the guard has chosen for the attempt.
    pub(super) fn server(&self) -> Option<Arc<str>> {
        self.shared.guard.server(self.ticket.as_ref()?)
    }

    /// Records that the inner future is polled. From now on, the attempt may have reached the server.
    pub(super) fn polled(&mut self) {
        self.phase = Phase::Sent;
    }

    /// Records that an inner layer refused the attempt.
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

    /// Returns `true` if the outcome must still be read from the body.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Sent | Phase::Answered(_))
    }

    /// Records that a part of the body has arrived. If the rest is dropped, the attempt is still recorded as served.
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

    /// Releases the place of an attempt whose body has ended.
    pub(super) fn over(mut self, end: BodyEnd) {
        self.end_ticket(&End::Over(end), now());
    }

    /// Releases the place of an attempt whose body ended with its head.
    pub(super) fn over_with_head(mut self) {
        self.end_ticket(&End::Over(BodyEnd::Complete), self.since);
    }

    #[inline]
    fn end_judged(&mut self, Judged { health, hint, quota }: Judged, now: Duration) {
        let after = now.saturating_sub(self.since);
        self.end_ticket(&End::Judged { health, hint, quota, after }, now);
    }

    /// Passes an end to the guard, and stores the ticket that it returns.
    #[inline]
    fn end_ticket(&mut self, end: &End, now: Duration) {
        if let Some(ticket) = self.ticket.take() {
            self.ticket = self.shared.guard.end_ticket(ticket, end, now);
        }
    }
}

impl<G: Guard, P> Drop for Pass<G, P> {
    fn drop(&mut self) {
        if self.ticket.is_none() {
            return;
        }
        let now = now();
        if is_cut_off() {
            set_server(self.server());
        }
        match self.phase {
            Phase::Unsent => self.end_ticket(&End::Unsent, now),
            Phase::Sent | Phase::Answered(_) if is_cut_off() || self.latest.is_some_and(|latest| latest <= now) => {
                let judged = if self.shared.serves { Judged::SERVED } else { Judged::TIMED_OUT };
                self.end_judged(judged, now);
            }
            Phase::Answered(at) => self.end_judged(Judged::SERVED, at),
            Phase::Sent => {
                let after = now.saturating_sub(self.since);
                self.end_ticket(&End::Abandoned { after }, now);
            }
            Phase::Held => {}
        }
        // A remaining ticket was held for a body that has been dropped.
        self.end_ticket(&End::Over(BodyEnd::Dropped), now);
    }
}

impl<G: Guard, P> fmt::Debug for Pass<G, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("phase", &self.phase).finish_non_exhaustive()
    }
}
