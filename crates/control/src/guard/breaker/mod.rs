//! The circuit breaker, which refuses calls to a failing server until a few probes succeed.
//!
//! | file | content |
//! |---|---|
//! | `machine` | the states and their transitions, over plain values |
//! | `counts` | the counts and their window |
//! | `failing` | the time for which calls have failed, and the events among the failures |
//! | `rules` | the settings as the machine reads them |
//! | `circuit` | a destination's machine, shared by threads |
//! | `tally` | the calls to a healthy server, counted without the lock |
//! | `changes` | callbacks, called in order and without a lock |
//! | `settings` | the setters |
//! | `inspect` | what a snapshot shows |

// structure(file-length): one public type, most of it docs.

mod changes;
mod circuit;
mod counts;
#[cfg(test)]
mod exploration;
mod failing;
mod inspect;
mod machine;
mod rules;
mod settings;
mod tally;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, Health, Refused, Resume};
use reattempt_core::snapshot::Part;
use reattempt_core::{Recommended, ServerHint, Warning, user_code};

use super::guard_type::guard;
use super::per_destination::{PerDestination, State};
use super::usual_latency::UsualLatency;
use crate::destination_table::Entry;
use circuit::Circuit;
use machine::{Ending, Machine};
use rules::{Rate, Rules, Trip};
use settings::{FIRST_OPEN_TIME, MIN_CALLS, ratio_of};
use tally::{BreakerNote, NO_TAG};

pub use changes::{BreakerState, StateChange};
pub use counts::Counts;
use counts::Outcome;

/// A circuit breaker per destination.
///
/// While *closed*, the breaker admits every call and counts failures. Too many failures *open* it, and it refuses every
/// call. At the end of the open time, it becomes *half-open* and admits a few calls, the *probes*. If they succeed, the
/// breaker closes; if one fails, it opens again.
///
/// # Failures that it prevents
///
/// *Without a breaker*, calls to a server that is down wait for their timeouts and hold connections and memory. The
/// server must restart under their load.
///
/// *A failure ratio without a minimum number of calls* opens after one failed call. *A failure ratio without a window*
/// needs a million failures after a million successes. *A half-open state without a limit* sends all waiting calls at
/// the same time. *A probe that never ends* keeps a breaker half-open forever. Here the probe's place is freed after 30
/// s, or after the [attempt timeout](Arrival::timeout) if that is longer. The result of a probe that outlives its place
/// still counts; otherwise a slow server would never be used again.
///
/// *A breaker built for each request or client* never opens. Build one and clone it: clones share their state.
///
/// # The two trip rules
///
/// | | [`rate`](Self::rate), the default | [`counting`](Self::counting), as sony/gobreaker v2 |
/// |---|---|---|
/// | opens | if calls have failed for 2.5 s: when 50 % of at least 20 calls within 60 s have failed, or after 20 consecutive failures | after more than 5 consecutive failures |
/// | window | sliding, 10 buckets of 6 s | since the breaker was closed |
/// | stays open | 1 s ± 10 % at first, doubling up to 10 s ± 10 % | 60 s |
/// | probes | 1 | 1 |
/// | 429, RESOURCE_EXHAUSTED | failures that do not count as consecutive | failures |
///
/// The rate rule keeps the breaker closed at 30 % failures, because retries still help. It also keeps it closed while a
/// server restarts, which may fail hundreds of calls in a moment. If the server is down for longer, the breaker opens,
/// even after a minute of successes. The randomised open time spreads out returning clients.
///
/// *The failing* begins with a failed call. It has lasted since that call was sent, or since its connection was lost,
/// and goes on until 20 calls in a row have succeeded. A successful probe alone does not end it. If the server then
/// fails again, the breaker opens as soon as one of the two conditions holds, and for twice as long.
///
/// # Outcomes
///
/// | outcome | counts as |
/// |---|---|
/// | [`Served`](Health::Served) | a success |
/// | [`Failed`](Health::Failed), [`Unavailable`](Health::Unavailable) | a failure |
/// | [`Overloaded`](Health::Overloaded) | a failure, which under the rate rule is not a consecutive one |
/// | [`NotConnected`](Health::NotConnected) | a failure for each call |
/// | [`Lost`](Health::Lost) | one failure for all calls of an [event](reattempt_core::Evidence#events); the others are excluded. The loss of a probe is always a failure |
/// | [`Local`](Health::Local), [`Ignored`](Health::Ignored) | excluded |
///
/// # Rules
///
/// - A result is ignored if the state has changed since its call was admitted.
/// - An abandoned call is ignored, because callers give up for their own reasons. The layer treats a call that is
///   dropped at its deadline as a timeout.
/// - A failed probe opens the breaker again, unless [`probe_failure_ratio`](Self::probe_failure_ratio) allows more. A
///   probe that is abandoned, excluded or unsent frees its place, as does a probe whose callback or predicate panics.
/// - Under the rate rule, a run of consecutive failures and the failing continue from one window to the next.
/// - A lost call that was sent after the first failure of an event is the next event. So a server that hangs up on each
///   call opens the breaker.
/// - If the server requests a longer delay in the failure that opens the breaker, the open time is that delay. It is
///   capped at [`max_open_time`](Self::max_open_time); under the rate rule, the cap is at least 30 s.
/// - Time does not go backwards: an earlier time is replaced by the latest one.
/// - At most [`max_destinations`](Self::max_destinations) destinations have their own breaker. If the table is full, a
///   new destination replaces one without a call in flight, preferably one with a closed breaker and an empty window,
///   or else the least recently used one. The state of the replaced destination is lost, and an open breaker is
///   reported as closed. An [isolated](Self::isolate_at) breaker is never evicted. If nothing can be evicted, calls to
///   the new destination are admitted without a breaker.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::{BreakerState, CircuitBreaker};
/// # use reattempt_core::guard::{Admit, Arrival, End, Guard, Health};
///
/// let breaker = CircuitBreaker::rate();
/// let mut now = Duration::from_secs(100);
/// for _ in 0..26 {
///     if let Admit::Admitted(ticket) = breaker.admit(&Arrival::new("a.example", now)) {
///         breaker.end_ticket(ticket, &End::judged(Health::Failed, Duration::ZERO), now);
///     }
///     now += Duration::from_millis(100);
/// }
/// assert_eq!(breaker.state_at("a.example", now), BreakerState::Open);
/// assert_eq!(breaker.state_at("b.example", now), BreakerState::Closed);
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new breaker"]
pub struct CircuitBreaker(PerDestination<Circuit>);

guard! {
    CircuitBreaker, BreakerTicket, Circuit,
    kind: "circuit_breaker",
    memory: "1.6 MB, or 1.3 MB for a counting breaker. Four counts with cache lines of their own are a third of that",
    replaced: "Open times that have begun keep their end. Counts are cleared if the window has other buckets.",
}

impl CircuitBreaker {
    /// Returns the breaker's name, which appears in state changes.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.0.settings().name)
    }

    /// Returns the period over which a closed breaker counts calls, or zero if the counts are never cleared.
    pub fn window(&self) -> Duration {
        self.0.settings().interval
    }

    /// Returns the state for `destination` at `now`.
    pub fn state_at(&self, destination: &str, now: Duration) -> BreakerState {
        self.step(destination, now, |machine| machine.state)
    }

    /// Returns the counts for `destination` at `now`.
    pub fn counts_at(&self, destination: &str, now: Duration) -> Counts {
        self.step(destination, now, |machine| *machine.window.counts())
    }

    /// Returns the time from `now` until a probe may be sent to `destination`, or `None` if the breaker is not open.
    pub fn open_time_left_at(&self, destination: &str, now: Duration) -> Option<Duration> {
        self.step(destination, now, |machine| open_time_left(machine, now))
    }

    /// Refuses all calls to `destination` until it is [closed](Self::close_at).
    pub fn isolate_at(&self, destination: &str, now: Duration) {
        self.force(destination, BreakerState::ForcedOpen, now);
    }

    /// Closes the breaker for `destination`, and clears its counts. The results of calls in flight are ignored.
    pub fn close_at(&self, destination: &str, now: Duration) {
        self.force(destination, BreakerState::Closed, now);
    }

    fn step<R>(&self, destination: &str, now: Duration, read: impl FnOnce(&Machine) -> R) -> R {
        self.0.read(destination, |circuit| circuit.step(now, read))
    }

    fn force(&self, destination: &str, state: BreakerState, now: Duration) {
        self.0.set(destination, now, |circuit| {
            let forced = circuit.with(|rules, machine| (!machine.retired).then(|| machine.force(rules, state, now)));
            circuit.notify();
            forced
        });
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::rate()
    }
}

impl Entry for Circuit {
    /// Retires the entry if it is idle. If `forgets`, its state may be discarded, unless the user has forced it.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.retire(now, forgets, is_idle)
    }
}

impl State for Circuit {
    type Settings = Arc<Rules>;
    type Note = BreakerNote;
    type Shown = BreakerState;

    const UNCOUNTED: BreakerNote = BreakerNote { generation: 0, age: 0, probe: 0, tag: 0 };
    const DECIDES_AGAIN: bool = true;
    const LISTED: &'static str = "not_closed";

    fn new(rules: &Arc<Rules>, destination: &Arc<str>) -> Self {
        Self::new(Arc::clone(destination), Arc::clone(rules))
    }

    const TIMES_SUCCESS: Option<bool> = None;

    #[inline(always)]
    fn admit_at_hand<T>(
        &self,
        arrival: &Arrival<'_>,
        ticket: impl Fn(BreakerNote) -> T,
        apart: impl FnOnce() -> Admit<T>,
    ) -> Admit<T> {
        if let Some(note) = self.admit_closed(arrival.now) {
            return Admit::Admitted(ticket(note));
        }
        self.refusal(arrival.now).map_or_else(apart, Admit::Refused)
    }

    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<BreakerNote>> {
        self.decide(arrival.now, arrival.timeout)
    }

    #[inline(always)]
    fn record_end(&self, note: &BreakerNote, end: &End, now: Duration) -> Option<BreakerNote> {
        let served = matches!(end, End::Judged { health: Health::Served, .. });
        if !(served && self.succeed(note, now)) {
            self.record(note, end, now);
        }
        None
    }

    #[inline(always)]
    fn times_success(&self, note: &BreakerNote) -> bool {
        !self.takes_success(note)
    }

    fn is_probe(note: &BreakerNote) -> bool {
        note.tag == NO_TAG
    }

    fn latency(&self) -> Option<&UsualLatency> {
        Some(&self.latency)
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let decision = self.would_admit(arrival.now);
        self.notify();
        decision
    }

    /// Returns the new settings with the old queue of state changes.
    fn merged(own: &Arc<Rules>, other: &Arc<Rules>) -> Arc<Rules> {
        Arc::new(Rules { changes: Arc::clone(&own.changes), ..Rules::clone(other) })
    }

    fn adopt(&self, rules: &Arc<Rules>) {
        drop(self.adopt(Arc::clone(rules)));
    }

    /// Checks the open times and, in the rate form, the ratio and the window. A `min_calls` above the default of
    /// `consecutive_failures` has no effect, because consecutive failures open the breaker first. One above
    /// `last_calls` is lowered to it.
    fn validate(rules: &Arc<Rules>) -> Vec<Warning> {
        let consecutive = Rate::default().consecutive;
        let (ratio, calls, window) = match rules.trip {
            Trip::Counts(_) => (None, None, None),
            Trip::Rate(rate) => (
                Recommended::FAILURE_RATIO.number("failure_ratio", ratio_of(rate.ratio)),
                if rules.last_calls > 0 && rate.calls > rules.last_calls && rate.calls != Rate::default().calls {
                    Some(Warning::new("min_calls", rate.calls, "at most `last_calls`"))
                } else {
                    (rate.calls > consecutive && rate.consecutive == consecutive)
                        .then(|| Warning::new("min_calls", rate.calls, MIN_CALLS))
                },
                Recommended::WINDOW.time("interval", rules.interval).filter(|_| rules.last_calls == 0),
            ),
        };
        let open = Recommended::OPEN_TIME.time("open_time", rules.open_time);
        let first = Some(rules.first_open_time).filter(|first| *first > rules.open_time && *first != FIRST_OPEN_TIME);
        let first =
            first.map(|first| Warning::new("first_open_time", format_args!("{first:?}"), "at most `open_time`"));
        [ratio, calls, window, open, first].into_iter().flatten().collect()
    }

    fn show_settings(rules: &Arc<Rules>, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("name", &rules.name)
            .field("trip", &rules.trip)
            .field("probes", &rules.probes)
            .field("interval", &rules.interval)
            .field("last_calls", &rules.last_calls)
            .field("first_open_time", &rules.first_open_time)
            .field("open_time", &rules.open_time);
    }

    /// Shows a destination whose breaker is not closed, as of its last call.
    fn shown(&self) -> Option<BreakerState> {
        let state = self.with(|_, machine| machine.state);
        (state != BreakerState::Closed).then_some(state)
    }

    fn inspect_settings(rules: &Arc<Rules>, part: Part) -> Part {
        inspect::settings(rules, part)
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        let seen = self.step(now, |machine| (machine.state, open_time_left(machine, now), *machine.window.counts()));
        inspect::state(seen, part)
    }
}

impl Circuit {
    /// Reads the state at `now`, and delivers the change if the open time is over.
    fn step<R>(&self, now: Duration, read: impl FnOnce(&Machine) -> R) -> R {
        let read = self.with(|rules, machine| {
            machine.advance(rules, now);
            read(machine)
        });
        self.notify();
        read
    }

    /// Slow path of `admit`, for every case that the tally and the gate do not cover.
    #[inline(never)]
    fn decide(&self, now: Duration, timeout: Option<Duration>) -> Option<Admit<BreakerNote>> {
        let decision = self.admit(now, timeout)?;
        Some(match decision {
            Ok(note) => {
                self.ask_user(note, Outcome::Unsent, now, || self.notify());
                Admit::Admitted(note)
            }
            Err(refused) => {
                self.notify();
                Admit::Refused(refused)
            }
        })
    }

    /// Runs user code. If that panics, the call ends with `outcome`, which frees a probe's place.
    fn ask_user<R>(&self, note: BreakerNote, outcome: Outcome, now: Duration, ask: impl FnOnce() -> R) -> R {
        let ending = Ending { outcome, asked: Duration::ZERO, sent: now, now };
        let unwinding = EndedOnPanic { circuit: self, note, ending };
        let answer = ask();
        mem::forget(unwinding);
        answer
    }

    /// Records the end of a call that the tally has not recorded as a success.
    #[inline(never)]
    fn record(&self, note: &BreakerNote, end: &End, now: Duration) {
        let rules = self.rules();
        // A second panic would abort the process, so no user code runs while the thread unwinds.
        let outcome = match end {
            End::Judged { .. } if user_code::is_unwinding() => Outcome::Abandoned,
            _ => self.ask_user(*note, Outcome::Abandoned, now, || rules.outcome(end)),
        };
        let (asked, after) = match end {
            End::Judged { hint, after, .. } => (asked_delay(*hint), *after),
            _ => (Duration::ZERO, Duration::ZERO),
        };
        if let End::Judged { health: Health::Served, after, .. } = end {
            self.latency.record(*after);
        }
        let ready_to_trip = |counts: &Counts| match &rules.trip {
            Trip::Counts(ready_to_trip) => ready_to_trip(counts),
            Trip::Rate(_) => false,
        };
        self.end_call(*note, Ending { outcome, asked, sent: now.saturating_sub(after), now }, ready_to_trip);
        self.notify();
    }

    /// Delivers waiting changes. While the thread unwinds, they wait for the next call.
    #[inline]
    fn notify(&self) {
        if self.changes().any() {
            self.deliver();
        }
    }

    #[cold]
    fn deliver(&self) {
        if let Some(callback) = &self.rules().on_state_change {
            self.changes().deliver(callback);
        }
    }
}

/// A call while user code runs. It ends if that code panics.
struct EndedOnPanic<'a> {
    circuit: &'a Circuit,
    note: BreakerNote,
    ending: Ending,
}

impl Drop for EndedOnPanic<'_> {
    #[cold]
    fn drop(&mut self) {
        // The next call delivers the state change, because the callback may be what panicked.
        self.circuit.end_call(self.note, self.ending, |_| false);
    }
}

fn open_time_left(machine: &Machine, now: Duration) -> Option<Duration> {
    let expiry = machine.expiry.filter(|_| machine.state == BreakerState::Open);
    expiry.map(|expiry| expiry.saturating_sub(now))
}

fn asked_delay(hint: ServerHint) -> Duration {
    match hint {
        ServerHint::After(delay) | ServerHint::AtLeast(delay) | ServerHint::Exactly(delay) => delay,
        _ => Duration::ZERO,
    }
}
