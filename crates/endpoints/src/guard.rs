//! A set of endpoints as a guard, which picks an endpoint for each attempt and records the attempt's outcome.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt_control::{EndpointEvent, EndpointSet, EndpointTicket, Trail};
use reattempt_core::Warning;
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused};
use reattempt_engine::wall::frame::{Frame, Pick};
use reattempt_engine::wall::in_use;
use reattempt_guard::handle::now;

use super::discovery::Discovery;
use super::random::OfThread;
use super::settings::{EventObserver, Settings};

/// A set of endpoints with its observers and its discovery, shared by the set's clients and
/// [handles](super::EndpointsHandle).
///
/// This type is the [`Guard`] of each attempt, and reuses the tickets, health, body watching and timeouts of
/// [guards](reattempt_guard). The services in this module call it directly instead of through a guard layer. Its
/// ticket determines the attempt's endpoint, whereas a guard layer has only one inner service.
pub struct EndpointGuard<T> {
    pub(super) set: EndpointSet<T>,
    pub(super) discovery: Discovery,
    observers: Mutex<Vec<EventObserver>>,
    pub(super) settings: Settings,
}

impl<T> EndpointGuard<T> {
    pub(super) fn new(settings: Settings) -> Self {
        in_use::ENDPOINTS.begin();
        let (set, observers) = (settings.set(), settings.observers.clone());
        Self { set, discovery: Discovery::default(), observers: Mutex::new(observers), settings }
    }

    /// Replaces the endpoints, and wakes the calls that wait for the first ones.
    pub(super) fn replace(
        &self,
        endpoints: impl IntoIterator<Item = (usize, Arc<str>)>,
        is_new: impl Fn(&str) -> bool,
        make: impl FnMut(&str) -> Option<T>,
    ) {
        let events = self.set.replace(endpoints, is_new, make, now());
        self.notify_all(events);
        self.discovery.answered();
    }

    pub(super) fn observe(&self, observer: EventObserver) {
        self.observers().push(observer);
    }

    fn observers(&self) -> MutexGuard<'_, Vec<EventObserver>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self, event: &EndpointEvent) {
        // Cloned so that the lock is not held, because an observer may add another one.
        let observers = self.observers().clone();
        observers.iter().for_each(|observer| observer(event));
    }

    #[inline]
    fn notify_all(&self, events: Option<Box<[EndpointEvent]>>) {
        if let Some(events) = events {
            self.notify_each(&events);
        }
    }

    #[cold]
    fn notify_each(&self, events: &[EndpointEvent]) {
        for event in events {
            if let EndpointEvent::Ejected { .. } | EndpointEvent::MajorityFailing { .. } = event {
                self.discovery.look_up_soon();
            }
            self.notify(event);
        }
    }
}

/// The refusal of an attempt if there is no endpoint.
pub(super) const EMPTY: Refused = Refused::new(GuardKind::ENDPOINTS, Reason::Empty);

impl<T: Send + Sync + 'static> Guard for EndpointGuard<T> {
    type Ticket = EndpointTicket<T>;

    /// Picks an endpoint that the call has not tried, and records the pick for the outer retry layer.
    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<EndpointTicket<T>> {
        // A first attempt has no trail, so it neither makes nor copies one.
        let trail = Frame::trail();
        let trail = trail.as_ref().unwrap_or(const { &Trail::new() });
        let Some(pick) = self.set.pick(trail, arrival.now, &mut OfThread) else {
            return Admit::Refused(EMPTY);
        };
        self.notify_all(pick.events);
        let stays = trail.tier().is_some();
        Frame::picked(Pick { id: pick.ticket.id(), elsewhere: pick.elsewhere, tier: pick.tier, stays });
        Admit::Admitted(pick.ticket)
    }

    #[inline]
    fn end_ticket(&self, ticket: EndpointTicket<T>, end: &End, now: Duration) -> Option<EndpointTicket<T>> {
        let ended = self.set.end_ticket(ticket, end, now, &mut OfThread);
        self.notify_all(ended.events);
        ended.held
    }

    fn server(&self, ticket: &EndpointTicket<T>) -> Option<Arc<str>> {
        Some(Arc::clone(ticket.name()))
    }

    fn usual_latency(&self, ticket: &EndpointTicket<T>, now: Duration) -> Option<Duration> {
        self.set.usual_latency(ticket, now)
    }

    /// Returns the ticket unchanged, because the attempt already has its endpoint.
    fn renew(&self, ticket: EndpointTicket<T>, _: &Arrival<'_>) -> Result<EndpointTicket<T>, Refused> {
        Ok(ticket)
    }

    fn validate(&self) -> Vec<Warning> {
        [self.set.validate(), self.settings.validate()].concat()
    }
}

impl<T> fmt::Debug for EndpointGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.set.fmt(f)
    }
}
