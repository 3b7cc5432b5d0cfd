//! The bounded line of calls that wait for a guard, in the order in which they came.
//!
//! The line is plain data behind its owner's lock. Wakers are taken out of it, and woken once the lock is released.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::task::Waker;
use std::time::Duration;

/// The bounds on waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The most calls that wait in one line; 0 if none may.
    pub calls: usize,
    /// The longest wait of one call.
    pub time: Duration,
}

impl Patience {
    /// No call waits.
    pub(crate) const NONE: Self = Self { calls: 0, time: Duration::ZERO };
}

/// The number of a call in a line. It stays the same until the call leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(NonZeroU64);

/// A line of waiting calls, first come first served. With each call the line keeps a note, a `T` of the line's owner.
///
/// The owner keeps the line behind a lock, and checks that it is not [full](Self::is_full) before it adds a call.
/// Wakers that methods return must be woken or dropped after the lock is released.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::{Line, Patience};
///
/// let now = Duration::from_secs(100);
/// let mut line = Line::new(Patience { calls: 2, time: Duration::from_secs(30) });
/// let first = line.push((), now);
/// let second = line.push((), now);
/// assert!(line.is_full());
/// assert_eq!(line.place_of(second), Some(1));
/// line.leave(0).wake();
/// assert_eq!((line.place_of(first), line.place_of(second)), (None, Some(0)));
/// ```
#[derive(Debug)]
pub struct Line<T> {
    patience: Patience,
    next: Turn,
    /// In the order of their numbers.
    waiting: VecDeque<Waiter<T>>,
}

#[derive(Debug)]
struct Waiter<T> {
    turn: Turn,
    /// The moment at which the call gives up.
    give_up: Duration,
    waker: Option<Waker>,
    note: T,
}

impl<T> Line<T> {
    /// Creates a line in which no call waits.
    pub const fn new(patience: Patience) -> Self {
        Self { patience, next: Turn(NonZeroU64::MIN), waiting: VecDeque::new() }
    }

    /// Returns the bounds.
    pub const fn patience(&self) -> Patience {
        self.patience
    }

    /// Changes the bounds. The moments at which waiting calls give up stay the same.
    pub(crate) const fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Returns `true` if as many calls wait as the bounds allow.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.patience.calls
    }

    /// Returns the number of waiting calls.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns `true` if no call waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a call behind all others, even if the line is full. The call gives up after the longest wait.
    pub fn push(&mut self, note: T, now: Duration) -> Turn {
        let turn = self.next;
        self.next = Turn(turn.0.saturating_add(1));
        let give_up = now.saturating_add(self.patience.time);
        self.waiting.push_back(Waiter { turn, give_up, waker: None, note });
        turn
    }

    /// Returns the number of calls ahead of this one; `None` if it has left the line.
    pub fn place_of(&self, turn: Turn) -> Option<usize> {
        self.waiting.binary_search_by_key(&turn, |waiter| waiter.turn).ok()
    }

    pub(crate) fn note(&self, place: usize) -> Option<&T> {
        self.waiting.get(place).map(|waiter| &waiter.note)
    }

    /// Returns the moment at which a call gives up; zero if there is no call at that place.
    pub fn give_up(&self, place: usize) -> Duration {
        self.waiting.get(place).map_or(Duration::ZERO, |waiter| waiter.give_up)
    }

    /// Returns the notes from the last call to the first.
    pub(crate) fn notes_from_behind(&mut self) -> impl Iterator<Item = &mut T> {
        self.waiting.iter_mut().rev().map(|waiter| &mut waiter.note)
    }

    /// Stores the waker of a call. Returns the one that it replaces, whose destructor may run the user's code.
    #[must_use]
    pub fn set_waker(&mut self, place: usize, waker: &Waker) -> Option<Waker> {
        let known = &mut self.waiting.get_mut(place)?.waker;
        match known {
            Some(known) if known.will_wake(waker) => None,
            known => known.replace(waker.clone()),
        }
    }

    /// Removes a call. If it was the first, the wakers that are returned wake the next.
    pub fn leave(&mut self, place: usize) -> Wakers {
        let _gone = self.remove(place);
        let first = if place == 0 { self.first().first } else { None };
        Wakers { _gone, first }
    }

    /// Removes a call. Returns its waker.
    #[must_use]
    pub(crate) fn remove(&mut self, place: usize) -> Option<Waker> {
        self.waiting.remove(place)?.waker
    }

    /// Removes the first call. Returns its waker, if it has been polled.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.waiting.pop_front()?.waker
    }

    /// Returns the waker of the first call, for an owner that has changed its moment.
    pub fn first(&mut self) -> Wakers {
        let first = self.waiting.front_mut().and_then(|first| first.waker.take());
        Wakers { _gone: None, first }
    }
}

/// The wakers that a change of the line has left: of the first call, and of a call that is gone.
///
/// Wake or drop them after the lock of the line is released.
#[derive(Debug, Default)]
#[must_use = "the first call is woken by `wake`"]
pub struct Wakers {
    _gone: Option<Waker>,
    first: Option<Waker>,
}

impl Wakers {
    /// Wakes the first call.
    pub fn wake(self) {
        self.first.into_iter().for_each(Waker::wake);
    }
}
