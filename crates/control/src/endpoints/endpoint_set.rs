//! A set of endpoints, with the methods that pick an endpoint, record the end of an attempt and update the set.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::guard::{BodyEnd, End, Health};
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Random, Warning};

use super::ejection_rules::EjectionRules;
use super::ejections::{Effect, Ejections, Made, MemberRecord, SetRules, name_of, stamp};
use super::endpoint::{Decisive, Endpoint, Member};
use super::events::EndpointEvent;
use super::latency_word::time_of;
use super::place::Place;
use super::roster::{Picked, Roster};
use super::series::Drawn;
use super::subset::Subset;
use super::ticket::{Ended, EndpointTicket, Pick};
use super::trail::{EndpointId, Trail};
use super::view::EndpointView;
use crate::millionths::millionths;
use crate::sync::{Mutex, MutexGuard};

/// A set of equivalent endpoints. Each attempt is sent to one of them.
///
/// `T` is the value used to send to an endpoint, such as a client or a base URL. Methods take the current time,
/// measured from a fixed instant. This instant must be the same for all calls on a set.
///
/// ```
/// use std::time::Duration;
/// use reattempt_control::{EndpointSet, Trail};
/// use reattempt_core::guard::{End, Health};
/// # use reattempt_core::Random;
/// # struct Lowest;
/// # impl Random for Lowest { fn next_u64(&mut self) -> u64 { 0 } }
/// # let (now, mut random) = (Duration::ZERO, Lowest);
///
/// let set = EndpointSet::new();
/// set.update([(0, "eu.example"), (0, "us.example")], |name| format!("https://{name}"), now);
///
/// let mut trail = Trail::new();
/// let pick = set.pick(&trail, now, &mut random).expect("two endpoints");
/// assert!(pick.elsewhere, "the other one is left for a retry");
/// trail.push(pick.ticket.id());
/// let after = Duration::from_millis(2);
/// set.end_ticket(pick.ticket, &End::judged(Health::Unavailable, after), now + after, &mut random);
///
/// let retry = set.pick(&trail, now + after, &mut random).expect("two endpoints");
/// assert!(!trail.contains(retry.ticket.id()));
/// assert!(!retry.elsewhere);
/// ```
pub struct EndpointSet<T> {
    roster: ArcSwap<Roster<T>>,
    /// `true` if the roster has several tiers. It guards no other data, so `Relaxed` is enough.
    tiered: AtomicBool,
    ejections: Mutex<Ejections<T>>,
    ejects: bool,
    rules: SetRules,
    subset: Subset,
    /// The number of endpoints that the last update listed, for warnings.
    listed: AtomicUsize,
}

impl<T> EndpointSet<T> {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self {
            roster: ArcSwap::from_pointee(Roster::new(u64::MAX, Vec::new(), false)),
            tiered: AtomicBool::new(false),
            ejections: Mutex::new(Ejections::new()),
            ejects: true,
            rules: SetRules::default(),
            subset: Subset::All,
            listed: AtomicUsize::new(0),
        }
    }

    /// Turns ejections off. Failing endpoints stay in service, and only their latency, load and failure rate keep calls
    /// away from them. So do endpoints that accept no connection or have asked for a wait.
    #[must_use]
    pub fn without_ejections(self) -> Self {
        Self { ejects: false, ..self }
    }

    /// Sets the rules by which failing endpoints are ejected. They apply to endpoints that are added later.
    #[must_use]
    pub fn ejection_rules(mut self, rules: EjectionRules) -> Self {
        self.rules.ejection = rules;
        self
    }

    /// Uses at most `most` endpoints of each tier, for large sets.
    ///
    /// Each seed selects different endpoints, and an update replaces as few of them as possible (rendezvous hashing).
    /// Give each client its own seed.
    ///
    /// Random choices are uneven. If clients × `most` is less than 5 × the number of endpoints, some endpoints have no
    /// client: with 50 clients of 20 endpoints each, 37 % of 1,000. Then [give an index](Self::subset_of).
    #[must_use]
    pub fn subset(self, most: NonZeroUsize, seed: u64) -> Self {
        Self { subset: Subset::Seeded(most, seed), ..self }
    }

    /// Uses at most `most` endpoints of each tier, so that clients with the indices 0, 1, 2 and so on share
    /// all endpoints evenly: the numbers of clients of any two endpoints differ by at most one.
    ///
    /// All clients see the same ring of hashed names, and each uses its own section of it. If a tenth of the endpoints
    /// is replaced, a client replaces about a quarter of its endpoints, where [`subset`](Self::subset) replaces an
    /// eighth.
    #[must_use]
    pub fn subset_of(self, most: NonZeroUsize, index: u64) -> Self {
        Self { subset: Subset::Section(most, index), ..self }
    }

    /// Sends a share of the calls to the next tier, from 0 to 1. Other shares are limited to that range.
    ///
    /// The rest goes to the next tier as well, as far as a tier is out of service: a tier takes at most 1.4
    /// times its part in service, as Envoy's priorities do. So a tier with at least 72 % of its endpoints in
    /// service takes all that the share leaves it. By default, a tier takes all calls while half of it is in
    /// service.
    #[must_use]
    pub fn spill(mut self, share: f64) -> Self {
        self.rules.spill = Some(millionths(share, 0.0, 1.0));
        self
    }

    /// States that tiers share their state, as zones with one database do. A call with an idempotency key may then be
    /// sent to several tiers, as if the set had only one.
    #[must_use]
    pub fn tiers_share_state(mut self) -> Self {
        self.rules.share_state = true;
        self
    }

    /// Picks the endpoint for an attempt. `trail` lists the endpoints that the call has already tried. Returns `None`
    /// if the set is empty, or if the call must [stay](Trail::stay_in) in a tier of which no endpoint is in service.
    ///
    /// Two random untried endpoints of the first tier that has any in service are compared, and the one with the lower
    /// price is picked. The price is the endpoint's latency, raised by its attempts in flight and its failure rate. A
    /// call that has tried two endpoints of a tier goes to the next one. If the call has tried every endpoint in
    /// service, the one with the lowest price in the first tier is picked.
    ///
    /// If the weights in a tier differ, endpoints are drawn by their weights, and their attempts in flight are
    /// divided by them.
    ///
    /// After an outage of more than half of a tier, some of its endpoints may still be out of service. Their share of
    /// the calls then goes to the tier's reserve, or to the next tier.
    #[inline]
    pub fn pick<R: Random + ?Sized>(&self, trail: &Trail, now: Duration, random: &mut R) -> Option<Pick<T>> {
        let (at, mut events) = (millis(now), None);
        let mut roster = self.roster.load();
        if roster.until <= at {
            drop(roster);
            events = self.change(at, |_| {});
            roster = self.roster.load();
        }
        let Picked { member, elsewhere, tier } = roster.pick(trail, stamp(at), random)?;
        member.endpoint().on_pick();
        let ticket = EndpointTicket::new(Arc::clone(member.endpoint()));
        Some(Pick { ticket, elsewhere, tier, events })
    }

    /// Returns `true` if the set has several tiers.
    #[inline]
    pub fn is_tiered(&self) -> bool {
        self.tiered.load(Ordering::Relaxed)
    }

    /// Records the end of an attempt, as a guard's method of this name does.
    ///
    /// If the attempt was judged at its response head, the ticket is returned, to be held until the body ends. An
    /// attempt that the caller [abandoned](End::Abandoned) can only raise the latency recorded for its endpoint. A body
    /// that fails after a success counts as a lost connection. Any other end only decrements the number of attempts in
    /// flight, as does dropping the ticket.
    ///
    /// Failures of one cause count once: the first [lost](Health::Lost) attempt of an
    /// [event](reattempt_core::Evidence#events) counts as two failures, and the others are ignored. An endpoint that
    /// accepts [no connection](Health::NotConnected) is ejected at the first failure. One that is
    /// [unavailable](Health::Unavailable) and asks for a delay is ejected for that time.
    ///
    /// No lock is held while `random` is called, so its code may use this set.
    #[inline]
    pub fn end_ticket<R: Random + ?Sized>(
        &self,
        ticket: EndpointTicket<T>,
        end: &End,
        now: Duration,
        random: &mut R,
    ) -> Ended<T> {
        let (at, mut ticket, mut events) = (millis(now), ticket, None);
        let decisive = match (end, ticket.head) {
            (End::Judged { .. } | End::Abandoned { .. }, _) => ticket.endpoint.record(end, now, stamp(at)),
            (End::Over(BodyEnd::Broken), Some(head)) => {
                ticket.endpoint.broke(Duration::from_millis(head), now, stamp(at))
            }
            _ => None,
        };
        if let Some(failure) = decisive.filter(|_| self.ejects) {
            events = self.ejected(ticket.id(), &failure, at, random);
        }
        let End::Judged { health, .. } = end else { return Ended { held: None, events } };
        ticket.head = (*health == Health::Served).then_some(at);
        Ended { held: Some(ticket), events }
    }

    /// Returns the usual latency of the ticket's endpoint, or `None` if it is unknown.
    ///
    /// The recorded latency is a peak, so half of it is usual. An endpoint that has served nothing is measured by the
    /// slowest of the others, because all endpoints are equivalent.
    pub fn usual_latency(&self, ticket: &EndpointTicket<T>, now: Duration) -> Option<Duration> {
        let now = stamp(millis(now));
        let own = ticket.endpoint.latency.read(now) / 2;
        if own > 0 {
            return Some(time_of(own));
        }
        let ejections = self.lock();
        let others = ejections.records.iter().map(|record| record.member.endpoint().latency.read(now));
        others.max().filter(|slowest| *slowest > 0).map(time_of)
    }

    /// Ejects an endpoint after a failure, if it is in service.
    #[cold]
    fn ejected<R: Random + ?Sized>(
        &self,
        id: EndpointId,
        failure: &Decisive,
        at: u64,
        random: &mut R,
    ) -> Option<Box<[EndpointEvent]>> {
        let effect = self.lock().effect_of(id, failure, at);
        if effect == Effect::None {
            return None;
        }
        // The caller's generator is not called under the lock.
        let drawn = (effect == Effect::Ejects).then(|| Drawn(random.next_u64()));
        self.change(at, |ejections| ejections.eject(id, failure, at, drawn))
    }

    /// Replaces the set's endpoints with the named ones. Each name comes with its [`Place`], or with the number of its
    /// tier.
    ///
    /// An endpoint that stays keeps its state and its service, also if its place changes. A removed endpoint is no
    /// longer picked, but its attempts in flight continue. `make` creates the services for new names, without a lock.
    /// If it updates the same set, that update comes first. If a name is repeated, its first entry is used. Returns the
    /// events that the update caused, or `None` if there were none.
    pub fn update<P: Into<Place>, N: Into<Arc<str>>>(
        &self,
        endpoints: impl IntoIterator<Item = (P, N)>,
        mut make: impl FnMut(&str) -> T,
        now: Duration,
    ) -> Option<Box<[EndpointEvent]>> {
        self.replace(endpoints, |_| false, |name| Some(make(name)), now)
    }

    /// Works like [`update`](Self::update), but also replaces each known endpoint for which `is_new` returns `true`. A
    /// name for which `make` returns no service is skipped.
    pub fn replace<P: Into<Place>, N: Into<Arc<str>>>(
        &self,
        endpoints: impl IntoIterator<Item = (P, N)>,
        is_new: impl Fn(&str) -> bool,
        mut make: impl FnMut(&str) -> Option<T>,
        now: Duration,
    ) -> Option<Box<[EndpointEvent]>> {
        let wanted = self.chosen(endpoints.into_iter().map(|(place, name)| (place.into(), name.into())));
        let replaced: HashSet<_> = wanted.iter().map(|(_, name)| name).filter(|name| is_new(name)).collect();
        let at = millis(now);
        // `None` is the name of a service that was not made.
        let mut made: Made<'_, T> = HashMap::new();
        let mut events = Vec::new();
        loop {
            let known: HashSet<_> = self.lock().records.iter().map(name_of).collect();
            // No lock is held, because `make` may use this set.
            for (place, name) in &wanted {
                if (!known.contains(name) || replaced.contains(name)) && !made.contains_key(name) {
                    let record = |service| {
                        let endpoint = Endpoint::new(Arc::clone(name), self.rules.ejection.limits, service);
                        MemberRecord::new(*place, &self.rules.ejection, Member::new(endpoint))
                    };
                    made.insert(name, make(name).map(record));
                }
            }
            let (mut gone, mut is_done) = (Vec::new(), false);
            let changed = self.change(at, |ejections| {
                let known: HashSet<_> = ejections.records.iter().map(name_of).collect();
                // Otherwise, another update has removed an endpoint in the meantime.
                is_done = wanted.iter().all(|(_, name)| known.contains(name) || made.contains_key(name));
                if is_done {
                    gone = ejections.replace(&wanted, &replaced, &mut made);
                }
            });
            events.extend(changed.into_iter().flatten());
            if is_done {
                // Services are dropped without holding the lock used by `pick` and `end_ticket`.
                drop((gone, made));
                return (!events.is_empty()).then(|| events.into());
            }
        }
    }

    /// Returns the endpoints to use, without repeated names, sorted by tier.
    fn chosen(&self, endpoints: impl Iterator<Item = (Place, Arc<str>)>) -> Vec<(Place, Arc<str>)> {
        let mut seen = HashSet::new();
        let mut chosen: Vec<_> = endpoints.filter(|(_, name)| seen.insert(Arc::clone(name))).collect();
        chosen.sort_by_key(|(place, _)| place.part());
        self.listed.store(chosen.len(), Ordering::Relaxed);
        let parts = chosen.chunk_by(|one, next| one.0.part() == next.0.part());
        parts.flat_map(|part| self.subset.of(part)).collect()
    }

    /// Changes the ejections, and replaces the endpoints in service.
    #[cold]
    pub(super) fn change(&self, at: u64, change: impl FnOnce(&mut Ejections<T>)) -> Option<Box<[EndpointEvent]>> {
        let mut events = Vec::new();
        let mut ejections = self.lock();
        ejections.expire(at);
        change(&mut ejections);
        let roster = ejections.update_roster(at, self.rules, &mut events);
        self.tiered.store(roster.is_tiered(), Ordering::Relaxed);
        let old = self.roster.swap(Arc::new(roster));
        drop(ejections);
        drop(old);
        (!events.is_empty()).then(|| events.into())
    }

    /// Returns the state of each endpoint, by tier.
    pub fn view(&self, now: Duration) -> Vec<EndpointView> {
        self.views(Some(millis(now)))
    }

    fn views(&self, now: Option<u64>) -> Vec<EndpointView> {
        self.lock().records.iter().map(|record| EndpointView::of(record, now)).collect()
    }

    /// Returns `true` if `test` returns `true` for the service of any endpoint, in service or not. The set is locked
    /// meanwhile.
    pub fn any(&self, test: impl Fn(&T) -> bool) -> bool {
        self.lock().records.iter().any(|record| test(&record.member.endpoint().service))
    }

    /// Returns the number of attempts sent to endpoints that have since left the set.
    pub fn picks_of_gone(&self) -> u64 {
        self.lock().picks_of_gone
    }

    /// Returns a warning if the set is so large that a client should use a [subset](Self::subset), or if that
    /// subset may leave endpoints without a client.
    pub fn validate(&self) -> Vec<Warning> {
        self.subset.validate(self.listed.load(Ordering::Relaxed)).into_iter().collect()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Ejections<T>> {
        self.ejections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts a time to whole milliseconds.
#[inline]
pub(super) fn millis(now: Duration) -> u64 {
    now.as_secs().saturating_mul(1000).saturating_add(now.subsec_millis().into())
}

impl<T> Default for EndpointSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows each endpoint as of its last attempt.
impl<T> fmt::Debug for EndpointSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.views(None)).finish()
    }
}

/// Shows the number of endpoints in and out of service, and each of them. The set is locked while its endpoints are
/// read, as for a [`view`](Self::view).
impl<T> Inspect for EndpointSet<T> {
    fn inspect(&self, now: Duration) -> Part {
        let views = self.view(now);
        let out = views.iter().filter(|view| view.out.is_some()).count();
        let largest = |tier: usize| views.iter().filter(|view| view.tier == tier).map(|view| view.weight).max();
        let endpoints = views.iter().map(|view| view.inspect(largest(view.tier).unwrap_or(1)));
        Part::new("endpoints", "").field("in_service", views.len() - out).field("out", out).parts(endpoints)
    }
}
