//! A destination that may be paused: the end of its pause, and the turns of the calls that return.

use std::sync::PoisonError;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Reason, Refused, Resume};

use super::super::wait_queue::Patience;
use crate::sync::{Mutex, MutexGuard};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) longest: Duration,
    pub(crate) spread: Spread,
    pub(crate) patience: Patience,
}

/// The time over which calls return.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spread {
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
    pub(crate) fn new(rule: Rule) -> Self {
        let (until, spread) = (Duration::ZERO, Duration::ZERO);
        Self(Mutex::new(Times { rule, until, spread, turns: 0, waiting: 0, retired: false }))
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retires the destination if nothing is lost by that.
    pub(crate) fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let mut times = self.lock();
        times.retired = (forgets || times.is_over(now)) && times.waiting == 0 && is_idle();
        times.retired
    }

    /// Decides whether to admit a call. Returns `None` if the destination was retired.
    pub(crate) fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<Note>> {
        let mut times = self.lock();
        if times.retired {
            return None;
        }
        if times.is_over(arrival.now) {
            return Some(Admit::Admitted(Note::Sent));
        }
        Some(times.admit_in_turn(arrival))
    }

    /// Decides whether a waiting call may proceed.
    pub(crate) fn resume(&self, note: &mut Note, arrival: &Arrival<'_>) -> Resume {
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

    pub(crate) fn record_end(&self, note: &Note, end: &End, now: Duration) {
        if let (End::Unsent, Note::Waits { .. }) = (end, note) {
            let mut times = self.lock();
            times.waiting = times.waiting.saturating_sub(1);
        }
        if let Some(wait) = end.requested_wait() {
            self.lock().pause(wait, now);
        }
    }

    /// Returns the decision that `admit` would make.
    pub(crate) fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let times = self.lock();
        let due = times.due(Turn::of(times.turns));
        if times.is_over(arrival.now) || due <= arrival.now {
            return Ok(());
        }
        let latest = arrival.now.saturating_add(times.rule.patience.time);
        times.may_wait(arrival, due, latest).map_err(|reason| refusal(reason, due, arrival))
    }

    pub(crate) fn adopt(&self, rule: &Rule) {
        self.lock().rule = *rule;
    }

    /// Returns the end of the pause, and the number of calls that wait.
    pub(crate) fn until_and_waiting(&self) -> (Duration, usize) {
        let times = self.lock();
        (times.until, times.waiting)
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
