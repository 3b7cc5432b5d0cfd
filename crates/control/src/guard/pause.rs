//! The pause: after a server has asked one call to wait, all calls wait, and then return one after another.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_core::Warning;
use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Reason, Refused, Resume};

use super::guard_type::guard;
use super::per_destination::{PerDestination, State};
use super::wait_queue::Patience;
use crate::destination_table::Entry;
use crate::sync::{Mutex, MutexGuard};

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
        self.0.read(destination, |paused| paused.lock().until.saturating_sub(now))
    }

    /// Returns the number of calls waiting for `destination`.
    pub fn waiting(&self, destination: &str) -> usize {
        self.0.read(destination, |paused| paused.lock().waiting)
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    longest: Duration,
    spread: Spread,
    patience: Patience,
}

/// The time over which calls return.
#[derive(Debug, Clone, Copy)]
enum Spread {
    /// As long as the pause was, within bounds.
    AsLong,
    Over(Duration),
}

impl Spread {
    fn after(self, pause: Duration) -> Duration {
        match self {
            Self::AsLong => pause.clamp(Duration::from_secs(1), Duration::from_secs(10)),
            Self::Over(spread) => spread,
        }
    }
}

/// A destination that may be paused.
pub(crate) struct Paused(Mutex<Times>);

struct Times {
    rule: Rule,
    /// The end of the pause.
    until: Duration,
    /// The time over which calls return after it.
    spread: Duration,
    /// The number of turns given.
    turns: u32,
    waiting: usize,
    retired: bool,
}

/// The note of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Note {
    Sent,
    /// The call waits for its turn, until this time at the latest.
    Waits {
        turn: Turn,
        latest: Duration,
    },
}

/// The place of a call among those that return: a fraction of the time over which they do, in 2⁻³².
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn(u32);

impl Turn {
    /// Returns the turn of the `number`th call. Any number of turns divide the time almost evenly, because their
    /// distance is the golden ratio.
    fn of(number: u32) -> Self {
        const GOLDEN_RATIO: u32 = 0x9e37_79b9;
        Self(number.wrapping_mul(GOLDEN_RATIO))
    }

    fn within(self, spread: Duration) -> Duration {
        let nanos = spread.as_nanos().saturating_mul(u128::from(self.0)) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Paused {
    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Times {
    fn due(&self, turn: Turn) -> Duration {
        self.until.saturating_add(turn.within(self.spread))
    }

    /// Returns `true` if all calls that waited have had their turn.
    fn is_over(&self, now: Duration) -> bool {
        now >= self.until.saturating_add(self.spread)
    }

    fn pause(&mut self, wait: Duration, now: Duration) {
        let wait = wait.min(self.rule.longest);
        let until = now.saturating_add(wait);
        if !wait.is_zero() && until > self.until {
            (self.until, self.spread) = (until, self.rule.spread.after(wait));
        }
    }

    /// Returns the decision for a call that arrives before all calls have returned.
    fn admit_in_turn(&mut self, arrival: &Arrival<'_>) -> Admit<Note> {
        let turn = Turn::of(self.turns);
        let due = self.due(turn);
        if due <= arrival.now {
            self.turns = self.turns.wrapping_add(1);
            return Admit::Admitted(Note::Sent);
        }
        let latest = arrival.now.saturating_add(self.rule.patience.time);
        if let Err(reason) = self.may_wait(arrival, due, latest) {
            return Admit::Refused(refusal(reason, due, arrival));
        }
        self.turns = self.turns.wrapping_add(1);
        self.waiting += 1;
        Admit::Waiting(Note::Waits { turn, latest })
    }

    fn may_wait(&self, arrival: &Arrival<'_>, due: Duration, latest: Duration) -> Result<(), Reason> {
        let patience = self.rule.patience;
        let in_time = due <= latest && arrival.latest.is_none_or(|deadline| due < deadline);
        if !arrival.patient || patience.calls == 0 || !in_time {
            Err(Reason::Paused)
        } else if self.waiting >= patience.calls {
            Err(Reason::Full)
        } else {
            Ok(())
        }
    }
}

fn refusal(reason: Reason, due: Duration, arrival: &Arrival<'_>) -> Refused {
    Refused::new(GuardKind::PAUSE, reason).after(due.saturating_sub(arrival.now))
}

impl Entry for Paused {
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let mut times = self.lock();
        times.retired = (forgets || times.is_over(now)) && times.waiting == 0 && is_idle();
        times.retired
    }
}

impl State for Paused {
    type Settings = Rule;
    type Note = Note;
    type Shown = Shown;

    const UNCOUNTED: Note = Note::Sent;
    const LISTED: &'static str = "paused";

    fn new(rule: &Rule, _: &Arc<str>) -> Self {
        let (until, spread) = (Duration::ZERO, Duration::ZERO);
        Self(Mutex::new(Times { rule: *rule, until, spread, turns: 0, waiting: 0, retired: false }))
    }

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<Note>> {
        let mut times = self.lock();
        if times.retired {
            return None;
        }
        if times.is_over(arrival.now) {
            return Some(Admit::Admitted(Note::Sent));
        }
        Some(times.admit_in_turn(arrival))
    }

    fn resume(&self, note: &mut Note, arrival: &Arrival<'_>, _: &Waker) -> Resume {
        let Note::Waits { turn, latest } = *note else { return Resume::Admitted };
        let mut times = self.lock();
        let due = times.due(turn);
        // The pause may have been extended, but it is never shortened. So no waker is needed.
        if due > arrival.now && due <= latest && arrival.latest.is_none_or(|deadline| due < deadline) {
            return Resume::Waiting { until: Some(due) };
        }
        times.waiting = times.waiting.saturating_sub(1);
        *note = Note::Sent;
        if due <= arrival.now { Resume::Admitted } else { Resume::Refused(refusal(Reason::Paused, due, arrival)) }
    }

    fn record_end(&self, note: &Note, end: &End, now: Duration) -> Option<Note> {
        if let (End::Unsent, Note::Waits { .. }) = (end, note) {
            let mut times = self.lock();
            times.waiting = times.waiting.saturating_sub(1);
        }
        if let Some(wait) = end.requested_wait() {
            self.lock().pause(wait, now);
        }
        None
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let times = self.lock();
        let due = times.due(Turn::of(times.turns));
        if times.is_over(arrival.now) || due <= arrival.now {
            return Ok(());
        }
        let latest = arrival.now.saturating_add(times.rule.patience.time);
        times.may_wait(arrival, due, latest).map_err(|reason| refusal(reason, due, arrival))
    }

    fn adopt(&self, rule: &Rule) {
        self.lock().rule = *rule;
    }

    fn show_settings(rule: &Rule, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("longest", &rule.longest).field("spread", &rule.spread).field("queue", &rule.patience);
    }

    /// Shows a destination with waiting calls. Whether it is paused depends on the time.
    fn shown(&self) -> Option<Shown> {
        let times = self.lock();
        (times.waiting > 0).then(|| Shown { until: times.until, waiting: times.waiting })
    }

    /// Warns if no pause ever begins.
    fn validate(rule: &Rule) -> Vec<Warning> {
        let warning = rule.longest.is_zero().then(|| Warning::new("longest", "0s", "above 0s"));
        warning.into_iter().collect()
    }
}

/// A destination with waiting calls, for `Debug`.
#[derive(Debug)]
#[allow(dead_code, reason = "shown by `Debug`")]
pub(crate) struct Shown {
    until: Duration,
    waiting: usize,
}
