//! The places of one destination, as threads share them, with the line of calls that wait for one.
//!
//! The calls in flight are counted in one word, which a take and a release change without the lock while no call
//! waits. The bit [`WAITERS`] sends both behind the lock. The word then changes under the lock alone, and a released
//! place goes to the first in line in the same step. A call that is no longer in line has been given a place.

use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Reason, Refused, Resume};

use super::heads::{HEADS, Heads, MoreHeads};
use super::line::{Line, Patience, Turn};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};

/// Calls wait in line. The count of calls in flight is below this bit.
const WAITERS: u64 = 1 << 32;
/// The places have left the table.
const RETIRED: u64 = 1 << 33;

pub(crate) struct Places {
    word: AtomicU64,
    limit: AtomicU32,
    /// A place is held until the response body ends.
    hold: AtomicBool,
    kind: GuardKind,
    heads: Heads,
    state: Mutex<State>,
}

struct State {
    line: Line<()>,
    more_heads: MoreHeads,
}

/// The settings of one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) limit: u32,
    pub(crate) patience: Patience,
    pub(crate) hold: bool,
    pub(crate) kind: GuardKind,
}

/// The note in the ticket of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// In line, or given a place since.
    Waiting(Turn),
    Held {
        /// The calls in flight at the start, this one included.
        in_flight: u32,
    },
    /// The response head has arrived. The slot has the moment; from [`HEADS`] on it is behind the lock.
    PastHead(usize),
}

/// The use of the places of one destination.
///
/// The numbers are read one after the other. While calls come and go they may disagree for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The present limit on calls in flight.
    pub limit: u32,
    /// Calls that hold a place.
    pub in_flight: u32,
    /// Calls in line.
    pub waiting: usize,
    /// Calls whose response head has arrived and whose body has not ended, perhaps because it is not read.
    pub past_head: usize,
    /// The time since the oldest of those heads arrived; `None` if there is none.
    pub oldest_past_head: Option<Duration>,
}

enum Take {
    Taken(u32),
    Full,
    Retired,
}

impl Places {
    pub(crate) fn new(rule: &Rule) -> Self {
        let state = State { line: Line::new(rule.patience), more_heads: MoreHeads::default() };
        Self {
            word: AtomicU64::new(0),
            limit: AtomicU32::new(rule.limit),
            hold: AtomicBool::new(rule.hold),
            kind: rule.kind,
            heads: Heads::new(),
            state: Mutex::new(state),
        }
    }

    /// Decides about a call. `None`: the places have left the table.
    #[inline]
    pub(crate) fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<Pass>> {
        match self.take() {
            Take::Taken(in_flight) => Some(Admit::Admitted(Pass::Held { in_flight })),
            Take::Full => self.enter(arrival),
            Take::Retired => None,
        }
    }

    #[inline]
    fn take(&self) -> Take {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word >= u64::from(self.limit.load(Ordering::Acquire)) {
                return if word & RETIRED == 0 { Take::Full } else { Take::Retired };
            }
            match self.replace(word, word + 1) {
                Ok(()) => return Take::Taken(count(word + 1)),
                Err(seen) => word = seen,
            }
        }
    }

    /// Adds a call to the line, unless a place has become free or the call may not wait.
    #[cold]
    fn enter(&self, arrival: &Arrival<'_>) -> Option<Admit<Pass>> {
        let mut state = self.lock();
        loop {
            // A place may have become free meanwhile.
            match self.take() {
                Take::Taken(in_flight) => return Some(Admit::Admitted(Pass::Held { in_flight })),
                Take::Full => {}
                Take::Retired => return None,
            }
            if let Err(refused) = self.may_wait(&state, arrival) {
                return Some(Admit::Refused(refused));
            }
            let word = self.word.load(Ordering::Relaxed);
            let is_full = word >= u64::from(self.limit());
            if is_full && self.replace(word, word | WAITERS).is_ok() {
                return Some(Admit::Waiting(Pass::Waiting(state.line.push((), arrival.now))));
            }
        }
    }

    fn may_wait(&self, state: &State, arrival: &Arrival<'_>) -> Result<(), Refused> {
        if !arrival.patient || self.limit() == 0 || state.line.is_full() {
            return Err(Refused::new(self.kind, Reason::Full));
        }
        if arrival.latest.is_some_and(|latest| latest <= arrival.now) {
            return Err(Refused::new(self.kind, Reason::WaitTooLong));
        }
        Ok(())
    }

    /// Decides about a call that waits.
    pub(crate) fn resume(&self, pass: &mut Pass, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let Pass::Waiting(turn) = *pass else { return Resume::Admitted };
        // Dropped after the lock.
        let _gone;
        let mut state = self.lock();
        let Some(place) = state.line.place_of(turn) else {
            *pass = Pass::Held { in_flight: count(self.word.load(Ordering::Relaxed)) };
            return Resume::Admitted;
        };
        let until = arrival.latest.unwrap_or(Duration::MAX).min(state.line.give_up(place));
        if arrival.now < until {
            _gone = state.line.set_waker(place, waker);
            return Resume::Waiting { until: Some(until) };
        }
        _gone = self.leave(&mut state, place);
        Resume::Refused(Refused::new(self.kind, Reason::WaitTooLong))
    }

    /// Ends a call. Returns what is held until the response body ends.
    #[inline]
    pub(crate) fn end(&self, pass: Pass, end: &End, now: Duration) -> Option<Pass> {
        let holds = || matches!(end, End::Judged { .. }) && self.holds();
        match pass {
            Pass::Held { .. } if !holds() => {
                self.release();
                None
            }
            _ => self.end_otherwise(pass, now),
        }
    }

    /// Returns `true` if a place is held until the response body ends.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.hold.load(Ordering::Relaxed)
    }

    /// Ends a call that waits, or whose response head has arrived now or before.
    #[inline(never)]
    fn end_otherwise(&self, pass: Pass, now: Duration) -> Option<Pass> {
        match pass {
            Pass::Held { in_flight } => {
                if let Some(slot) = self.heads.note(in_flight, now) {
                    return Some(Pass::PastHead(slot));
                }
            }
            Pass::PastHead(slot) if slot < HEADS => {
                self.heads.clear(slot);
                self.release();
                return None;
            }
            Pass::Waiting(_) | Pass::PastHead(_) => {}
        }
        self.end_behind_lock(pass, now)
    }

    /// Ends a call by the line, or by the moments behind the lock.
    fn end_behind_lock(&self, pass: Pass, now: Duration) -> Option<Pass> {
        let _gone;
        let mut state = self.lock();
        match pass {
            Pass::Held { .. } => return Some(Pass::PastHead(HEADS + state.more_heads.insert(now))),
            Pass::Waiting(turn) => {
                if let Some(place) = state.line.place_of(turn) {
                    _gone = self.leave(&mut state, place);
                    return None;
                }
            }
            Pass::PastHead(slot) => state.more_heads.remove(slot.saturating_sub(HEADS)),
        }
        drop(state);
        self.release();
        None
    }

    #[inline]
    fn release(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & WAITERS == 0 {
            match self.replace(word, word - 1) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
        self.release_to_waiting();
    }

    /// Releases a place while calls wait.
    #[cold]
    fn release_to_waiting(&self) {
        let mut state = self.lock();
        // One atomic step: if no call waits any longer, other threads count without the lock.
        self.word.fetch_sub(1, Ordering::AcqRel);
        let granted = self.grant(&mut state);
        drop(state);
        granted.into_iter().for_each(Waker::wake);
    }

    /// Gives the free places to the first calls in line. Returns their wakers.
    fn grant(&self, state: &mut State) -> Vec<Waker> {
        let mut granted = Vec::new();
        while !state.line.is_empty() {
            let word = self.word.load(Ordering::Relaxed);
            if count(word) >= self.limit() {
                break;
            }
            self.word.fetch_add(1, Ordering::AcqRel);
            granted.extend(state.line.pop());
            self.note_empty(state);
        }
        granted
    }

    /// Removes a call from the line. Returns its waker.
    fn leave(&self, state: &mut State, place: usize) -> Option<Waker> {
        let gone = state.line.remove(place);
        self.note_empty(state);
        gone
    }

    /// Lets takes and releases go without the lock again if no call waits.
    fn note_empty(&self, state: &State) {
        if state.line.is_empty() {
            self.word.fetch_and(!WAITERS, Ordering::AcqRel);
        }
    }

    /// Changes the limit. Calls beyond a lower one finish; a higher one admits calls that wait.
    pub(crate) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Release);
        let granted = self.grant(&mut self.lock());
        granted.into_iter().for_each(Waker::wake);
    }

    /// Adopts new settings but for the limit.
    pub(crate) fn adopt(&self, rule: &Rule) {
        self.hold.store(rule.hold, Ordering::Relaxed);
        self.lock().line.set_patience(rule.patience);
    }

    /// Returns the decision that [`admit`](Self::admit) would make.
    pub(crate) fn check(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let word = self.word.load(Ordering::Relaxed);
        if word < u64::from(self.limit()) || word & RETIRED != 0 {
            return Ok(());
        }
        self.may_wait(&self.lock(), arrival)
    }

    /// Retires the places if no call holds one. Returns `true` if it did.
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
            waiting: state.line.len(),
            past_head: heads.len(),
            oldest_past_head: heads.iter().min().map(|since| now.saturating_sub(*since)),
        }
    }

    /// Returns the use for `Debug`, which has no clock, if there is any.
    pub(crate) fn in_use(&self) -> Option<Usage> {
        let usage = Usage { oldest_past_head: None, ..self.usage(Duration::ZERO) };
        (usage.in_flight > 0).then_some(usage)
    }

    #[inline]
    fn replace(&self, seen: u64, word: u64) -> Result<(), u64> {
        self.word.compare_exchange_weak(seen, word, Ordering::AcqRel, Ordering::Relaxed).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the calls in flight.
#[allow(clippy::cast_possible_truncation, reason = "the count is the low half of the word")]
const fn count(word: u64) -> u32 {
    word as u32
}
