//! A set of endpoints as a guard, which picks an endpoint for each attempt and records the attempt's outcome.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt_control::{EndpointEvent, EndpointSet, EndpointTicket, Pick, Place, Trail};
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused};
use reattempt_core::{Warning, user_code};
use reattempt_engine::wall::frame::{self, Frame};
use reattempt_engine::wall::in_use;
use reattempt_guard::handle::now;

use super::discovery::Discovery;
use super::keys::{KeyTiers, TierOfKey};
use super::place::Places;
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
    keys: KeyTiers,
    observers: Mutex<Vec<EventObserver>>,
    pub(super) settings: Settings,
}

impl<T> EndpointGuard<T> {
    pub(super) fn new(settings: Settings) -> Self {
        in_use::ENDPOINTS.begin();
        let (set, observers) = (settings.set(), settings.observers.clone());
        Self {
            set,
            discovery: Discovery::default(),
            keys: KeyTiers::default(),
            observers: Mutex::new(observers),
            settings,
        }
    }

    /// Replaces the endpoints, and wakes the calls that wait for the first ones.
    pub(super) fn replace(
        &self,
        endpoints: impl IntoIterator<Item = (Place, Arc<str>)>,
        is_new: impl Fn(&str) -> bool,
        make: impl FnMut(&str) -> Option<T>,
    ) {
        let events = self.set.replace(endpoints, is_new, make, now());
        self.notify_all(events);
        self.discovery.answered();
    }

    /// Gives the endpoints other places.
    pub(super) fn place_again(&self, place: impl Fn(&str, Place) -> Place) {
        self.notify_all(self.set.place_again(place, now()));
    }

    /// Returns the places that endpoints have now.
    pub(super) fn places(&self) -> Places {
        Places(self.set.view(now()).iter().map(|view| (Arc::clone(&view.name), Place::from(view))).collect())
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
        user_code::notify(|| observers.iter().for_each(|observer| observer(event)));
    }

    /// Picks an endpoint that the call has not tried. If no frame gets the pick, a request with a `key` stays in the
    /// tier that the key was sent to.
    #[inline]
    pub(super) fn pick<'a>(&self, arrival: &Arrival<'_>, key: impl FnOnce() -> Option<&'a [u8]>) -> Option<Picked<T>> {
        match Frame::is_hidden() && self.set.is_tiered() {
            true => self.pick_hidden(arrival, key()),
            // A first attempt has no trail, so it neither makes nor copies one.
            false => {
                let trail = Frame::trail();
                self.pick_after(trail.as_ref().unwrap_or(const { &Trail::new() }), arrival)
            }
        }
    }

    fn pick_after(&self, trail: &Trail, arrival: &Arrival<'_>) -> Option<Picked<T>> {
        let Pick { ticket, elsewhere, tier, events, .. } = self.set.pick(trail, arrival.now, &mut OfThread)?;
        self.notify_all(events);
        let pick = frame::Pick { id: ticket.id(), elsewhere, tier, stays: trail.tier().is_some() };
        Some(Picked { ticket, pick })
    }

    #[cold]
    fn pick_hidden(&self, arrival: &Arrival<'_>, key: Option<&[u8]>) -> Option<Picked<T>> {
        let (key, mut trail) = (key.map(|key| self.keys.of(key)), Trail::new());
        if let Some(tier) = key.as_ref().and_then(TierOfKey::tier) {
            trail.stay_in(tier);
        }
        let picked = self.pick_after(&trail, arrival)?;
        if let Some((key, tier)) = key.zip(picked.pick.tier) {
            key.sent_to(tier.id);
        }
        Some(picked)
    }

    /// Returns the refusal of an attempt for which no endpoint was picked.
    #[cold]
    pub(super) fn refusal(&self) -> Refused {
        if self.set.any(|_| true) { TIER_DOWN } else { EMPTY }
    }

    /// Picks an endpoint that may be ready before `first`, and that the call has not tried either.
    //
    #[cold]
    pub(super) fn pick_rival(&self, first: &frame::Pick, arrival: &Arrival<'_>) -> Option<Picked<T>> {
        let mut trail = Frame::trail().unwrap_or_default();
        trail.push(first.id);
        if Frame::is_hidden()
            && let Some(tier) = first.tier
        {
            // The request's key may already be known as that tier's.
            trail.stay_in(tier.id);
        }
        let mut rival = self.pick_after(&trail, arrival)?;
        (rival.pick.elsewhere, rival.pick.stays) = (true, first.stays);
        (!trail.contains(rival.pick.id)).then_some(rival)
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

/// The endpoint of an attempt, with what the outer retry layer gets to know.
pub(super) struct Picked<T> {
    pub(super) ticket: EndpointTicket<T>,
    pub(super) pick: frame::Pick,
}

impl<T> Picked<T> {
    /// Records the pick for the outer retry layer.
    #[inline]
    fn record(self) -> EndpointTicket<T> {
        Frame::picked(self.pick);
        self.ticket
    }
}

/// The refusal of an attempt that must stay in a tier of which no endpoint is in service.
const TIER_DOWN: Refused = Refused::new(GuardKind::ENDPOINTS, Reason::TierDown);

/// The refusal of an attempt if there is no endpoint.
pub(super) const EMPTY: Refused = Refused::new(GuardKind::ENDPOINTS, Reason::Empty);

impl<T: Send + Sync + 'static> Guard for EndpointGuard<T> {
    type Ticket = EndpointTicket<T>;

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<EndpointTicket<T>> {
        self.pick(arrival, || None).map_or_else(|| Admit::Refused(self.refusal()), |it| Admit::Admitted(it.record()))
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
