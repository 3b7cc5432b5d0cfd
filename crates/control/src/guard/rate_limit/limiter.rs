//! A destination's tokens, shared by threads, with the queue of calls waiting for tokens.
//!
//! A waiting call has already taken its token in advance. It may proceed as soon as time has added that token, even if
//! earlier calls are not polled. The queue's tokens are *slots*: the first call has the first slot. A call that leaves
//! frees the last slot, so all calls behind it move up.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Quota, Reason, Refused, Resume};
use reattempt_core::snapshot::Part;

use super::super::time::nanos;
use super::super::usual_latency::UsualLatency;
use super::super::wait_queue::{Patience, WaitQueue, WaiterId, Wakers};
use super::limit::{Limit, TOKEN};
use super::tokens::{Booking, Tokens, Unbookable};
use crate::millionths::units;
use crate::sync::{Mutex, MutexGuard};

/// The settings of one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimiterSettings {
    pub(crate) limit: Limit,
    /// In millionths.
    pub(crate) burst: u64,
    pub(crate) patience: Patience,
    /// `None` unless the limiter follows a server's quota.
    pub(crate) following: Option<Following>,
    pub(crate) kind: GuardKind,
}

/// The bounds within which the limiter follows a server's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Following {
    pub(crate) longest_reset: Duration,
    pub(crate) trial_interval: Duration,
}

impl Following {
    pub(crate) const DEFAULT: Self =
        Self { longest_reset: Duration::from_secs(3600), trial_interval: Duration::from_secs(60) };
}

pub(crate) struct Limiter {
    state: Mutex<LimiterState>,
    /// Measured by the calls that waited.
    pub(crate) latency: UsualLatency,
}

struct LimiterState {
    tokens: Tokens,
    queue: WaitQueue,
    /// The position just after the token of each call in the queue, in order.
    slots: VecDeque<u64>,
    following: Option<Following>,
    kind: GuardKind,
    /// `true` if the rate or the burst was set for this destination only.
    own: bool,
    retired: bool,
}

/// The limiter's note in a call's ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimiterNote {
    /// The token taken, in millionths, or 0 if the rate was infinite.
    cost: u64,
    /// The inflow up to which the token may be returned.
    full_at: u64,
    /// `Some` while the call waits.
    waiter: Option<WaiterId>,
}

impl LimiterNote {
    /// The note of a call that no limiter has counted.
    pub(crate) const UNCOUNTED: Self = Self { cost: 0, full_at: 0, waiter: None };
}

/// The state that may be discarded when a limiter is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forgets {
    /// Nothing: the limiter is evicted only if a new one would behave the same.
    Nothing,
    /// A quota stated by the server may be discarded, but no record of tokens taken.
    Quota,
    /// A learned rate and its tokens may be discarded.
    Rate,
}

/// A snapshot of a limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// In millionths.
    pub(crate) balance: i64,
    pub(crate) limit: Limit,
    pub(crate) burst: u64,
    pub(crate) waiting: usize,
    /// `true` if the server's responses lower the rate.
    pub(crate) follows: bool,
}

impl Look {
    /// Adds the rate with its tokens, unless it allows everything, and the waiting calls.
    pub(crate) fn inspect(self, part: Part) -> Part {
        let tokens = (!self.limit.is_infinite()).then(|| units(self.balance));
        let part = self.limit.inspect(part).field_if("tokens", tokens);
        part.field("waiting", self.waiting).field("lowered_by_server", self.follows)
    }
}

impl Limiter {
    pub(crate) fn new(settings: LimiterSettings) -> Self {
        let state = LimiterState {
            tokens: Tokens::new(settings.limit, settings.burst),
            queue: WaitQueue::new(settings.patience),
            slots: VecDeque::new(),
            following: settings.following,
            kind: settings.kind,
            own: false,
            retired: false,
        };
        Self { state: Mutex::new(state), latency: UsualLatency::default() }
    }

    /// Takes `cost` millionths if they are available. Returns `None` if the limiter was removed from the table.
    #[inline]
    pub(crate) fn allow(&self, cost: u64, now: Duration) -> Option<bool> {
        let mut state = self.lock();
        state.advance(now);
        (!state.retired).then(|| state.tokens.take(cost))
    }

    /// Reserves `cost` millionths in advance, if they will be available by `latest`.
    pub(crate) fn reserve(&self, cost: u64, now: Duration, latest: Duration) -> Option<Result<Booking, Unbookable>> {
        let mut state = self.lock();
        state.advance(now);
        (!state.retired).then(|| {
            let booking = state.tokens.book(cost, nanos(latest))?;
            state.tokens.promise(&booking);
            Ok(booking)
        })
    }

    /// Decides whether to admit a call. Returns `None` if the limiter was removed from the table.
    #[inline]
    pub(crate) fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<LimiterNote>> {
        let mut state = self.lock();
        state.advance(arrival.now);
        if state.retired {
            return None;
        }
        let is_infinite = state.tokens.is_infinite();
        if state.tokens.take(TOKEN) {
            let cost = if is_infinite { 0 } else { TOKEN };
            let full_at = state.tokens.full_at(state.queue.len());
            return Some(Admit::Admitted(LimiterNote { cost, full_at, waiter: None }));
        }
        Some(state.admit_later(arrival))
    }

    /// Returns the decision that [`admit`](Self::admit) would make.
    pub(crate) fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let mut state = self.lock();
        let now = state.advance(arrival.now);
        let latest = state.latest(arrival).max(now);
        let mut copy = state.tokens;
        copy.book(TOKEN, latest).map(drop).map_err(|unbookable| state.refusal(unbookable, arrival))
    }

    /// Decides whether a waiting call may proceed.
    pub(crate) fn resume(&self, note: &mut LimiterNote, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let Some(waiter) = note.waiter else { return Resume::Admitted };
        // Dropped after the lock is released.
        let _gone;
        let mut state = self.lock();
        let now = state.advance(arrival.now);
        let Some(slot) = state.slot_of(waiter) else { return Resume::Admitted };
        let due = state.tokens.due_for(slot);
        let is_due = due.is_some_and(|due| due <= now);
        if !is_due {
            let latest = arrival.latest.map_or(u64::MAX, |latest| nanos(latest).saturating_sub(1));
            let latest = latest.min(nanos(state.queue.waits_until(waiter)));
            if let Some(due) = due.filter(|due| *due <= latest) {
                _gone = state.queue.set_waker(waiter, waker);
                return Resume::Waiting { until: Some(Duration::from_nanos(due)) };
            }
        }
        note.waiter = None;
        let wakers = state.leave(waiter, is_due);
        let next = if is_due {
            note.full_at = state.tokens.full_at(state.queue.len());
            Resume::Admitted
        } else {
            Resume::Refused(state.refusal(Unbookable::TooLate(due), arrival))
        };
        drop(state);
        wakers.wake();
        next
    }

    /// Returns the token of a call that was not sent.
    pub(crate) fn unsent(&self, note: &LimiterNote, now: Duration) {
        let mut state = self.lock();
        let now = state.advance(now);
        let waits = note.waiter.and_then(|waiter| Some((waiter, state.slot_of(waiter)?)));
        let is_due = |slot| state.tokens.due_for(slot).is_some_and(|due| due <= now);
        let is_due = waits.is_none_or(|(_, slot)| is_due(slot));
        let full_at = waits.map_or(note.full_at, |(_, slot)| state.tokens.late_at(slot));
        let left = waits.map(|(waiter, _)| state.leave(waiter, is_due));
        // A token that was already added is back in the bucket, for the call that is now first.
        let wakers = if is_due {
            let waiting = state.queue.len();
            state.tokens.give_back(note.cost, full_at, waiting);
            [left, Some(state.queue.first())]
        } else {
            [left, None]
        };
        drop(state);
        wakers.into_iter().flatten().for_each(Wakers::wake);
    }

    /// Returns the tokens of a reservation, except those that later reservations have borrowed.
    pub(crate) fn cancel(&self, booking: &Booking, now: Duration) {
        let mut state = self.lock();
        state.advance(now);
        let LimiterState { tokens, slots, queue, .. } = &mut *state;
        tokens.cancel(booking, slots);
        let wakers = queue.first();
        drop(state);
        wakers.wake();
    }

    /// Changes the tokens from now on. If `own`, the rate and the burst apply to this destination only.
    ///
    /// Returns the queue's wakers, or `None` if the limiter was removed from the table.
    pub(crate) fn change(&self, now: Duration, own: bool, change: impl FnOnce(&mut Tokens)) -> Option<Wakers> {
        let mut state = self.lock();
        state.advance(now);
        if state.retired {
            return None;
        }
        change(&mut state.tokens);
        state.own |= own;
        Some(state.queue.first())
    }

    /// Follows a server's quota. Returns the queue's wakers, or `None` if the limiter was removed from the table or
    /// follows no quota.
    // Not inlined, because few responses state a quota.
    #[inline(never)]
    pub(crate) fn follow(&self, quota: Quota, now: Duration) -> Option<Wakers> {
        let mut state = self.lock();
        let Following { longest_reset, trial_interval } = state.following?;
        let until = nanos(quota.reset.min(longest_reset)).saturating_add(state.advance(now));
        if state.retired {
            return None;
        }
        state.tokens.follow(u64::from(quota.remaining) * TOKEN, until, trial_interval);
        Some(state.queue.first())
    }

    /// Follows the wait that a server requests with a refusal: it has no quota left.
    #[inline(never)]
    pub(crate) fn follow_wait(&self, end: &End, now: Duration) {
        let quota = end.requested_wait().map(|wait| Quota::new(0, wait));
        quota.and_then(|quota| self.follow(quota, now)).into_iter().for_each(Wakers::wake);
    }

    /// Adopts new settings. A destination's own rate or burst is kept.
    pub(crate) fn adopt(&self, settings: &LimiterSettings) {
        let mut state = self.lock();
        state.queue.set_patience(settings.patience);
        state.following = state.following.and(settings.following);
        if !state.own {
            state.tokens.set(settings.limit, settings.burst);
        }
    }

    /// Wakes the first call in the queue, because its time may have changed.
    pub(crate) fn wake_first(&self) {
        let wakers = self.lock().queue.first();
        wakers.wake();
    }

    /// Retires the limiter if no call waits, and a new one would behave the same, except for what `forgets` allows.
    /// Returns `true` if it was retired.
    pub(crate) fn retire(&self, now: Duration, forgets: Forgets, is_idle: &dyn Fn() -> bool) -> bool {
        let mut state = self.lock();
        let may_leave = match forgets {
            Forgets::Nothing => {
                let mut tokens = state.tokens;
                tokens.advance(nanos(now));
                !state.own && tokens.is_initial()
            }
            Forgets::Quota => !state.own && state.tokens.is_full_without_quota(nanos(now)),
            Forgets::Rate => true,
        };
        state.retired = may_leave && state.queue.is_empty() && is_idle();
        state.retired
    }

    /// Returns a snapshot of the limiter at `now`, or as of the last call.
    pub(crate) fn look(&self, now: Option<Duration>) -> Look {
        let state = self.lock();
        let mut tokens = state.tokens;
        tokens.advance(now.map_or(0, nanos));
        Look {
            balance: tokens.balance(),
            limit: tokens.limit,
            burst: tokens.burst,
            waiting: state.queue.len(),
            follows: tokens.follows(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimiterState {
    /// Adds the tokens for the time that has passed. Returns the latest time seen.
    #[inline]
    fn advance(&mut self, now: Duration) -> u64 {
        self.tokens.advance(nanos(now));
        self.tokens.now()
    }

    /// Returns the time until which a call may wait, or 0 if it may not.
    #[inline]
    fn latest(&self, arrival: &Arrival<'_>) -> u64 {
        if !arrival.patient || self.queue.is_full() {
            return 0;
        }
        let longest = nanos(arrival.now.saturating_add(self.queue.patience().time));
        arrival.latest.map_or(longest, |latest| longest.min(nanos(latest).saturating_sub(1)))
    }

    /// Decides on a call if there are currently too few tokens.
    #[cold]
    fn admit_later(&mut self, arrival: &Arrival<'_>) -> Admit<LimiterNote> {
        let latest = self.latest(arrival).max(self.tokens.now());
        match self.tokens.book(TOKEN, latest) {
            Ok(booking) => {
                let waiter = self.queue.push(arrival);
                self.slots.push_back(booking.end);
                Admit::Waiting(LimiterNote { cost: booking.cost, full_at: 0, waiter: Some(waiter) })
            }
            Err(unbookable) => Admit::Refused(self.refusal(unbookable, arrival)),
        }
    }

    #[cold]
    fn refusal(&self, unbookable: Unbookable, arrival: &Arrival<'_>) -> Refused {
        let Unbookable::TooLate(due) = unbookable else {
            return Refused::new(self.kind, Reason::TooLarge);
        };
        let reason = if !arrival.patient || self.queue.patience().calls == 0 {
            Reason::RateExceeded
        } else if self.queue.is_full() {
            Reason::Full
        } else {
            Reason::WaitTooLong
        };
        let refused = Refused::new(self.kind, reason);
        due.map_or(refused, |due| refused.after(Duration::from_nanos(due).saturating_sub(arrival.now)))
    }

    /// Returns the slot of a call in the queue.
    fn slot_of(&self, waiter: WaiterId) -> Option<u64> {
        self.slots.get(self.queue.position_of(waiter)?).copied()
    }

    /// Removes a call from the queue. If its token was already added, its own slot is removed; otherwise the last slot
    /// is freed.
    fn leave(&mut self, waiter: WaiterId, is_due: bool) -> Wakers {
        if is_due {
            // The call is the first one, unless calls ahead of it are not polled.
            self.queue.position_of(waiter).and_then(|place| self.slots.remove(place));
        } else if let Some(last) = self.slots.pop_back() {
            self.tokens.withdraw(last);
        }
        self.queue.leave(waiter)
    }
}
