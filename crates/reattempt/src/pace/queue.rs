//! The calls that wait for their turns, first come first served, with time as an argument.
//!
//! Only the pace decides when a turn may be taken; here is the order. The first call in the queue is
//! woken when the one before it leaves. Every other one wakes by itself when its turn should have come.
//! So a call that is not polled when its turn comes costs those behind it one interval, and never
//! blocks them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Line, Patience, Turn, Wakers};
use reattempt_schedule_responsive::Responsive;

use super::sync::{Mutex, MutexGuard};
use crate::call::pace_refused::{PaceRefusal, PaceRefused};

/// The queue of a layer and of all services that it makes.
pub(super) struct Queue(Mutex<State>);

struct State {
    line: Line<()>,
    /// The handles that are not ready because too many calls wait, by a number of their own.
    blocked: BTreeMap<u64, Waker>,
    /// The number of the last of them.
    last: u64,
}

/// The wakers that are woken, or dropped, once the lock is released.
#[derive(Default)]
struct Left {
    line: Wakers,
    blocked: BTreeMap<u64, Waker>,
}

/// The mark of a handle that was not ready because too many calls waited. Its waker leaves the queue with it.
pub(super) struct Blocked {
    queue: Arc<Queue>,
    number: u64,
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // Dropped after the lock.
        let _gone = self.queue.lock().blocked.remove(&self.number);
    }
}

/// A place in the queue, which is left when it is dropped.
pub(super) struct Place {
    queue: Arc<Queue>,
    turn: Turn,
    since: Duration,
    terms: Terms,
}

/// The terms on which a call waits. Where it cannot be turned away, both moments are out of reach.
#[derive(Debug, Clone, Copy)]
struct Terms {
    deadline: Option<Duration>,
    give_up: Duration,
}

/// The next step of a waiting call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is to be sent, after so long a wait.
    Admitted(Duration),
    /// It is woken, or asks again at this time.
    Waiting(Duration),
    Refused(PaceRefused),
}

impl Queue {
    pub(super) fn new(patience: Patience) -> Self {
        let line = Line::new(patience);
        Self(Mutex::new(State { line, blocked: BTreeMap::new(), last: 0 }))
    }

    pub(super) fn patience(&self) -> Patience {
        self.lock().line.patience()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn at once, if one is due and no call waits.
    pub(super) fn try_turn(&self, pace: &Responsive, now: Duration) -> bool {
        let state = self.lock();
        state.line.is_empty() && pace.take_turn(now, 0).is_ok()
    }

    /// Enters the queue; a call that `refuses` to wait longer than it may is turned away at once.
    pub(super) fn enter(
        self: &Arc<Self>,
        pace: &Responsive,
        now: Duration,
        deadline: Option<Duration>,
        refuses: bool,
    ) -> Result<Place, PaceRefused> {
        let mut state = self.lock();
        let waiting = state.line.len();
        let due = pace.turn_due(now, waiting);
        if refuses && state.line.is_full() {
            let wait = due.saturating_sub(now);
            return Err(PaceRefused { reason: PaceRefusal::QueueFull, wait });
        }
        let longest = if refuses { state.line.patience().time } else { Duration::MAX };
        let deadline = deadline.filter(|_| refuses);
        let terms = Terms { deadline, give_up: now.saturating_add(longest) };
        if let Some(refused) = terms.refused(due, now) {
            return Err(refused);
        }
        let turn = state.line.push((), now);
        Ok(Place { queue: Arc::clone(self), turn, since: now, terms })
    }

    /// Returns `true` if another call may wait. If not, `waker` is woken when there is room for many.
    ///
    /// If no call waits there is always room. So while handles are blocked, some call is in the queue and leaves it.
    pub(super) fn has_room(
        self: &Arc<Self>,
        pace: &Responsive,
        now: Duration,
        handle: &mut Option<Blocked>,
        waker: &Waker,
    ) -> bool {
        let mut state = self.lock();
        let waiting = state.line.len();
        let longest = state.line.patience().time;
        let too_long = || pace.turn_due(now, waiting) > now.saturating_add(longest);
        if waiting == 0 || (!state.line.is_full() && !too_long()) {
            return true;
        }
        let blocked = handle.get_or_insert_with(|| {
            state.last += 1;
            Blocked { queue: Arc::clone(self), number: state.last }
        });
        let gone = state.blocked.insert(blocked.number, waker.clone());
        drop(state);
        drop(gone);
        false
    }

    /// Wakes the first in the queue: the interval has become shorter.
    pub(super) fn wake_first(&self) {
        let first = self.lock().line.first();
        first.wake();
    }
}

impl State {
    /// Removes a place; those behind it move up.
    fn leave(&mut self, place: usize) -> Left {
        let line = self.line.leave(place);
        let has_room = self.line.len() <= self.line.patience().calls / 2;
        let blocked = if has_room { std::mem::take(&mut self.blocked) } else { BTreeMap::new() };
        Left { line, blocked }
    }
}

impl Left {
    fn wake(self) {
        self.line.wake();
        self.blocked.into_values().for_each(Waker::wake);
    }
}

impl Place {
    /// Takes the turn if it is due.
    pub(super) fn poll(&self, pace: &Responsive, now: Duration, waker: &Waker) -> Step {
        let mut state = self.queue.lock();
        let place = state.line.place_of(self.turn);
        match pace.take_turn(now, place.unwrap_or(0)) {
            Ok(()) => {
                let left = place.map(|place| state.leave(place));
                drop(state);
                left.unwrap_or_default().wake();
                Step::Admitted(now.saturating_sub(self.since))
            }
            Err(due) => match self.terms.refused(due, now) {
                Some(refused) => Step::Refused(refused),
                None => {
                    let gone = place.and_then(|place| state.line.set_waker(place, waker));
                    drop(state);
                    drop(gone);
                    Step::Waiting(due)
                }
            },
        }
    }
}

impl Terms {
    /// Returns the refusal of a call whose turn would be due at `due`, if it may not wait so long.
    fn refused(&self, due: Duration, now: Duration) -> Option<PaceRefused> {
        let reason = if self.deadline.is_some_and(|deadline| due >= deadline) {
            PaceRefusal::DeadlineTooSoon
        } else if due > self.give_up {
            PaceRefusal::WaitTooLong
        } else {
            return None;
        };
        Some(PaceRefused { reason, wait: due.saturating_sub(now) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(place) = state.line.place_of(self.turn) {
            let left = state.leave(place);
            drop(state);
            left.wake();
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Queue")
            .field("bounds", &state.line.patience())
            .field("waiting", &state.line.len())
            .finish()
    }
}
