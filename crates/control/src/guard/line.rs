//! The line of calls that wait for a guard, in the order in which they came.
//!
//! The line is plain data behind its guard's lock. Wakers are taken out of it, and woken once the lock is released.

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

/// A call's number in a line, which it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(NonZeroU64);

/// The waiting calls. Each has a note of its guard's.
#[derive(Debug)]
pub(crate) struct Line<T> {
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
    pub(crate) const fn new() -> Self {
        Self { next: Turn(NonZeroU64::MIN), waiting: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a call behind all others, which waits from `now` on.
    pub(crate) fn push(&mut self, note: T, now: Duration, longest: Duration) -> Turn {
        let turn = self.next;
        self.next = Turn(turn.0.saturating_add(1));
        let give_up = now.saturating_add(longest);
        self.waiting.push_back(Waiter { turn, give_up, waker: None, note });
        turn
    }

    /// Returns how many calls are before that one, which has left the line if there is no answer.
    pub(crate) fn place_of(&self, turn: Turn) -> Option<usize> {
        self.waiting.binary_search_by_key(&turn, |waiter| waiter.turn).ok()
    }

    pub(crate) fn note(&self, place: usize) -> Option<&T> {
        self.waiting.get(place).map(|waiter| &waiter.note)
    }

    /// Returns the moment at which a call gives up.
    pub(crate) fn give_up(&self, place: usize) -> Duration {
        self.waiting.get(place).map_or(Duration::ZERO, |waiter| waiter.give_up)
    }

    /// Returns the notes from the last call to the first.
    pub(crate) fn notes_from_behind(&mut self) -> impl Iterator<Item = &mut T> {
        self.waiting.iter_mut().rev().map(|waiter| &mut waiter.note)
    }

    /// Keeps the waker of a call. Returns the one that it replaces.
    ///
    /// The caller must release its lock before it drops a returned waker, because that may run the user's code.
    #[must_use]
    pub(crate) fn set_waker(&mut self, place: usize, waker: &Waker) -> Option<Waker> {
        let known = &mut self.waiting.get_mut(place)?.waker;
        match known {
            Some(known) if known.will_wake(waker) => None,
            known => known.replace(waker.clone()),
        }
    }

    /// Removes a call. Returns its waker.
    #[must_use]
    pub(crate) fn remove(&mut self, place: usize) -> Option<Waker> {
        self.waiting.remove(place)?.waker
    }

    /// Removes the first call. Returns its waker, if it was polled since.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.waiting.pop_front()?.waker
    }

    /// Returns the waker of the first call, so that it looks again when its turn is.
    pub(crate) fn first(&mut self) -> Option<Waker> {
        self.waiting.front_mut()?.waker.take()
    }
}
