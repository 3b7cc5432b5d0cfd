//! The part of a guarded client that its clones share.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused};
use reattempt_engine::observe::{Event, Observer};
use reattempt_engine::wall::{AttemptTerms, clock, in_use, notify};

/// Returns the current time on the clock of [`GuardLayer`](super::GuardLayer), for guard methods that take the time.
///
/// ```
/// use reattempt::guard::handle::{self, BreakerState};
/// use reattempt::guard::CircuitBreaker;
///
/// let breaker = CircuitBreaker::rate();
/// assert_eq!(breaker.state_at("one.example", handle::now()), BreakerState::Closed);
/// ```
pub fn now() -> Duration {
    clock::Instant::now().since_epoch()
}

/// The part of a guarded client that its clones and its calls in flight share.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct Shared<G, P> {
    /// The guard.
    pub guard: Arc<G>,
    /// The protocol, which classifies outcomes for the guard.
    pub protocol: P,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// The time limit of an attempt.
    pub attempt_timeout: Option<Duration>,
    /// `true` if the layer is in front of a server. Deadlines then come from the server's callers.
    pub(super) serves: bool,
}

impl<G, P> Shared<G, P> {
    pub(super) fn new(protocol: P, guard: G) -> Self {
        Self::of(protocol, Arc::new(guard))
    }

    /// Creates the shared part of a client.
    pub fn of(protocol: P, guard: Arc<G>) -> Self {
        in_use::GUARDS.begin();
        let (observer, attempt_timeout) = (None, None);
        Self { guard, protocol, observer, attempt_timeout, serves: false }
    }

    pub(super) fn notify(&self, destination: &str, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            notify(&**observer, destination, event);
        }
    }
}

impl<G: Guard, P> Shared<Option<G>, P> {
    /// Returns `true` if every attempt is sent without a decision and without a time limit.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.guard.is_none() && self.attempt_timeout.is_none()
    }
}

impl<G: Guard, P> Shared<G, P> {
    /// Requests the guard's decision for an attempt. An impatient attempt, or one without a timer, is not queued.
    pub(super) fn admit(&self, arrival: &Arrival<'_>, terms: &mut Option<Box<AttemptTerms>>) -> Admit<G::Ticket> {
        match self.guard.admit(arrival) {
            Admit::Waiting(ticket) if !arrival.patient || !clock::has_timer() => {
                drop(self.guard.end_ticket(ticket, &End::Unsent, arrival.now));
                match self.guard.admit(&arrival.impatient()) {
                    Admit::Waiting(ticket) => {
                        drop(self.guard.end_ticket(ticket, &End::Unsent, arrival.now));
                        Admit::Refused(Refused::new(GuardKind::UNNAMED, Reason::Full))
                    }
                    decided => decided,
                }
            }
            Admit::Waiting(ticket) => self.queue(ticket, arrival, terms),
            decided => decided,
        }
    }

    /// Decides until when an attempt may stay in the guard's queue. A call that leaves the queue with less time than
    /// the server usually takes would waste a token or a place.
    ///
    /// The queue keeps at most half of the attempt's time free, because the usual latency is an estimate. An estimate
    /// that is too long must not close the queue, where it would never be corrected.
    // C-15
    #[cold]
    fn queue(
        &self,
        ticket: G::Ticket,
        arrival: &Arrival<'_>,
        terms: &mut Option<Box<AttemptTerms>>,
    ) -> Admit<G::Ticket> {
        let limit = terms.as_ref().and_then(|terms| terms.limit());
        let limit = limit.map(|limit| arrival.now.saturating_add(limit));
        let Some(latest) = arrival.latest.into_iter().chain(limit).min() else { return Admit::Waiting(ticket) };
        let usual = self.guard.usual_latency(&ticket, arrival.now).unwrap_or_default();
        let left = latest.saturating_sub(arrival.now);
        let start_by = latest.saturating_sub(usual.min(left / 2));
        if Some(start_by) == arrival.latest {
            return Admit::Waiting(ticket);
        }
        terms.get_or_insert_default().set_start_by(start_by);
        drop(self.guard.end_ticket(ticket, &End::Unsent, arrival.now));
        self.guard.admit(&arrival.latest(start_by))
    }
}

impl<G, P: Clone> Clone for Shared<G, P> {
    fn clone(&self) -> Self {
        Self {
            guard: Arc::clone(&self.guard),
            protocol: self.protocol.clone(),
            observer: self.observer.clone(),
            attempt_timeout: self.attempt_timeout,
            serves: self.serves,
        }
    }
}
