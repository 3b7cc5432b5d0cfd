//! A pass, which contains the ticket of one attempt and ends it exactly once, even if the attempt is dropped or panics.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::ServerHint;
use reattempt_core::guard::{Arrival, BodyEnd, End, Guard, Health, Refused, Resume};
use reattempt_core::user_code;
use reattempt_engine::CallOptions;
use reattempt_engine::wall::frame::Frame;
use reattempt_engine::wall::{AttemptTerms, CutOff, late_answers};

use super::health::Judged;
use super::shared::{Shared, now};

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
    /// `None` for most attempts.
    terms: Option<Box<AttemptTerms>>,
}

/// The time that a server of unknown latency has for an attempt, before the caller's deadline counts as a timeout.
const UNKNOWN_LATENCY: Duration = Duration::from_secs(1);

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
    /// Creates the pass of an attempt that the guard has admitted.
    #[inline]
    pub fn new(
        shared: Arc<Shared<G, P>>,
        ticket: G::Ticket,
        arrival: &Arrival<'_>,
        terms: Option<Box<AttemptTerms>>,
    ) -> Self {
        let (since, latest) = (arrival.now, arrival.latest);
        Self { shared, ticket: Some(ticket), phase: Phase::Unsent, since, latest, terms }
    }

    /// Returns the options of the call.
    #[inline]
    pub(super) fn options(&self) -> Option<&CallOptions> {
        self.terms.as_ref()?.options.as_ref()
    }

    /// Returns `true` if the attempt has waited for the guard, or has other terms that few attempts have.
    #[inline]
    pub(super) fn has_terms(&self) -> bool {
        self.terms.is_some()
    }

    /// Returns `true` if the attempt waits for the caller's body.
    pub(super) fn is_source_pending(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.is_source_pending())
    }

    /// Returns the attempt as a new arrival at `now`.
    fn arrival<'a>(&self, destination: &'a str, now: Duration) -> Arrival<'a> {
        let mut arrival = Arrival::new(destination, now);
        let start_by = self.terms.as_ref().and_then(|terms| terms.start_by());
        (arrival.latest, arrival.timeout) = (start_by.or(self.latest), self.shared.attempt_timeout);
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

    /// Records the time at which an attempt is sent that has waited.
    pub(super) fn sending(&mut self, now: Duration) {
        self.terms.get_or_insert_default().set_waited(now.saturating_sub(self.since));
        self.since = now;
    }

    /// Returns the ticket, until it has ended.
    pub fn ticket(&self) -> Option<&G::Ticket> {
        self.ticket.as_ref()
    }

    /// Returns the name of the server that the guard has chosen for the attempt.
    pub(super) fn server(&self) -> Option<Arc<str>> {
        self.shared.guard.server(self.ticket.as_ref()?)
    }

    /// Records that the inner service is polled. From now on, the attempt may have reached the server.
    pub fn polled(&mut self) {
        self.phase = Phase::Sent;
    }

    /// Records that an inner layer refused the attempt.
    pub(super) fn refused(&mut self) {
        self.phase = Phase::Unsent;
    }

    /// Ends the ticket with an outcome. Returns `true` if the guard holds its place until the body ends.
    #[inline]
    pub(super) fn judge(&mut self, mut judged: Judged) -> bool {
        let is_special = judged != Judged::SERVED;
        if is_special {
            self.bind_hint(&mut judged);
        }
        let is_timed = is_special || self.ticket.as_ref().is_some_and(|ticket| self.shared.guard.times_success(ticket));
        let now = if is_timed { now() } else { self.since };
        self.end_judged(judged, now);
        (self.phase, self.since) = (Phase::Held, now);
        self.ticket.is_some()
    }

    /// Removes a hint that binds only the server that an inner guard has chosen. A guard that chooses the server marks
    /// the hint for the outer ones.
    // C-13
    #[cold]
    fn bind_hint(&self, judged: &mut Judged) {
        if judged.health != Health::Unavailable || judged.hint == ServerHint::None {
            return;
        }
        if self.server().is_some() {
            Frame::bind_hint(judged.hint);
        } else if Frame::take_bound_hint() == judged.hint {
            judged.hint = ServerHint::None;
        }
    }

    /// Measures the latency of a served attempt that has waited.
    pub(super) fn record_latency(&self) {
        if !self.waited().is_zero()
            && let Some(ticket) = &self.ticket
        {
            self.shared.guard.record_latency(ticket, now().saturating_sub(self.since));
        }
    }

    fn waited(&self) -> Duration {
        self.terms.as_ref().map(|terms| terms.waited()).unwrap_or_default()
    }

    /// Ends the ticket of an attempt that exceeded the layer's own limit. With `had_no_time`, an inner guard has
    /// delayed the attempt.
    pub(super) fn timed_out(mut self, limit: CutOff, had_no_time: bool) {
        if had_no_time {
            let now = now();
            return self.abandon(now.saturating_sub(self.since), now);
        }
        if self.judge(if limit == CutOff::Upload { Judged::IGNORED } else { Judged::TIMED_OUT }) {
            self.end_after_answer(End::Over(BodyEnd::Broken), now());
        }
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
    pub fn over(mut self, end: BodyEnd) {
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

    /// Ends the ticket of an attempt that a time limit of an outer layer has ended. It shows that the server is slow
    /// only if the server had its time.
    #[cold]
    fn end_late(&mut self, limit: CutOff, now: Duration) {
        let after = now.saturating_sub(self.since);
        let judged = if self.shared.serves {
            // The deadline is that of the server's caller.
            Judged::SERVED
        } else if limit == CutOff::Upload || self.is_source_pending() {
            Judged::IGNORED
        } else if self.was_queued(after) {
            CutOff::set_had_no_time();
            return self.abandon(after, now);
        } else if !self.had_time(limit, after, now) {
            // An outer guard may know more about the server than this one.
            return self.abandon(after, now);
        } else {
            Judged::TIMED_OUT
        };
        self.end_judged(judged, now);
    }

    /// Returns `true` if an attempt that was sent this long ago had waited for longer in this client, here or in an
    /// inner guard.
    // C-10
    fn was_queued(&self, after: Duration) -> bool {
        after < self.waited() || (CutOff::current().is_some() && CutOff::had_no_time())
    }

    /// Returns `true` if the server had its time for an attempt that was sent this long ago. A caller's deadline must
    /// have left the usual latency of the server.
    fn had_time(&self, limit: CutOff, after: Duration, now: Duration) -> bool {
        let usual = || self.ticket.as_ref().and_then(|ticket| self.shared.guard.usual_latency(ticket, now));
        let of_attempt = || limit == CutOff::Attempt || self.shared.attempt_timeout.is_some_and(|own| own <= after);
        of_attempt() || after >= usual().unwrap_or(UNKNOWN_LATENCY)
    }

    /// Ends the ticket of an attempt whose outcome will not be known.
    fn abandon(&mut self, after: Duration, now: Duration) {
        self.end_after_answer(End::Abandoned { after }, now);
    }

    /// Ends the ticket of a dropped attempt. If its answer is still expected, the ticket ends after that.
    fn end_after_answer(&mut self, end: End, now: Duration) {
        if self.ticket.is_none() || !late_answers::is_expected() {
            return self.end_ticket(&end, now);
        }
        let (guard, ticket) = (Arc::clone(&self.shared.guard), self.ticket.take());
        late_answers::hold(Box::new(Lingering { guard, ticket, end }));
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
        if self.ticket.is_some() {
            user_code::release(|| self.end_dropped());
        }
    }
}

impl<G: Guard, P> Pass<G, P> {
    /// Ends the ticket of a dropped attempt according to its phase.
    fn end_dropped(&mut self) {
        let now = now();
        let limit = CutOff::current();
        if limit.is_some() {
            CutOff::set_server(self.server());
        }
        let limit = limit.or_else(|| self.latest.is_some_and(|latest| latest <= now).then_some(CutOff::Call));
        match (self.phase, limit) {
            (Phase::Unsent, _) => {
                CutOff::set_had_no_time();
                self.end_ticket(&End::Unsent, now);
            }
            (Phase::Sent | Phase::Answered(_), Some(limit)) => self.end_late(limit, now),
            (Phase::Answered(at), None) => self.end_judged(Judged::SERVED, at),
            (Phase::Sent, None) => {
                let after = now.saturating_sub(self.since);
                self.abandon(after, now);
            }
            (Phase::Held, _) => {}
        }
        // A remaining ticket was held for a body that has been dropped.
        self.end_after_answer(End::Over(BodyEnd::Dropped), now);
    }
}

/// A ticket that ends with the late answer to its attempt.
struct Lingering<G: Guard> {
    guard: Arc<G>,
    // `None` once the ticket has ended.
    ticket: Option<G::Ticket>,
    end: End,
}

impl<G: Guard> Drop for Lingering<G> {
    fn drop(&mut self) {
        let now = now();
        user_code::release(|| {
            let held = self.ticket.take().and_then(|ticket| self.guard.end_ticket(ticket, &self.end, now));
            held.map(|ticket| self.guard.end_ticket(ticket, &End::Over(BodyEnd::Dropped), now));
        });
    }
}

impl<G: Guard, P> fmt::Debug for Pass<G, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("phase", &self.phase).finish_non_exhaustive()
    }
}
