//! The line of calls that wait for a guard or for their turns, in the order in which they came.
//!
//! The line is plain data behind its owner's lock. Wakers are taken out of it, and woken once the lock is released.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::task::Waker;
use std::time::Duration;

/// The bounds on waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// The most calls that wait for one destination; 0 if none may.
    pub(crate) calls: usize,
    /// The longest wait of one call.
    pub(crate) time: Duration,
}

impl Patience {
    /// No call waits.
    pub(crate) const NONE: Self = Self { calls: 0, time: Duration::ZERO };
}

/// The number of a call in a line. It stays the same until the call leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(NonZeroU64);

/// A line of waiting calls, first come first served. Each has a note of the line's owner.
///
/// The owner keeps the line behind a lock and bounds its length. Wakers that methods return must be woken or dropped
/// after the lock is released.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::Line;
///
/// let (now, longest) = (Duration::from_secs(100), Duration::from_secs(30));
/// let mut line = Line::new();
/// let first = line.push((), now, longest);
/// let second = line.push((), now, longest);
/// assert_eq!(line.place_of(second), Some(1));
/// assert!(line.remove(0).is_none(), "it was never polled");
/// assert_eq!((line.place_of(first), line.place_of(second)), (None, Some(0)));
/// ```
#[derive(Debug)]
pub struct Line<T> {
    next: Turn,
    /// By number.
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
    pub const fn new() -> Self {
        Self { next: Turn(NonZeroU64::MIN), waiting: VecDeque::new() }
    }

    /// Returns the number of waiting calls.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns `true` if no call waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a call behind all others. It gives up after waiting for `longest` from `now`.
    pub fn push(&mut self, note: T, now: Duration, longest: Duration) -> Turn {
        let turn = self.next;
        self.next = Turn(turn.0.saturating_add(1));
        let give_up = now.saturating_add(longest);
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

    /// Removes a call. Returns its waker.
    #[must_use]
    pub fn remove(&mut self, place: usize) -> Option<Waker> {
        self.waiting.remove(place)?.waker
    }

    /// Removes the first call. Returns its waker, if it has been polled.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.waiting.pop_front()?.waker
    }

    /// Takes the waker of the first call, whose turn may have moved.
    pub fn first(&mut self) -> Option<Waker> {
        self.waiting.front_mut()?.waker.take()
    }
}

/// A line in which no call waits.
impl<T> Default for Line<T> {
    fn default() -> Self {
        Self::new()
    }
}
