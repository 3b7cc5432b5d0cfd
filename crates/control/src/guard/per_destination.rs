//! The shell shared by all guards in this crate: settings, one state per destination, and tickets.
//!
//! A guard is one `impl State`: one destination's state, shared by threads. [`PerDestination`] looks up the state for a
//! call, and the macro in `guard_type` defines the guard's public type.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::Warning;
use reattempt_core::guard::{Admit, Arrival, End, Refused, Resume};
use reattempt_core::snapshot::Part;

use crate::destination_table::{DEFAULT_DESTINATIONS, Entry, clamped_destinations};
use crate::guard::usual_latency::UsualLatency;
use crate::keyed::{Found, Hold, Keyed, PastBound};

/// A destination's state, which decides whether to admit its calls.
#[expect(unused_variables, reason = "a default ignores its arguments")]
pub(crate) trait State: Entry + Send + Sync + Sized + 'static {
    type Settings: Clone + Send + Sync + 'static;

    /// The guard's data in a call's ticket.
    type Note: fmt::Debug + Copy + Send + Sync + 'static;

    /// The form in which `Debug` shows a state.
    type Shown: fmt::Debug;

    /// The note for a call admitted without a state.
    const UNCOUNTED: Self::Note;

    /// If `true`, destinations without an entry share a state. Otherwise their calls are admitted without one.
    const OTHERS_SHARE: bool = false;

    /// If `true`, a call that has waited for another guard gets a new decision. Otherwise the first decision remains
    /// valid.
    const DECIDES_AGAIN: bool = false;

    /// The field name under which `Debug` lists states.
    const LISTED: &'static str;

    /// Creates the state of a new destination.
    fn new(settings: &Self::Settings, destination: &Arc<str>) -> Self;

    /// Creates the state shared by destinations without an entry.
    fn for_others(settings: &Self::Settings) -> Self {
        Self::new(settings, &"".into())
    }

    /// Decides whether to admit a call, with a state that needs no lookup. If the decision needs a lock or much code,
    /// the state may delegate to `apart`, which uses [`admit`](Self::admit). Default: delegates only if the state was
    /// removed from the table.
    #[inline(always)]
    fn admit_at_hand<T>(
        &self,
        arrival: &Arrival<'_>,
        ticket: impl Fn(Self::Note) -> T,
        apart: impl FnOnce() -> Admit<T>,
    ) -> Admit<T> {
        match self.admit(arrival) {
            Some(admitted) => admitted.map(ticket),
            None => apart(),
        }
    }

    /// Decides whether to admit a call. Returns `None` if the state was removed from the table.
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<Self::Note>>;

    /// Records the end of a call. Returns a note if something is held until the response body ends.
    fn record_end(&self, note: &Self::Note, end: &End, now: Duration) -> Option<Self::Note>;

    /// `Some(false)` if the end of a served call needs no time. `None` if that depends on the state.
    const TIMES_SUCCESS: Option<bool> = Some(false);

    fn times_success(&self, note: &Self::Note) -> bool {
        true
    }

    /// Returns `true` if the call is a probe, sent only to find out if the server has recovered.
    fn is_probe(note: &Self::Note) -> bool {
        false
    }

    /// The usual latency of the destination's served calls, if the state measures it.
    fn latency(&self) -> Option<&UsualLatency> {
        None
    }

    /// Decides whether a waiting call may proceed.
    fn resume(&self, note: &mut Self::Note, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        Resume::Admitted
    }

    /// Returns the decision that `admit` would make, without reserving anything.
    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        Ok(())
    }

    /// Returns the settings of a guard that adopts another guard's.
    fn merged(own: &Self::Settings, other: &Self::Settings) -> Self::Settings {
        other.clone()
    }

    /// Adopts new settings. Called with the table's lock held.
    fn adopt(&self, settings: &Self::Settings);

    /// Wakes calls that may proceed earlier under new settings. Called without a lock.
    fn wake_waiting(&self) {}

    fn validate(settings: &Self::Settings) -> Vec<Warning> {
        Vec::new()
    }

    /// Adds the settings to the guard's `Debug` output.
    fn show_settings(settings: &Self::Settings, f: &mut fmt::DebugStruct<'_, '_>);

    /// Returns the entry for `Debug`, or `None` if the state is not worth listing.
    fn shown(&self) -> Option<Self::Shown>;

    /// Adds the settings in force to the guard's part of a snapshot.
    fn inspect_settings(settings: &Self::Settings, part: Part) -> Part;

    /// Adds the state at `now` to the destination's part of a snapshot. Called without a lock of the table.
    fn inspect(&self, now: Duration, part: Part) -> Part;
}

/// The states and settings of a guard. Clones share them.
pub(crate) struct PerDestination<S: State>(Arc<Shared<S>>);

struct Shared<S: State> {
    settings: ArcSwap<S::Settings>,
    states: Keyed<S>,
    /// `None` if all destinations share one state.
    max_destinations: Option<usize>,
}

/// The ticket of a call that a guard has admitted or queued.
pub(crate) struct Ticket<S: State> {
    state: Hold<S>,
    note: S::Note,
}

impl<S: State> PerDestination<S> {
    pub(crate) fn new(settings: S::Settings) -> Self {
        Self::bounded(settings, Some(DEFAULT_DESTINATIONS))
    }

    fn bounded(settings: S::Settings, max_destinations: Option<usize>) -> Self {
        let others = match max_destinations {
            Some(_) => S::for_others(&settings),
            None => S::new(&settings, &"".into()),
        };
        let states = Keyed::new(max_destinations, others);
        Self(Arc::new(Shared { settings: ArcSwap::from_pointee(settings), states, max_destinations }))
    }

    /// Returns the same guard with changed settings and its own state.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut S::Settings)) -> Self {
        let mut settings = S::Settings::clone(&self.settings());
        change(&mut settings);
        Self::bounded(settings, self.0.max_destinations)
    }

    pub(crate) fn max_destinations(&self, most: usize) -> Self {
        Self::bounded(S::Settings::clone(&self.settings()), Some(clamped_destinations(most)))
    }

    pub(crate) fn shared(&self, on: bool) -> Self {
        let most = self.0.max_destinations.unwrap_or(DEFAULT_DESTINATIONS);
        Self::bounded(S::Settings::clone(&self.settings()), (!on).then_some(most))
    }

    pub(crate) fn settings(&self) -> Arc<S::Settings> {
        self.0.settings.load_full()
    }

    pub(crate) fn replace_settings(&self, with: &Self) {
        // Dropped last, because destructors of settings may be user code.
        let former = self.settings();
        let settings = Arc::new(S::merged(&former, &with.settings()));
        let replace = || self.0.settings.store(Arc::clone(&settings));
        self.0.states.adopt(replace, |state| state.adopt(&settings));
        self.0.states.all().iter().for_each(|state| state.wake_waiting());
    }

    pub(crate) fn validate(&self) -> Vec<Warning> {
        S::validate(&self.settings())
    }

    /// Calls `act` with the state of `destination`. `act` returns `None` if the state was removed from the table.
    #[inline(always)]
    pub(crate) fn with<R>(
        &self,
        destination: &str,
        now: Duration,
        act: impl Fn(&Found<'_, S>) -> Option<R>,
    ) -> Option<R> {
        let past_bound = if S::OTHERS_SHARE { PastBound::Shared } else { PastBound::Nothing };
        self.0.states.with(destination, now, past_bound, self.create(), act)
    }

    /// Calls `act` with the state of `destination`, for a change by the user. There is always room for such a state.
    pub(crate) fn set<R>(&self, destination: &str, now: Duration, act: impl Fn(&S) -> Option<R>) -> Option<R> {
        let act = |state: &Found<'_, S>| act(state);
        self.0.states.with(destination, now, PastBound::Enters, self.create(), act)
    }

    /// Reads the state of `destination`, or a new state if there is none.
    pub(crate) fn read<R>(&self, destination: &str, read: impl FnOnce(&S) -> R) -> R {
        match self.0.states.get(destination) {
            Some(state) => read(&state),
            None => read(&S::new(&self.settings(), &destination.into())),
        }
    }

    fn create(&self) -> impl Fn(&Arc<str>) -> S {
        |destination| S::new(&self.0.settings.load(), destination)
    }

    #[inline(always)]
    pub(crate) fn admit<T>(&self, arrival: &Arrival<'_>, wrap: impl Fn(Ticket<S>) -> T) -> Admit<T> {
        let apart = || self.admit_apart(*arrival, &wrap);
        match self.0.states.at_hand(arrival.destination) {
            Some(state) => {
                let ticket = |note| wrap(Ticket { state: state.hold(), note });
                state.entry.admit_at_hand(arrival, ticket, apart)
            }
            None => apart(),
        }
    }

    // Cold, so that the fast path gets the registers. By value, because taking the arrival's address would force it
    // into memory on the fast path too.
    #[cold]
    #[inline(never)]
    fn admit_apart<T>(&self, arrival: Arrival<'_>, wrap: impl Fn(Ticket<S>) -> T) -> Admit<T> {
        let admitted = self.with(arrival.destination, arrival.now, |state| {
            let admitted = state.admit(&arrival)?;
            Some(admitted.map(|note| wrap(Ticket { state: state.hold(), note })))
        });
        admitted.unwrap_or_else(|| Admit::Admitted(wrap(Ticket { state: Hold::Nothing, note: S::UNCOUNTED })))
    }

    #[inline(always)]
    pub(crate) fn end_ticket(&self, ticket: Ticket<S>, end: &End, now: Duration) -> Option<Ticket<S>> {
        let note = self.0.states.held(&ticket.state)?.record_end(&ticket.note, end, now)?;
        Some(Ticket { note, ..ticket })
    }

    #[inline(always)]
    pub(crate) fn times_success(&self, ticket: &Ticket<S>) -> bool {
        let ask = || self.0.states.held(&ticket.state).map(|state| state.times_success(&ticket.note));
        S::TIMES_SUCCESS.or_else(ask).unwrap_or(true)
    }

    pub(crate) fn usual_latency(&self, ticket: &Ticket<S>) -> Option<Duration> {
        self.0.states.held(&ticket.state)?.latency()?.get()
    }

    pub(crate) fn record_latency(&self, ticket: &Ticket<S>, latency: Duration) {
        let state = self.0.states.held(&ticket.state);
        state.and_then(State::latency).into_iter().for_each(|usual| usual.record(latency));
    }

    pub(crate) fn resume(&self, ticket: &mut Ticket<S>, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let state = self.0.states.held(&ticket.state);
        state.map_or(Resume::Admitted, |state| state.resume(&mut ticket.note, arrival, waker))
    }

    /// Reconsiders a call that has waited for another guard.
    pub(crate) fn renew(&self, ticket: Ticket<S>, arrival: &Arrival<'_>) -> Result<Ticket<S>, Refused> {
        if !S::DECIDES_AGAIN {
            return Ok(ticket);
        }
        drop(self.end_ticket(ticket, &End::Unsent, arrival.now));
        match self.admit(&arrival.impatient(), |ticket| ticket) {
            Admit::Admitted(ticket) | Admit::Waiting(ticket) => Ok(ticket),
            Admit::Refused(refused) => Err(refused),
        }
    }

    pub(crate) fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.read(arrival.destination, |state| state.would_admit(arrival))
    }

    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct(name);
        S::show_settings(&self.settings(), &mut f);
        let (listed, more) = self.0.states.listed(S::shown);
        f.field("destinations", &self.0.states.len())
            .field(S::LISTED, &listed)
            .field("more", &more)
            .finish_non_exhaustive()
    }

    pub(crate) fn inspect(&self, kind: &'static str, now: Duration) -> Part {
        let part = S::inspect_settings(&self.settings(), Part::new(kind, ""));
        let is_full = |most| self.0.states.len() >= most;
        let shared = match self.0.max_destinations {
            None => Some("all_destinations"),
            Some(most) if S::OTHERS_SHARE && is_full(most) => Some("other_destinations"),
            Some(_) => None,
        };
        part.parts(self.0.states.inspect(shared, |state, part| state.inspect(now, part)))
    }
}

impl<S: State> Ticket<S> {
    pub(crate) fn is_probe(&self) -> bool {
        S::is_probe(&self.note)
    }

    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("note", &self.note).finish_non_exhaustive()
    }
}

impl<S: State> Clone for PerDestination<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
