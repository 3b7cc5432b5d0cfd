//! The bulkhead: a limit on calls in flight for each destination.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Refused, Resume};
use reattempt_core::{ConfigError, Warning};

use super::line::Patience;
use super::places::{Pass, Places, Rule, Usage};
use crate::destination_table::{DEFAULT_DESTINATIONS, Entry, checked_destinations};
use crate::keyed::{Hold, Keyed};

/// A limit on calls in flight for each destination.
///
/// # What goes wrong without it, and with it
///
/// *Without a bulkhead*, one slow server collects all calls of a client. Each holds its task, memory and connection
/// until it times out, and none are left for calls to healthy servers.
///
/// *A place that is freed at the response head* does not limit bodies, which hold the connection. *A place that is
/// freed by code after the call* leaks if the call is dropped. *A place that is given to a waiting call while that call
/// is dropped* is lost. Here a place is held until the body ends or is dropped, and a dropped call passes its place on.
///
/// # Rules
///
/// - At most [`limit`](Self::new) calls are in flight. A further call is refused at once, without a known wait.
/// - With a [`queue`](Self::queue), calls wait in the order in which they came, up to its bounds and their deadlines.
///   A released place goes to the first call in line in the same step, so no newcomer overtakes it.
/// - The place is held until the response body ends. [`release_at_head`](Self::release_at_head) frees it at the head.
/// - A limit of 0 admits nothing, and nothing waits for it.
/// - A place that is given to a waiting call is its own until the call gives up. If the call is not polled by then, the
///   place goes on.
/// - If the [table](Self::max_destinations) is full, a destination without a call in flight leaves for a newcomer, and
///   nothing is lost. If each that is looked at has one, calls to the newcomer are admitted without a limit.
/// - A body that is not read holds its place. [`usage`](Self::usage) has the number of bodies that have not ended and
///   the age of the oldest.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::Bulkhead;
/// # use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Guard, Health};
///
/// let bulkhead = Bulkhead::new(1);
/// let now = Duration::from_secs(100);
/// let arrival = Arrival::new("a.example", now);
/// let Admit::Admitted(ticket) = bulkhead.admit(&arrival) else { unreachable!() };
/// let held = bulkhead.end(ticket, &End::judged(Health::Served, Duration::ZERO), now);
/// assert!(matches!(bulkhead.admit(&arrival), Admit::Refused(_)), "the body is not over");
/// held.map(|ticket| bulkhead.end(ticket, &End::Over(BodyEnd::Complete), now));
/// assert!(matches!(bulkhead.admit(&arrival), Admit::Admitted(_)));
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new bulkhead"]
pub struct Bulkhead {
    rules: Arc<ArcSwap<Rules>>,
    places: Arc<Keyed<Places>>,
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    rule: Rule,
    max_destinations: Option<usize>,
}

/// The proof that a bulkhead admitted a call or has it in line.
pub struct BulkheadTicket {
    places: Hold<Places>,
    pass: Pass,
}

/// A setter returns a new bulkhead, whose state is its own.
impl Bulkhead {
    /// Creates a bulkhead of this many places, in which no call waits.
    pub fn new(limit: u32) -> Self {
        let kind = GuardKind::Bulkhead;
        let rule = Rule { limit, patience: Patience::NONE, hold: true, kind };
        Self::build(Rules { rule, max_destinations: Some(DEFAULT_DESTINATIONS) })
    }

    /// Sets how many calls may wait for one destination, and for how long. Default: none, because before a slow
    /// server a line only delays the refusal.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        self.set(|rules| rules.rule.patience = Patience { calls, time })
    }

    /// Frees the place at the response head. Default: at the end of the body.
    ///
    /// The head of a gRPC response does not end its call, so such a place is held until the trailers.
    pub fn release_at_head(self) -> Self {
        self.set(|rules| rules.rule.hold = false)
    }

    /// Sets the most destinations with places of their own. Default: 1024, which take 0.5 MB.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 1 to 65536.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        let most = checked_destinations(most)?;
        Ok(self.set(|rules| rules.max_destinations = Some(most)))
    }

    /// Keeps one set of places for all destinations. Use it for a bound on the whole client.
    pub fn shared(self) -> Self {
        self.set(|rules| rules.max_destinations = None)
    }

    /// Returns the use of the places for `destination` at `now`.
    pub fn usage(&self, destination: &str, now: Duration) -> Usage {
        match self.places.get(destination) {
            Some(places) => places.usage(now),
            None => Places::new(&self.rules.load().rule).usage(now),
        }
    }

    /// Adopts the settings of another bulkhead, except `max_destinations`, and keeps the state.
    ///
    /// Calls beyond a lower limit finish; a higher one admits calls that wait.
    pub fn replace_settings(&self, with: &Self) {
        let max_destinations = self.rules.load().max_destinations;
        let rules = Arc::new(Rules { max_destinations, ..**with.rules.load() });
        let replace = || self.rules.store(Arc::clone(&rules));
        self.places.adopt(replace, |places| {
            places.adopt(&rules.rule);
            places.set_limit(rules.rule.limit);
        });
        // Outside the table's lock, because calls that wait are woken.
        self.places.all().iter().for_each(|places| places.fill());
    }

    /// Returns a warning if no call can pass: a limit of 0.
    pub fn validate(&self) -> Vec<Warning> {
        let limit = self.rules.load().rule.limit;
        let none = (limit == 0).then(|| Warning::new("limit", limit, "at least 1, usually 64"));
        none.into_iter().collect()
    }

    fn set(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = **self.rules.load();
        change(&mut rules);
        Self::build(rules)
    }

    fn build(rules: Rules) -> Self {
        let places = Keyed::new(rules.max_destinations, Places::new(&rules.rule));
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)), places: Arc::new(places) }
    }
}

/// 64 places: at 100 ms for each call, they admit 640 calls a second.
impl Default for Bulkhead {
    fn default() -> Self {
        Self::new(64)
    }
}

impl Entry for Places {
    /// Nothing is lost with places that no call holds.
    fn retire(&self, _: Duration, _: bool, _: &dyn Fn() -> bool) -> bool {
        self.retire()
    }
}

impl Guard for Bulkhead {
    type Ticket = BulkheadTicket;

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<BulkheadTicket> {
        let create = |_: &Arc<str>| Places::new(&self.rules.load().rule);
        let admitted = self.places.with(arrival.destination, arrival.now, create, |places| {
            let admitted = places.admit(arrival)?;
            Some(admitted.map(|pass| BulkheadTicket { places: places.hold(), pass }))
        });
        admitted.unwrap_or_else(|| {
            let pass = Pass::Held { in_flight: 0 };
            Admit::Admitted(BulkheadTicket { places: Hold::Nothing, pass })
        })
    }

    #[inline(always)]
    fn end(&self, ticket: BulkheadTicket, end: &End, now: Duration) -> Option<BulkheadTicket> {
        let pass = self.places.held(&ticket.places)?.end(ticket.pass, end, now)?;
        Some(BulkheadTicket { pass, ..ticket })
    }

    /// The moment of the head is noted if the place is held past it.
    #[inline]
    fn times_success(&self, ticket: &BulkheadTicket) -> bool {
        self.places.held(&ticket.places).is_some_and(Places::holds)
    }

    fn resume(&self, ticket: &mut BulkheadTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let Some(places) = self.places.held(&ticket.places) else { return Resume::Admitted };
        places.resume(&mut ticket.pass, arrival, waker)
    }

    /// The place is kept.
    fn renew(&self, ticket: BulkheadTicket, _: &Arrival<'_>) -> Result<BulkheadTicket, Refused> {
        Ok(ticket)
    }

    fn check(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        match self.places.get(arrival.destination) {
            Some(places) => places.check(arrival),
            None => Places::new(&self.rules.load().rule).check(arrival),
        }
    }

    fn validate(&self) -> Vec<Warning> {
        Self::validate(self)
    }
}

/// The settings, and the destinations with calls in flight. Ages of bodies are in [`Bulkhead::usage`].
impl fmt::Debug for Bulkhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.load();
        let (in_use, more) = self.places.listed(Places::in_use);
        f.debug_struct("Bulkhead")
            .field("limit", &rules.rule.limit)
            .field("queue", &rules.rule.patience)
            .field("hold", &rules.rule.hold)
            .field("destinations", &self.places.len())
            .field("in_use", &in_use)
            .field("more", &more)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BulkheadTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkheadTicket").field("pass", &self.pass).finish_non_exhaustive()
    }
}
