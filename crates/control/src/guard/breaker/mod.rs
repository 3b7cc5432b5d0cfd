//! The circuit breaker: calls to a failing server are refused for a while, until a few probes succeed.
//!
//! | file | its part |
//! |---|---|
//! | `machine` | the states and their changes, over plain values |
//! | `counts` | the counts and their window |
//! | `rules` | the settings as the machine reads them |
//! | `circuit` | one destination's machine, shared by threads |
//! | `tally` | the calls to a healthy server, counted without the lock |
//! | `changes` | callbacks, in order and without a lock |
//! | `settings` | the setters |

mod changes;
mod circuit;
mod counts;
#[cfg(test)]
mod exploration;
mod machine;
mod rules;
mod settings;
mod tally;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Refused};
use reattempt_core::{ServerHint, Warning};

use crate::destination_table::Entry;
use crate::keyed::{Found, Hold, Keyed};
use changes::Changes;
use circuit::Circuit;
use machine::{Ending, Machine};
use rules::{Rules, Trip};
use tally::{NO_TAG, Pass};

pub use changes::{BreakerState, StateChange};
pub use counts::Counts;
use counts::Outcome;

/// A circuit breaker for each destination.
///
/// *Closed*, it admits every call and counts failures. Too many of them *open* it, and it refuses every call. When the
/// open time is over, at its exact end already, it is *half-open* and admits a few calls, the *probes*. If they succeed
/// it closes; if one fails it opens again.
///
/// # What goes wrong without it, and with it
///
/// *Without a breaker*, calls to a server that is down wait for their timeouts and hold connections and memory. The
/// server must start again under their load.
///
/// *A ratio without a minimum of calls* opens after one failure of one call. *A count without a window* needs a million
/// failures after a million successes. *A half-open state without a limit* sends all waiting calls at once. *A probe
/// that never ends* keeps a breaker half-open for ever; here the probe's place is free again after 30 s, or after the
/// [attempt timeout](Arrival::timeout) if that is longer. *A probe that is too slow for its place* counts all the same,
/// or a slow server would never be let in again.
///
/// *A breaker for each request or client* never opens. Build one and clone it: clones share their state.
///
/// # The two trip rules
///
/// | | [`rate`](Self::rate), the default | [`counting`](Self::counting), as sony/gobreaker v2 |
/// |---|---|---|
/// | opens | at 50 % failures of at least 20 calls within 60 s, or after 20 consecutive failures | after more than 5 consecutive failures |
/// | window | 10 buckets of 6 s, which slide | since the breaker was closed |
/// | stays open | 10 s ± 10 % | 60 s |
/// | probes | 1 | 1 |
/// | 429, RESOURCE_EXHAUSTED | failures that do not count as consecutive | failures |
///
/// The reasons for the rate rule: at 30 % failures retries still help, and the breaker stays closed. A server that is
/// down opens it after twenty calls, even behind a minute of successes. The varied open time spreads the clients that
/// return.
///
/// # Rules
///
/// - A result does not count if the state has changed since its call was admitted.
/// - An abandoned call does not count, because callers hang up for reasons of their own. A call that is dropped at its
///   deadline is judged as a timeout by the layer.
/// - A failed probe opens the breaker again, unless [`probe_failure_ratio`](Self::probe_failure_ratio) allows more. A
///   probe that is abandoned, excluded or unsent frees its place. So does one whose callback or predicate panics.
/// - A run of consecutive failures goes on from one window to the next.
/// - If the server asks for a longer delay with the failure that opens the breaker, the open time is that delay, up
///   to [`max_timeout`](Self::max_timeout), and under the rate rule up to 30 s in any case.
/// - Time does not go back: an earlier moment counts as the latest one seen.
/// - At most [`max_destinations`](Self::max_destinations) have a breaker of their own. If the table is full, a breaker
///   without a call in flight leaves for a newcomer: one that is closed and has an empty window first, otherwise the
///   one that was used least recently. Its state is lost, and an open one is reported as closed. One that is
///   [isolated](Self::isolate) stays. If none may leave, calls to the newcomer are admitted without a breaker.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::{BreakerState, CircuitBreaker};
/// # use reattempt_core::guard::{Admit, Arrival, End, Guard, Health};
///
/// let breaker = CircuitBreaker::rate();
/// let now = Duration::from_secs(100);
/// for _ in 0..20 {
///     if let Admit::Admitted(ticket) = breaker.admit(&Arrival::new("a.example", now)) {
///         breaker.end(ticket, &End::judged(Health::Failed, Duration::ZERO), now);
///     }
/// }
/// assert_eq!(breaker.state("a.example", now), BreakerState::Open);
/// assert_eq!(breaker.state("b.example", now), BreakerState::Closed);
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new breaker"]
pub struct CircuitBreaker {
    shared: Arc<Shared>,
    circuits: Arc<Keyed<Tenant>>,
}

/// The parts of a breaker that all its destinations share.
struct Shared {
    rules: ArcSwap<Rules>,
    changes: Changes,
}

/// A destination's circuit in the table.
struct Tenant {
    circuit: Circuit,
    shared: Arc<Shared>,
}

/// The proof that a breaker admitted a call.
pub struct BreakerTicket {
    tenant: Hold<Tenant>,
    pass: Pass,
}

impl CircuitBreaker {
    fn build(rules: Rules) -> Self {
        let most = rules.max_destinations;
        let rules = Arc::new(rules);
        let circuit = Circuit::new("".into(), Arc::clone(&rules));
        let shared = Arc::new(Shared { rules: ArcSwap::new(rules), changes: Changes::default() });
        let others = Tenant { circuit, shared: Arc::clone(&shared) };
        Self { shared, circuits: Arc::new(Keyed::new(most, others)) }
    }

    /// Returns the name, which state changes carry.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.shared.rules.load().name)
    }

    /// Returns the time over which the closed state counts; zero if its counts are never cleared.
    pub fn window(&self) -> Duration {
        self.shared.rules.load().interval
    }

    /// Returns the state for `destination` at `now`.
    pub fn state(&self, destination: &str, now: Duration) -> BreakerState {
        let state = self.circuits.get(destination).map(|tenant| {
            tenant.step(|rules, machine| {
                machine.advance(rules, now);
                machine.state
            })
        });
        self.shared.notify();
        state.unwrap_or_default()
    }

    /// Returns the counts for `destination`, as the last call left them.
    pub fn counts(&self, destination: &str) -> Counts {
        let tenant = self.circuits.get(destination);
        tenant.map(|tenant| tenant.step(|_, machine| *machine.window.counts())).unwrap_or_default()
    }

    /// Refuses all calls to `destination` until [`close`](Self::close).
    pub fn isolate(&self, destination: &str, now: Duration) {
        self.force(destination, BreakerState::ForcedOpen, now);
    }

    /// Closes the breaker for `destination`, and clears its counts. The results of calls under way do not count.
    pub fn close(&self, destination: &str, now: Duration) {
        self.force(destination, BreakerState::Closed, now);
    }

    /// Adopts the settings of another breaker, except `max_destinations`, and keeps the state.
    ///
    /// Open times that have begun keep their end. Counts are cleared if the window has other buckets.
    pub fn replace_settings(&self, with: &Self) {
        // Kept to the end: the destructors of closures are the user's.
        let former = self.shared.rules.load_full();
        let rules = Rules::clone(&with.shared.rules.load());
        let rules = Arc::new(Rules { max_destinations: former.max_destinations, ..rules });
        let replace = || self.shared.rules.store(Arc::clone(&rules));
        self.circuits.adopt(replace, |tenant| drop(tenant.circuit.adopt(Arc::clone(&rules))));
    }

    fn force(&self, destination: &str, state: BreakerState, now: Duration) {
        let force = |tenant: &Found<'_, Tenant>| {
            tenant
                .step(|rules, machine| (!machine.retired).then(|| machine.force(rules, state, now)))
        };
        self.circuits.set(destination, now, self.create(), force);
        self.shared.notify();
    }

    fn create(&self) -> impl Fn(&Arc<str>) -> Tenant {
        |name| Tenant {
            circuit: Circuit::new(Arc::clone(name), self.shared.rules.load_full()),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl CircuitBreaker {
    /// Slow path of [`admit`](Guard::admit): every case that an entry at hand does not cover.
    #[inline(never)]
    fn decide(
        &self,
        destination: &str,
        now: Duration,
        timeout: Option<Duration>,
    ) -> Admit<BreakerTicket> {
        let admitted = self.circuits.with(destination, now, self.create(), |tenant| {
            let pass = tenant.circuit.admit(&self.shared.changes, now, timeout)?;
            Some(pass.map(|pass| BreakerTicket { tenant: tenant.hold(), pass }))
        });
        match admitted {
            Some(Ok(ticket)) => {
                self.ask(&ticket, Outcome::Unsent, now, || self.shared.notify());
                Admit::Admitted(ticket)
            }
            Some(Err(refused)) => {
                self.shared.notify();
                Admit::Refused(refused)
            }
            None => {
                let pass = Pass { generation: 0, age: 0, probe: 0, tag: 0 };
                Admit::Admitted(BreakerTicket { tenant: Hold::Nothing, pass })
            }
        }
    }

    /// Calls functions of the user's. If one of them panics, the call ends with that outcome, which frees a probe's
    /// place.
    fn ask<R>(
        &self,
        ticket: &BreakerTicket,
        outcome: Outcome,
        now: Duration,
        ask: impl FnOnce() -> R,
    ) -> R {
        let ending = Ending { outcome, asked: Duration::ZERO, now };
        let unwinding = Unwinding { breaker: self, ticket, ending };
        let answer = ask();
        mem::forget(unwinding);
        answer
    }

    /// Records the end of a call that the tally has not taken as a success.
    #[inline(never)]
    fn record(&self, ticket: &BreakerTicket, end: &End, now: Duration) {
        let rules = self.shared.rules.load_full();
        // A second panic would abort the process, so a call that unwinds asks no function of the user's.
        let outcome = match end {
            End::Judged { .. } if thread::panicking() => Outcome::Abandoned,
            _ => self.ask(ticket, Outcome::Abandoned, now, || rules.outcome(end)),
        };
        let asked = match end {
            End::Judged { hint, .. } => asked_delay(*hint),
            _ => Duration::ZERO,
        };
        let ready_to_trip = |counts: &Counts| match &rules.trip {
            Trip::Counts(ready_to_trip) => ready_to_trip(counts),
            Trip::Rate(_) => false,
        };
        let Some(tenant) = self.circuits.held(&ticket.tenant) else { return };
        tenant.circuit.end(
            &self.shared.changes,
            ticket.pass,
            Ending { outcome, asked, now },
            ready_to_trip,
        );
        self.shared.notify();
    }
}

/// The call of a ticket while functions of the user's run. It ends if one of them panics.
struct Unwinding<'a> {
    breaker: &'a CircuitBreaker,
    ticket: &'a BreakerTicket,
    ending: Ending,
}

impl Drop for Unwinding<'_> {
    #[cold]
    fn drop(&mut self) {
        let (breaker, ticket) = (self.breaker, self.ticket);
        let Some(tenant) = breaker.circuits.held(&ticket.tenant) else { return };
        // A change of the state is delivered by the next call, because the callback may be what panics.
        tenant.circuit.end(&breaker.shared.changes, ticket.pass, self.ending, |_| false);
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::rate()
    }
}

impl Shared {
    /// Delivers the changes that wait. While the thread unwinds they wait for the next call: a second panic would abort
    /// the process.
    #[inline]
    fn notify(&self) {
        if self.changes.any() && !thread::panicking() {
            self.deliver();
        }
    }

    #[cold]
    fn deliver(&self) {
        if let Some(callback) = &self.rules.load().on_state_change {
            self.changes.deliver(callback);
        }
    }
}

impl Tenant {
    fn step<R>(&self, step: impl FnOnce(&Rules, &mut Machine) -> R) -> R {
        self.circuit.with(&self.shared.changes, step)
    }
}

impl Entry for Tenant {
    /// The state is lost, unless the user has forced it.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.circuit.retire(&self.shared.changes, now, forgets, is_idle)
    }
}

impl Guard for CircuitBreaker {
    type Ticket = BreakerTicket;

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<BreakerTicket> {
        if let Some(tenant) = self.circuits.at_hand(arrival.destination) {
            if let Some(pass) = tenant.circuit.admit_closed(arrival.now) {
                return Admit::Admitted(BreakerTicket { tenant: tenant.hold(), pass });
            }
            if let Some(refused) = tenant.circuit.refusal(arrival.now) {
                return Admit::Refused(refused);
            }
        }
        self.decide(arrival.destination, arrival.now, arrival.timeout)
    }

    #[inline(always)]
    fn end(&self, ticket: BreakerTicket, end: &End, now: Duration) -> Option<BreakerTicket> {
        let served = matches!(end, End::Judged { health: Health::Served, .. });
        let succeeds = |tenant: &Tenant| tenant.circuit.succeed(&ticket.pass, now);
        if !(served && self.circuits.held(&ticket.tenant).is_some_and(succeeds)) {
            self.record(&ticket, end, now);
        }
        None
    }

    #[inline(always)]
    fn times_success(&self, ticket: &BreakerTicket) -> bool {
        let takes = |tenant: &Tenant| tenant.circuit.takes_success(&ticket.pass);
        !self.circuits.held(&ticket.tenant).is_some_and(takes)
    }

    fn is_probe(&self, ticket: &BreakerTicket) -> bool {
        ticket.pass.tag == NO_TAG
    }

    fn check(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let Some(tenant) = self.circuits.get(arrival.destination) else { return Ok(()) };
        let checked = tenant.circuit.check(&self.shared.changes, arrival.now);
        self.shared.notify();
        checked
    }

    fn validate(&self) -> Vec<Warning> {
        Self::validate(self)
    }
}

fn asked_delay(hint: ServerHint) -> Duration {
    match hint {
        ServerHint::After(delay) | ServerHint::AtLeast(delay) | ServerHint::Exactly(delay) => delay,
        _ => Duration::ZERO,
    }
}

impl fmt::Debug for BreakerTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerTicket")
            .field("generation", &self.pass.generation)
            .finish_non_exhaustive()
    }
}
