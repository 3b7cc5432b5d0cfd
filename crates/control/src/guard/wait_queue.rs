//! A bounded queue of calls waiting for a guard, in order of arrival.
//!
//! The queue is plain data, guarded by its owner's lock. Wakers are taken out of it, and woken after the lock is
//! released.

use std::num::NonZeroU64;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::Arrival;

/// The limits on waiting calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The maximum number of calls that may wait in a queue, or 0 if none may.
    pub calls: usize,
    /// The maximum time that a call waits.
    pub time: Duration,
}

impl Patience {
    /// No calls may wait.
    pub(crate) const NONE: Self = Self { calls: 0, time: Duration::ZERO };
}

/// The id of a call in a queue. It stays the same until the call leaves the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterId(NonZeroU64);

/// A first-come, first-served queue of waiting calls. Each step takes logarithmic time.
///
/// The owner guards the queue with a lock, and checks that the queue is not [full](Self::is_full) before adding a call.
/// Wakers returned by methods must be woken or dropped after the lock is released.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::{WaitQueue, Patience};
/// # use reattempt_core::guard::Arrival;
///
/// let arrival = Arrival::new("a.example", Duration::from_secs(100));
/// let mut queue = WaitQueue::new(Patience { calls: 2, time: Duration::from_secs(30) });
/// let first = queue.push(&arrival);
/// let second = queue.push(&arrival);
/// assert!(queue.is_full());
/// assert_eq!(queue.position_of(second), Some(1));
/// queue.leave(first).wake();
/// assert_eq!((queue.position_of(first), queue.position_of(second)), (None, Some(0)));
/// ```
#[derive(Debug)]
pub struct WaitQueue {
    patience: Patience,
    next: WaiterId,
    /// In order of arrival. Entries of calls that have left are kept until they are in the majority.
    entries: Vec<Entry>,
    /// The waiting calls, as a Fenwick tree over the entries.
    counts: Vec<usize>,
    /// No call before this entry is waiting.
    head: usize,
    len: usize,
}

#[derive(Debug)]
struct Entry {
    id: WaiterId,
    /// `None` once the call has left.
    waiter: Option<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    /// The time until which the call waits.
    until: Duration,
    waker: Option<Waker>,
}

impl WaitQueue {
    /// Creates an empty queue.
    pub const fn new(patience: Patience) -> Self {
        let next = WaiterId(NonZeroU64::MIN);
        Self { patience, next, entries: Vec::new(), counts: Vec::new(), head: 0, len: 0 }
    }

    /// Returns the limits on waiting.
    pub const fn patience(&self) -> Patience {
        self.patience
    }

    /// Changes the bounds. Calls that are already waiting are not affected.
    pub(crate) const fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Returns `true` if the queue has its maximum number of waiting calls.
    pub const fn is_full(&self) -> bool {
        self.len >= self.patience.calls
    }

    /// Returns the number of waiting calls.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if no call is waiting.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a call at the end, even if the queue is full. The call waits until its deadline, but no longer than the
    /// maximum wait.
    pub fn push(&mut self, arrival: &Arrival<'_>) -> WaiterId {
        let id = self.next;
        self.next = WaiterId(id.0.saturating_add(1));
        let longest = arrival.now.saturating_add(self.patience.time);
        let until = arrival.latest.map_or(longest, |latest| latest.min(longest));
        let index = self.entries.len();
        // A Fenwick node counts the entries from `first` to its own.
        let first = (index + 1) & index;
        self.counts.push(self.ahead_of(index) - self.ahead_of(first) + 1);
        self.entries.push(Entry { id, waiter: Some(Waiter { until, waker: None }) });
        self.len += 1;
        id
    }

    /// Returns the number of calls ahead of this one, or `None` if it has left the queue.
    pub fn position_of(&self, id: WaiterId) -> Option<usize> {
        let index = self.index_of(id)?;
        self.entries.get(index)?.waiter.as_ref()?;
        Some(self.ahead_of(index))
    }

    /// Returns the time until which a call waits, or zero if it has left the queue.
    pub fn waits_until(&self, id: WaiterId) -> Duration {
        let entry = self.index_of(id).and_then(|index| self.entries.get(index));
        entry.and_then(|entry| entry.waiter.as_ref()).map_or(Duration::ZERO, |call| call.until)
    }

    /// Stores a call's waker. Returns the replaced waker, whose destructor may run user code.
    #[must_use]
    pub fn set_waker(&mut self, id: WaiterId, waker: &Waker) -> Option<Waker> {
        let index = self.index_of(id)?;
        let known = &mut self.entries.get_mut(index)?.waiter.as_mut()?.waker;
        match known {
            Some(known) if known.will_wake(waker) => None,
            known => known.replace(waker.clone()),
        }
    }

    /// Removes a call. If it was first, the returned wakers wake the next call.
    pub fn leave(&mut self, id: WaiterId) -> Wakers {
        let was_first = self.front() == Some(id);
        let _gone = self.remove(id);
        let first = if was_first { self.first().first } else { None };
        Wakers { _gone, first }
    }

    /// Removes a call. Returns its waker.
    #[must_use]
    pub(crate) fn remove(&mut self, id: WaiterId) -> Option<Waker> {
        let index = self.index_of(id)?;
        let gone = self.entries.get_mut(index)?.waiter.take()?;
        self.len -= 1;
        let mut number = index + 1;
        while let Some(count) = self.counts.get_mut(number - 1) {
            *count -= 1;
            number += lowest_bit(number);
        }
        while self.entries.get(self.head).is_some_and(|entry| entry.waiter.is_none()) {
            self.head += 1;
        }
        if self.entries.len() > 2 * self.len + SPARE {
            self.compact();
        }
        gone.waker
    }

    /// Drops the entries of calls that have left.
    fn compact(&mut self) {
        self.entries.retain(|entry| entry.waiter.is_some());
        self.counts.clear();
        self.counts.extend((1..=self.entries.len()).map(lowest_bit));
        self.head = 0;
    }

    /// Returns the id of the first call.
    pub(crate) fn front(&self) -> Option<WaiterId> {
        self.entries.get(self.head).map(|entry| entry.id)
    }

    /// Returns the waker of the first call. Wake it if the time at which that call may proceed has changed.
    pub fn first(&mut self) -> Wakers {
        Wakers { _gone: None, first: self.first_waker() }
    }

    /// Takes the wakers of the first `calls` calls that have one. A call that was woken and has not been polled since
    /// has none.
    #[must_use]
    pub fn first_wakers(&mut self, calls: usize) -> Vec<Waker> {
        let waiting = self.entries.iter_mut().skip(self.head).filter_map(|entry| entry.waiter.as_mut());
        waiting.filter_map(|call| call.waker.take()).take(calls).collect()
    }

    /// Returns the id of the first call if its wait has ended. Such a call is not being polled, so its owner may remove
    /// it.
    pub fn late(&self, now: Duration) -> Option<WaiterId> {
        self.front().filter(|first| self.waits_until(*first) <= now)
    }

    /// Takes the waker of the first call.
    pub(crate) fn first_waker(&mut self) -> Option<Waker> {
        let first = self.entries.get_mut(self.head).and_then(|entry| entry.waiter.as_mut());
        first.and_then(|first| first.waker.take())
    }

    fn index_of(&self, id: WaiterId) -> Option<usize> {
        self.entries.binary_search_by_key(&id, |entry| entry.id).ok()
    }

    /// Returns the number of waiting calls ahead of an entry.
    fn ahead_of(&self, mut index: usize) -> usize {
        let mut ahead = 0;
        while let Some(before) = index.checked_sub(1) {
            ahead += self.counts.get(before).copied().unwrap_or(0);
            index &= before;
        }
        ahead
    }
}

/// The number of leftover entries that a short queue keeps.
const SPARE: usize = 16;

const fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

/// The wakers to call after a change to the queue: those of the call that is now first, and of a call that left.
///
/// Wake or drop them after the queue's lock is released.
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
