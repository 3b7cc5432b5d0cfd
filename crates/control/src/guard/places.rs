//! A destination's places, shared by threads, with the queue of calls waiting for a place.
//!
//! One word counts the calls in flight. While no call waits, places are taken and released without the lock. While the
//! bit [`WAITERS`] is set, both need the lock. The word then changes only under the lock, and a released place goes to
//! the first call in the queue in the same step. That call keeps the place until its wait ends. If it has not been
//! polled by then, the next call that takes the lock passes the place on.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Reason, Refused, Resume};

use super::heads::{HEADS, Heads, MoreHeads};
use super::usual_latency::UsualLatency;
use super::wait_queue::{Patience, WaitQueue, WaiterId};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};

/// Set while calls wait in the queue. The count of calls in flight is below this bit.
const WAITERS: u64 = 1 << 32;
/// Set once the places have been removed from the table.
const RETIRED: u64 = 1 << 33;

pub(crate) struct Places {
    word: AtomicU64,
    limit: AtomicU32,
    /// `true` if a place is held until the response body ends.
    hold: AtomicBool,
    kind: GuardKind,
    heads: Heads,
    /// Measured by the calls that waited.
    pub(crate) latency: UsualLatency,
    state: Mutex<WaitingCalls>,
}

struct WaitingCalls {
    queue: WaitQueue,
    /// Calls that were given a place but have not been polled since, ordered by the end of their wait.
    granted: BTreeSet<(Duration, WaiterId)>,
    more_heads: MoreHeads,
}

/// The settings of one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacesSettings {
    pub(crate) limit: u32,
    pub(crate) patience: Patience,
    pub(crate) hold: bool,
    pub(crate) kind: GuardKind,
}

/// The note in the ticket of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceNote {
    /// In the queue, or given a place in the meantime, or too late for one.
    Waiting { waiter: WaiterId, waits_until: Duration },
    Held {
        /// The number of calls in flight at the start, including this one.
        in_flight: u32,
    },
    /// The response head has arrived. The slot stores the time; the lock guards slots from [`HEADS`] on.
    PastHead(usize),
}

/// Counts of a destination's calls that hold a place or wait for one.
///
/// The counts are read one after the other, so they may be briefly inconsistent while calls start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The current limit on calls in flight.
    pub limit: u32,
    /// Calls that hold a place.
    pub in_flight: u32,
    /// Calls in the queue.
    pub waiting: usize,
    /// Calls whose response head has arrived and whose body has not ended, perhaps because it is unread.
    pub past_head: usize,
    /// The time since the oldest response head of the calls in `past_head` arrived, or `None` if there are no such
    /// calls.
    pub oldest_past_head: Option<Duration>,
}

enum PlaceTake {
    Taken(u32),
    Full,
    Retired,
}

impl Places {
    pub(crate) fn new(settings: &PlacesSettings) -> Self {
        let queue = WaitQueue::new(settings.patience);
        let state = WaitingCalls { queue, granted: BTreeSet::new(), more_heads: MoreHeads::default() };
        Self {
            word: AtomicU64::new(0),
            limit: AtomicU32::new(settings.limit),
            hold: AtomicBool::new(settings.hold),
            kind: settings.kind,
            heads: Heads::new(),
            latency: UsualLatency::default(),
            state: Mutex::new(state),
        }
    }

    /// Decides whether to admit a call. Returns `None` if the places were removed from the table.
    #[inline]
    pub(crate) fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<PlaceNote>> {
        match self.take() {
            PlaceTake::Taken(in_flight) => Some(Admit::Admitted(PlaceNote::Held { in_flight })),
            PlaceTake::Full => self.enter(arrival),
            PlaceTake::Retired => None,
        }
    }

    #[inline]
    fn take(&self) -> PlaceTake {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word >= u64::from(self.limit.load(Ordering::Acquire)) {
                return if word & RETIRED == 0 { PlaceTake::Full } else { PlaceTake::Retired };
            }
            match self.replace(word, word + 1) {
                Ok(()) => return PlaceTake::Taken(count(word + 1)),
                Err(seen) => word = seen,
            }
        }
    }

    /// Adds a call to the queue, unless a place has become free or the call may not wait.
    #[cold]
    fn enter(&self, arrival: &Arrival<'_>) -> Option<Admit<PlaceNote>> {
        let mut state = self.lock();
        let woken = self.pass_on(&mut state, arrival.now);
        let admitted = self.enter_line(&mut state, arrival);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        admitted
    }

    fn enter_line(&self, state: &mut WaitingCalls, arrival: &Arrival<'_>) -> Option<Admit<PlaceNote>> {
        loop {
            // A place may have become free in the meantime.
            match self.take() {
                PlaceTake::Taken(in_flight) => return Some(Admit::Admitted(PlaceNote::Held { in_flight })),
                PlaceTake::Full => {}
                PlaceTake::Retired => return None,
            }
            if let Err(refused) = self.may_wait(state, arrival) {
                return Some(Admit::Refused(refused));
            }
            let word = self.word.load(Ordering::Relaxed);
            let is_full = word >= u64::from(self.limit());
            if is_full && self.replace(word, word | WAITERS).is_ok() {
                let waiter = state.queue.push(arrival);
                let waits_until = state.queue.waits_until(waiter);
                return Some(Admit::Waiting(PlaceNote::Waiting { waiter, waits_until }));
            }
        }
    }

    fn may_wait(&self, state: &WaitingCalls, arrival: &Arrival<'_>) -> Result<(), Refused> {
        if !arrival.patient || self.limit() == 0 || state.queue.is_full() {
            return Err(Refused::new(self.kind, Reason::Full));
        }
        if arrival.latest.is_some_and(|latest| latest <= arrival.now) {
            return Err(Refused::new(self.kind, Reason::WaitTooLong));
        }
        Ok(())
    }

    /// Decides whether a waiting call may proceed.
    pub(crate) fn resume(&self, note: &mut PlaceNote, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let PlaceNote::Waiting { waiter, waits_until } = *note else { return Resume::Admitted };
        // Dropped after the lock is released.
        let _gone;
        let mut state = self.lock();
        let is_granted = |state: &mut WaitingCalls| state.granted.remove(&(waits_until, waiter));
        // A call that is polled too late still owns its place, unless the place was passed on.
        let mut granted = is_granted(&mut state);
        let woken = self.pass_on(&mut state, arrival.now);
        granted = granted || is_granted(&mut state);
        let next = if granted {
            *note = PlaceNote::Held { in_flight: count(self.word.load(Ordering::Relaxed)) };
            Resume::Admitted
        } else if arrival.now < waits_until && state.queue.position_of(waiter).is_some() {
            _gone = state.queue.set_waker(waiter, waker);
            // A place whose call is not polled may be passed on to this call.
            let passed_on = state.granted.first().map(|(until, _)| *until);
            let until = passed_on.map_or(waits_until, |passed_on| passed_on.min(waits_until));
            Resume::Waiting { until: Some(until) }
        } else {
            _gone = self.leave(&mut state, waiter);
            Resume::Refused(Refused::new(self.kind, Reason::WaitTooLong))
        };
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        next
    }

    /// Ends a call. Returns the note for the body if the place is held until it ends.
    #[inline]
    pub(crate) fn end_call(&self, note: PlaceNote, end: &End, now: Duration) -> Option<PlaceNote> {
        let holds = || matches!(end, End::Judged { .. }) && self.holds();
        match note {
            PlaceNote::Held { .. } if !holds() => {
                self.release(now);
                None
            }
            _ => self.end_otherwise(note, now),
        }
    }

    /// Returns `true` if a place is held until the response body ends.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.hold.load(Ordering::Relaxed)
    }

    /// Slow path of [`end_call`](Self::end_call): a waiting call ends, a response head arrives and the place is kept,
    /// or the body after such a head ends.
    #[inline(never)]
    fn end_otherwise(&self, note: PlaceNote, now: Duration) -> Option<PlaceNote> {
        match note {
            PlaceNote::Held { in_flight } => {
                if let Some(slot) = self.heads.note(in_flight, now) {
                    return Some(PlaceNote::PastHead(slot));
                }
            }
            PlaceNote::PastHead(slot) if slot < HEADS => {
                self.heads.clear(slot);
                self.release(now);
                return None;
            }
            PlaceNote::Waiting { .. } | PlaceNote::PastHead(_) => {}
        }
        self.end_behind_lock(note, now)
    }

    /// Ends a call with an entry in the queue, or with a head time guarded by the lock.
    fn end_behind_lock(&self, note: PlaceNote, now: Duration) -> Option<PlaceNote> {
        let _gone;
        let mut state = self.lock();
        match note {
            PlaceNote::Held { .. } => return Some(PlaceNote::PastHead(HEADS + state.more_heads.insert(now))),
            PlaceNote::Waiting { waiter, waits_until } => {
                if !state.granted.remove(&(waits_until, waiter)) {
                    _gone = self.leave(&mut state, waiter);
                    let next = Self::next(&mut state);
                    drop(state);
                    next.into_iter().for_each(Waker::wake);
                    return None;
                }
            }
            PlaceNote::PastHead(slot) => state.more_heads.remove(slot.saturating_sub(HEADS)),
        }
        drop(state);
        self.release(now);
        None
    }

    #[inline]
    fn release(&self, now: Duration) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & WAITERS == 0 {
            match self.replace(word, word - 1) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
        self.release_to_waiting(now);
    }

    /// Releases a place while calls wait.
    #[cold]
    fn release_to_waiting(&self, now: Duration) {
        let mut state = self.lock();
        // One atomic step, because other threads count without the lock if no call is waiting anymore.
        self.word.fetch_sub(1, Ordering::AcqRel);
        let woken = self.pass_on(&mut state, now);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Passes free places to the first calls in the queue, including places of calls that were not polled in time.
    /// Returns the wakers of all calls that have left the queue, and of the next call.
    fn pass_on(&self, state: &mut WaitingCalls, now: Duration) -> Vec<Waker> {
        while state.granted.first().is_some_and(|(waits_until, _)| *waits_until <= now) {
            state.granted.pop_first();
            self.word.fetch_sub(1, Ordering::AcqRel);
        }
        let (mut woken, mut gives) = (Vec::new(), false);
        while let Some(waiter) = state.queue.front() {
            let waits_until = state.queue.waits_until(waiter);
            if waits_until > now {
                if count(self.word.load(Ordering::Relaxed)) >= self.limit() {
                    break;
                }
                self.word.fetch_add(1, Ordering::AcqRel);
                gives |= state.granted.insert((waits_until, waiter));
            }
            woken.extend(self.leave(state, waiter));
        }
        if gives {
            woken.extend(Self::next(state));
        }
        woken
    }

    /// Returns the waker of the first call in the queue, if a place may be passed on to it before it stops waiting.
    /// That call must be polled again, to learn when to check.
    fn next(state: &mut WaitingCalls) -> Option<Waker> {
        let (until, _) = state.granted.first()?;
        let next = state.queue.front()?;
        (state.queue.waits_until(next) > *until).then(|| state.queue.first_waker()).flatten()
    }

    /// Removes a call from the queue. Returns its waker.
    fn leave(&self, state: &mut WaitingCalls, waiter: WaiterId) -> Option<Waker> {
        let gone = state.queue.remove(waiter);
        self.note_empty(state);
        gone
    }

    /// If no call waits, lets calls take and release places without the lock again.
    fn note_empty(&self, state: &WaitingCalls) {
        if state.queue.is_empty() {
            self.word.fetch_and(!WAITERS, Ordering::AcqRel);
        }
    }

    /// Changes the limit. If it is lowered, calls in flight above the new limit may finish. If it is raised, the caller
    /// must call [`fill`](Self::fill) afterwards.
    pub(crate) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Release);
    }

    /// Gives free places to waiting calls, and wakes them. No other lock may be held.
    pub(crate) fn fill(&self) {
        let woken = self.pass_on(&mut self.lock(), Duration::ZERO);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Adopts new settings except the limit.
    pub(crate) fn adopt(&self, settings: &PlacesSettings) {
        self.hold.store(settings.hold, Ordering::Relaxed);
        self.lock().queue.set_patience(settings.patience);
    }

    /// Returns the decision that [`admit`](Self::admit) would make.
    pub(crate) fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let word = self.word.load(Ordering::Relaxed);
        if word < u64::from(self.limit()) || word & RETIRED != 0 {
            return Ok(());
        }
        self.may_wait(&self.lock(), arrival)
    }

    /// Retires the places if no call holds one. Returns `true` if they were retired.
    pub(crate) fn retire(&self) -> bool {
        self.replace(0, RETIRED).is_ok()
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Acquire)
    }

    pub(crate) fn usage(&self, now: Duration) -> Usage {
        let state = self.lock();
        let heads: Vec<_> = self.heads.since().chain(state.more_heads.since()).collect();
        Usage {
            limit: self.limit(),
            in_flight: count(self.word.load(Ordering::Relaxed)),
            waiting: state.queue.len(),
            past_head: heads.len(),
            oldest_past_head: heads.iter().min().map(|since| now.saturating_sub(*since)),
        }
    }

    /// Returns the counts for `Debug`, which has no clock, or `None` if all places are free.
    pub(crate) fn in_use(&self) -> Option<Usage> {
        let usage = Usage { oldest_past_head: None, ..self.usage(Duration::ZERO) };
        (usage.in_flight > 0).then_some(usage)
    }

    #[inline]
    fn replace(&self, seen: u64, word: u64) -> Result<(), u64> {
        self.word.compare_exchange_weak(seen, word, Ordering::AcqRel, Ordering::Relaxed).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, WaitingCalls> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of calls in flight.
#[allow(clippy::cast_possible_truncation, reason = "the count is the low half of the word")]
const fn count(word: u64) -> u32 {
    word as u32
}
