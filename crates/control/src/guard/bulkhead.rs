//! The bulkhead: a limit on calls in flight per destination.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::Warning;
use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Refused, Resume};
use reattempt_core::snapshot::Part;

use super::guard_type::guard;
use super::inspect;
use super::per_destination::{PerDestination, State};
use super::places::{PlaceNote, Places, PlacesSettings, Usage};
use super::usual_latency::UsualLatency;
use super::wait_queue::Patience;
use crate::destination_table::Entry;

/// A limit on calls in flight per destination.
///
/// # Failures that it prevents
///
/// *Without a bulkhead*, one slow server ties up all of a client's calls. Each call holds its task, memory and
/// connection until it times out, so nothing is left for healthy servers.
///
/// *A place freed at the response head* does not limit bodies, which hold the connection. *A place freed by code after
/// the call* leaks if the call is dropped. *A place passed to a waiting call while that call is being dropped* is lost.
/// Here a place is held until the body ends or is dropped, and a dropped call passes on its place.
///
/// # Rules
///
/// - At most [`limit`](Self::new) calls are in flight. Further calls are refused immediately, without an estimated
///   wait.
/// - With a [`queue`](Self::queue), calls wait in order of arrival, within the bounds of the queue and their own
///   deadlines. A released place is passed to the first waiting call in the same step, so later calls cannot overtake
///   it.
/// - The place is held until the response body ends. [`release_at_head`](Self::release_at_head) frees it at the head.
/// - A limit of 0 admits nothing, and no calls are queued.
/// - A place passed to a waiting call stays reserved until the call's maximum wait has passed. If the call has not been
///   polled by then, the place goes to the next call.
/// - If the [table](Self::max_destinations) is full, a new destination replaces one without a call in flight, so
///   nothing is lost. If every candidate has a call in flight, calls to the new destination are admitted without a
///   limit.
/// - An unread body holds its place. [`usage_at`](Self::usage_at) returns the number of unfinished bodies and the age
///   of the oldest.
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
/// let held = bulkhead.end_ticket(ticket, &End::judged(Health::Served, Duration::ZERO), now);
/// assert!(matches!(bulkhead.admit(&arrival), Admit::Refused(_)), "the body is not over");
/// held.map(|ticket| bulkhead.end_ticket(ticket, &End::Over(BodyEnd::Complete), now));
/// assert!(matches!(bulkhead.admit(&arrival), Admit::Admitted(_)));
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new bulkhead"]
pub struct Bulkhead(PerDestination<Places>);

guard! {
    Bulkhead, BulkheadTicket, Places,
    kind: "bulkhead",
    memory: "0.5 MB",
    replaced: "Calls beyond a lower limit finish; a higher one admits calls that wait.",
}

/// Each setter returns a new bulkhead with its own state.
impl Bulkhead {
    /// Creates a bulkhead with `limit` places and no queue.
    pub fn new(limit: u32) -> Self {
        let kind = GuardKind::BULKHEAD;
        Self(PerDestination::new(PlacesSettings { limit, patience: Patience::NONE, hold: true, kind }))
    }

    /// Sets how many calls may wait per destination, and for how long. By default, no calls wait, because a queue in
    /// front of a slow server only delays the refusal.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        Self(self.0.changed(|settings| settings.patience = Patience { calls, time }))
    }

    /// If `on`, frees the place when the response head arrives. By default, it is held until the end of the body.
    ///
    /// The head of a gRPC response does not end its call, so its place is always held until the trailers.
    pub fn release_at_head(self, on: bool) -> Self {
        Self(self.0.changed(|settings| settings.hold = !on))
    }

    /// Returns counts of the calls to `destination` that hold a place at `now` or wait for one.
    pub fn usage_at(&self, destination: &str, now: Duration) -> Usage {
        self.0.read(destination, |places| places.usage(now))
    }
}

/// The default has 64 places, which admit 640 calls per second at 100 ms per call.
impl Default for Bulkhead {
    fn default() -> Self {
        Self::new(64)
    }
}

impl Entry for Places {
    /// Retires the entry if all its places are free. Nothing is lost.
    fn retire(&self, _: Duration, _: bool, _: &dyn Fn() -> bool) -> bool {
        self.retire()
    }
}

impl State for Places {
    type Settings = PlacesSettings;
    type Note = PlaceNote;
    type Shown = Usage;

    const UNCOUNTED: PlaceNote = PlaceNote::Held { in_flight: 0 };
    const LISTED: &'static str = "in_use";

    fn new(settings: &PlacesSettings, _: &Arc<str>) -> Self {
        Self::new(settings)
    }

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<PlaceNote>> {
        self.admit(arrival)
    }

    #[inline(always)]
    fn record_end(&self, note: &PlaceNote, end: &End, now: Duration) -> Option<PlaceNote> {
        self.end_call(*note, end, now)
    }

    /// `None`, because it depends on the settings: a served call's end needs the time only if its place is held past
    /// the response head.
    const TIMES_SUCCESS: Option<bool> = None;

    #[inline(always)]
    fn times_success(&self, _: &PlaceNote) -> bool {
        self.holds()
    }

    fn latency(&self) -> Option<&UsualLatency> {
        Some(&self.latency)
    }

    fn resume(&self, note: &mut PlaceNote, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        self.resume(note, arrival, waker)
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.would_admit(arrival)
    }

    fn adopt(&self, settings: &PlacesSettings) {
        self.adopt(settings);
        self.set_limit(settings.limit);
    }

    fn wake_waiting(&self) {
        self.fill();
    }

    fn validate(settings: &PlacesSettings) -> Vec<Warning> {
        let limit = settings.limit;
        let none = (limit == 0).then(|| Warning::new("limit", limit, "at least 1, usually 64"));
        none.into_iter().collect()
    }

    fn show_settings(settings: &PlacesSettings, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("limit", &settings.limit).field("queue", &settings.patience).field("hold", &settings.hold);
    }

    /// Shows a destination that has calls in flight. The ages of bodies are in [`Bulkhead::usage_at`].
    fn shown(&self) -> Option<Usage> {
        self.in_use()
    }

    fn inspect_settings(settings: &PlacesSettings, part: Part) -> Part {
        inspect::queue(settings.patience, part.field("limit", settings.limit))
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        inspect::usage(self.usage(now), part)
    }
}
