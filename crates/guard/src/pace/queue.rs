//! The first-come, first-served queue of calls that wait for their turns, with time as an argument.
//!
//! The interval determines when a turn may be taken, and the queue determines the order. A call is woken when it
//! becomes first, and the first call is woken when its turn moves earlier. Every other call wakes up at the expected
//! time of its turn. A call that is not polled when its turn comes therefore delays later calls by one interval, but
//! never blocks them.

use std::fmt;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Patience, WaitQueue, WaiterId};
use reattempt_core::guard::{Admit, Arrival, GuardKind, Reason, Refused};
use reattempt_schedule_responsive::{ReservedTurn, Responsive};

use super::sync::{Mutex, MutexGuard};

/// The time after which the first call in the queue checks again. Outcomes outside this queue, recorded by a schedule
/// or another pace, may have shortened the interval.
const NOTICE: Duration = Duration::from_secs(1);

/// The queue of a pace and its clones.
pub(super) struct Queue(Mutex<WaitQueue>);

/// The next step of a waiting call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The call has left the queue with its turn.
    Reserved(ReservedTurn),
    /// The call keeps waiting. It checks again at this time, unless it is woken earlier.
    Waiting(Duration),
    /// The call has left the queue without a turn.
    Refused(Refused),
}

/// The result for an arriving call: its turn or its place in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Reserved(ReservedTurn),
    Queued(WaiterId),
}

impl Queue {
    pub(super) fn new(patience: Patience) -> Self {
        Self(Mutex::new(WaitQueue::new(patience)))
    }

    /// Returns the number of waiting calls.
    pub(super) fn waiting(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, WaitQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn if one is available and no call is waiting. Otherwise, the call is queued or refused.
    pub(super) fn admit(&self, pace: &Responsive, arrival: &Arrival<'_>) -> Admit<Admission> {
        let mut queue = self.lock();
        if queue.is_empty()
            && let Ok(turn) = pace.reserve_turn(arrival.now, 0)
        {
            return Admit::Admitted(Admission::Reserved(turn));
        }
        match refusal(&queue, pace, arrival) {
            Some(refused) => Admit::Refused(refused),
            None => Admit::Waiting(Admission::Queued(queue.push(arrival))),
        }
    }

    /// Returns the refusal that [`admit`](Self::admit) would return.
    pub(super) fn would_admit(&self, pace: &Responsive, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let queue = self.lock();
        if queue.is_empty() && pace.turn_due(arrival.now, 0) <= arrival.now {
            return Ok(());
        }
        refusal(&queue, pace, arrival).map_or(Ok(()), Err)
    }

    /// Takes a waiting call's turn if it has come.
    pub(super) fn resume(&self, pace: &Responsive, waiter: WaiterId, arrival: &Arrival<'_>, waker: &Waker) -> Step {
        // Declared first, so that it is dropped after the lock is released.
        let _gone;
        let mut queue = self.lock();
        let ahead = queue.position_of(waiter).unwrap_or(0);
        let step = match pace.reserve_turn(arrival.now, ahead) {
            Ok(turn) => Step::Reserved(turn),
            Err(due) => match too_late(due, queue.waits_until(waiter), arrival) {
                Some(refused) => Step::Refused(refused),
                None => {
                    _gone = queue.set_waker(waiter, waker);
                    let again = if ahead == 0 { arrival.now.saturating_add(NOTICE) } else { due };
                    return Step::Waiting(due.min(again));
                }
            },
        };
        let left = queue.leave(waiter);
        drop(queue);
        left.wake();
        step
    }

    /// Removes a call that is not sent. Those behind it move up.
    pub(super) fn leave(&self, waiter: WaiterId) {
        let mut queue = self.lock();
        let left = queue.leave(waiter);
        drop(queue);
        left.wake();
    }

    /// Wakes the first call in the queue, because its turn has moved earlier.
    pub(super) fn wake_first(&self) {
        let first = self.lock().first();
        first.wake();
    }
}

/// Returns the refusal of an arriving call, if it may not wait for its turn.
fn refusal(queue: &WaitQueue, pace: &Responsive, arrival: &Arrival<'_>) -> Option<Refused> {
    let due = pace.turn_due(arrival.now, queue.len());
    let patience = queue.patience();
    let reason = if !arrival.patient || patience.calls == 0 {
        Reason::RateExceeded
    } else if queue.is_full() {
        Reason::Full
    } else {
        return too_late(due, arrival.now.saturating_add(patience.time), arrival);
    };
    Some(refused(reason, due, arrival))
}

/// Returns the refusal of a call whose turn comes at `due`, if that is too late.
fn too_late(due: Duration, waits_until: Duration, arrival: &Arrival<'_>) -> Option<Refused> {
    let is_late = due > waits_until || arrival.latest.is_some_and(|latest| due >= latest);
    is_late.then(|| refused(Reason::WaitTooLong, due, arrival))
}

fn refused(reason: Reason, due: Duration, arrival: &Arrival<'_>) -> Refused {
    Refused::new(GuardKind::PACE, reason).after(due.saturating_sub(arrival.now))
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.lock();
        f.debug_struct("Queue").field("bounds", &queue.patience()).field("waiting", &queue.len()).finish()
    }
}
