//! State changes, which are delivered in order and without holding a lock.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

use reattempt_core::user_code;

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The state of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BreakerState {
    /// Every call is admitted.
    #[default]
    Closed,
    /// Only a few probes are admitted.
    HalfOpen,
    /// No call is admitted until the open time has passed.
    Open,
    /// No call is admitted until the operator closes the breaker.
    ForcedOpen,
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half-open",
            Self::Open => "open",
            Self::ForcedOpen => "forced open",
        })
    }
}

/// A change in a breaker's state for one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateChange {
    /// The name of the breaker.
    pub name: Arc<str>,
    /// The destination, or an empty string for the state that destinations without their own state share.
    pub destination: Arc<str>,
    /// The previous state.
    pub from: BreakerState,
    /// The new state.
    pub to: BreakerState,
}

pub(crate) type Callback = Arc<dyn Fn(&StateChange) + Send + Sync>;

/// State changes waiting to be delivered. Only one thread delivers at a time, so that they stay in order.
#[derive(Default)]
pub(crate) struct Changes {
    queue: Mutex<Queue>,
    /// `true` if a change is waiting.
    any: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<StateChange>,
    delivering: bool,
}

/// A drop guard that allows the next delivery, even if the callback panics.
struct Delivering<'a>(&'a Changes);

impl Drop for Delivering<'_> {
    fn drop(&mut self) {
        self.0.lock().delivering = false;
    }
}

impl Changes {
    pub(crate) fn push(&self, change: StateChange) {
        let mut queue = self.lock();
        queue.waiting.push_back(change);
        self.any.store(true, Ordering::Release);
    }

    /// Returns `true` if a change is waiting.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Delivers waiting changes, unless the thread unwinds, or another thread or a caller further up this thread's
    /// stack is already doing so.
    pub(crate) fn deliver(&self, callback: &Callback) {
        user_code::notify(|| {
            // A change pushed during a delivery is delivered in the next round.
            while self.begin() {
                let delivering = Delivering(self);
                while let Some(change) = delivering.0.next() {
                    callback(&change);
                }
            }
        });
    }

    fn begin(&self) -> bool {
        let mut queue = self.lock();
        if queue.delivering || queue.waiting.is_empty() {
            return false;
        }
        queue.delivering = true;
        true
    }

    fn next(&self) -> Option<StateChange> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        self.any.store(!queue.waiting.is_empty(), Ordering::Release);
        next
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
