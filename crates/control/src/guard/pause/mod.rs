//! The pause: after a server has asked one call to wait, all calls wait, and then return one after another.

mod times;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::Warning;
use reattempt_core::guard::{Admit, Arrival, End, Refused, Resume};
use reattempt_core::snapshot::Part;

use super::guard_type::guard;
use super::inspect;
use super::per_destination::{PerDestination, State};
use super::wait_queue::Patience;
use crate::destination_table::Entry;
use times::{Note, Paused, Rule, Spread};

/// A pause for all calls to a destination, after its server has asked one of them to wait.
///
/// # Failures that it prevents
///
/// *A hint that only its own call follows*: a 429 with `Retry-After: 2` delays the retry of one call. All other calls
/// of the client are sent during these two seconds. Each of them is refused, and many services extend the wait with
/// each refused call.
///
/// *Calls that return together*: if all of them were sent when the pause ends, the server would refuse most of them
/// again.
///
/// # The rule
///
/// A pause begins with a response that refuses the call (429, 503, RESOURCE_EXHAUSTED, UNAVAILABLE) and contains a wait
/// that can be read. It ends after that wait, or later if another response asks for more. A response without a wait
/// does not begin a pause. Neither does gRPC's pushback, which concerns only its own call; its `RetryInfo` does, if the
/// layer reads it.
///
/// Calls that arrive during the pause wait in a [queue](Self::queue) with limits, or are refused. After the pause, they
/// return evenly spread over a time as long as the pause was, between 1 s and 10 s ([`spread`](Self::spread)). They
/// then return at the rate at which they arrived. A call that arrives during that time gets a turn in it, too, and is
/// sent at once if its turn has passed.
///
/// If a set of endpoints is inside the guard's layer, the wait of a 503 binds only the endpoint that sent it, so it
/// begins no pause. The wait of a 429 binds the caller's account, and pauses all endpoints.
///
/// A pause does not learn the rate that the server allows. If the calls arrive faster than that, a second pause
/// follows. A [`RateLimit`](crate::RateLimit) prevents it if the rate is known, and a
/// [`SendRate`](crate::SendRate) learns it.
///
/// If the [table](Self::max_destinations) is full, a new destination replaces one without a call in flight, preferably
/// one that is not paused.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::Pause;
/// # use reattempt_core::ServerHint;
/// # use reattempt_core::guard::{Admit, Arrival, End, Guard, Health};
///
/// let pause = Pause::new();
/// let now = Duration::from_secs(100);
/// let arrival = Arrival::new("a.example", now);
/// let Admit::Admitted(ticket) = pause.admit(&arrival) else { panic!("nothing is paused yet") };
/// let hint = ServerHint::After(Duration::from_secs(2));
/// pause.end_ticket(ticket, &End::judged(Health::Overloaded, Duration::ZERO).with_hint(hint), now);
/// assert!(matches!(pause.admit(&arrival), Admit::Waiting(_)));
/// assert_eq!(pause.time_left_at("a.example", now), Duration::from_secs(2));
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new pause"]
pub struct Pause(PerDestination<Paused>);

guard! {
    Pause, PauseTicket, Paused,
    kind: "pause",
    memory: "0.2 MB",
    replaced: "A pause that has begun keeps its end.",
}

/// Each setter returns a new pause with its own state.
impl Pause {
    /// Creates a guard that is not paused.
    pub fn new() -> Self {
        Self(PerDestination::new(Rule {
            longest: Duration::from_secs(3600),
            spread: Spread::AsLong,
            patience: Patience { calls: 1024, time: Duration::from_secs(30) },
        }))
    }

    /// Sets how many calls may wait per destination, and for how long. Default: 1024 calls for 30 s, as in a
    /// [`RateLimit`](crate::RateLimit).
    ///
    /// A call whose turn comes later is refused immediately.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        Self(self.0.changed(|rule| rule.patience = Patience { calls, time }))
    }

    /// Refuses calls during a pause, instead of making them wait.
    pub fn no_queue(self) -> Self {
        self.queue(0, Duration::ZERO)
    }

    /// Sets the time over which calls return after a pause. Default: as long as the pause was, but at least 1 s and at
    /// most 10 s. With zero, they all return at the same time.
    pub fn spread(self, spread: Duration) -> Self {
        Self(self.0.changed(|rule| rule.spread = Spread::Over(spread)))
    }

    /// Sets the longest pause. Default: 1 h. A longer wait is shortened, so that one call an hour asks the server.
    pub fn longest(self, longest: Duration) -> Self {
        Self(self.0.changed(|rule| rule.longest = longest))
    }

    /// Returns the time until the pause of `destination` ends, or zero if it is not paused at `now`.
    pub fn time_left_at(&self, destination: &str, now: Duration) -> Duration {
        self.0.read(destination, |paused| paused.until_and_waiting().0.saturating_sub(now))
    }

    /// Returns the number of calls waiting for `destination`.
    pub fn waiting(&self, destination: &str) -> usize {
        self.0.read(destination, |paused| paused.until_and_waiting().1)
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new()
    }
}

impl Entry for Paused {
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.retire(now, forgets, is_idle)
    }
}

impl State for Paused {
    type Settings = Rule;
    type Note = Note;
    type Shown = Shown;

    const UNCOUNTED: Note = Note::Sent;
    const LISTED: &'static str = "paused";

    fn new(rule: &Rule, _: &Arc<str>) -> Self {
        Self::new(*rule)
    }

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<Note>> {
        self.admit(arrival)
    }

    fn resume(&self, note: &mut Note, arrival: &Arrival<'_>, _: &Waker) -> Resume {
        self.resume(note, arrival)
    }

    fn record_end(&self, note: &Note, end: &End, now: Duration) -> Option<Note> {
        self.record_end(note, end, now);
        None
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.would_admit(arrival)
    }

    fn adopt(&self, rule: &Rule) {
        self.adopt(rule);
    }

    fn show_settings(rule: &Rule, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("longest", &rule.longest).field("spread", &rule.spread).field("queue", &rule.patience);
    }

    /// Shows a destination with waiting calls. Whether it is paused depends on the time.
    fn shown(&self) -> Option<Shown> {
        let (until, waiting) = self.until_and_waiting();
        (waiting > 0).then_some(Shown { until, waiting })
    }

    /// Warns if no pause ever begins.
    fn validate(rule: &Rule) -> Vec<Warning> {
        let warning = rule.longest.is_zero().then(|| Warning::new("longest", "0s", "above 0s"));
        warning.into_iter().collect()
    }

    fn inspect_settings(rule: &Rule, part: Part) -> Part {
        inspect::queue(rule.patience, part.field("longest", rule.longest))
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        let (until, waiting) = self.until_and_waiting();
        part.field("time_left", until.saturating_sub(now)).field("waiting", waiting)
    }
}

/// A destination with waiting calls, for `Debug`.
#[derive(Debug)]
#[allow(dead_code, reason = "shown by `Debug`")]
pub(crate) struct Shown {
    until: Duration,
    waiting: usize,
}
