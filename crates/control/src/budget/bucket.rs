//! One bucket of tokens, exact under contention and without a lock.
//!
//! Input: takes and their moments, credits, and returned permits. Output: taken, refused or retired. The model checker
//! includes this file as it stands, so it does not refer to destinations.
//!
//! The balance and the *epoch*, the number of refills so far, are in one word, so every change is one compare-and-swap.
//! A refill raises the balance, takes the token and starts the next epoch in that one step. Afterwards it stores the
//! moment until which it has refilled, with the number of the new epoch. As long as that number is not the one in the
//! word, no other thread refills: takes and credits go on as if no time had passed. So no stretch of time is credited
//! twice, or past the capacity, and no thread waits.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::PermitIssuer;

use super::not_full::{NotFull, Slot};
use crate::sync::{AtomicU64, Ordering};

/// One token, in the millionths that everything here is counted in: 0.1, 0.3 and 0.6 are exact.
pub(crate) const TOKEN: u64 = 1_000_000;

/// The low bits of the state, which count refills; the balance is above them. The count wraps after half a million. A
/// change passes unseen only if exactly that many refills fit between a thread's load and its swap, and end at
/// the same balance.
const EPOCH_BITS: u32 = 19;
const EPOCH: u64 = (1 << EPOCH_BITS) - 1;

/// One token where the state has its balance.
const ONE: u64 = TOKEN << EPOCH_BITS;

/// The most tokens of a bucket: the sum of two full balances fits into the balance's 45 bits.
pub(crate) const MOST_TOKENS: u32 = 10_000_000;

/// The state of a bucket that has left the table. It is above every full state, and a credit added to it does not
/// overflow. So credits and permits given back take the bucket for full and leave it alone.
const RETIRED: u64 = 7 << 61;

/// The least number that is no balance. A take that the bucket cannot pay would leave at least that, and so would every
/// take from a retired bucket.
const NO_BALANCE: u64 = 1 << 63;
const _: () = {
    let most = MOST_TOKENS as u64 * ONE;
    assert!(most < NO_BALANCE && RETIRED - most >= NO_BALANCE);
};

/// The low bits of a moment, which are microseconds; whole seconds are above them.
const MICROSECOND_BITS: u32 = 20;
const MICROSECONDS: u64 = (1 << MICROSECOND_BITS) - 1;

/// The rule of a bucket, in millionths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The most it holds, and what it starts with; at most [`MOST_TOKENS`].
    pub(crate) capacity: u64,
    /// The amount that a success adds; 0 if only time adds tokens.
    pub(crate) ratio: u64,
    /// The amount that a second adds; at most a million tokens.
    pub(crate) refill: u64,
    /// `true` if a retry that ends its call with a success returns what it cost.
    pub(crate) refunds: bool,
}

/// The outcome of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// The tokens are gone from the bucket.
    Taken,
    /// No tokens were taken.
    Refused,
    /// The bucket has left the table: the caller must look for the one in its place.
    Retired,
}

pub(crate) struct Bucket {
    /// The balance above [`EPOCH_BITS`], the epoch below, or [`RETIRED`].
    state: AtomicU64,
    /// The moment until which time has been credited, and the epoch that it belongs to.
    refilled_until: AtomicU64,
    refilled_epoch: AtomicU64,
    /// Capacity and ratio, shifted to where the state has its balance.
    full: u64,
    credit: u64,
    refill: u64,
    refunds: bool,
    /// Where it is counted while it is not full.
    counted: (Arc<NotFull>, Slot),
}

/// A bucket as a thread sees it at a moment.
struct Seen {
    state: u64,
    /// The state with the refill that is due, in the next epoch if there is one.
    worth: u64,
    /// `true` if `worth` has a refill.
    refilled: bool,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rule: Rule, counted: (Arc<NotFull>, Slot)) -> Self {
        let full = rule.capacity << EPOCH_BITS;
        Self {
            state: AtomicU64::new(full),
            refilled_until: AtomicU64::new(0),
            refilled_epoch: AtomicU64::new(0),
            full,
            credit: rule.ratio << EPOCH_BITS,
            refill: rule.refill,
            refunds: rule.refunds,
            counted,
        }
    }

    /// Takes this many tokens, or none.
    #[inline]
    pub(crate) fn take(&self, tokens: u32, now: Duration) -> Take {
        self.try_take(tokens, now).unwrap_or_else(|| self.take_in_time(tokens, now))
    }

    /// A [`take`](Self::take) in any other case than the usual.
    #[inline(never)]
    fn take_in_time(&self, tokens: u32, now: Duration) -> Take {
        let (cost, now) = (u64::from(tokens) * ONE, moment(now));
        loop {
            if let Some(take) = self.take_from(&self.look(now), cost, now) {
                return take;
            }
        }
    }

    /// A [`take`](Self::take) in the usual case, small enough to be inlined: no time has passed, and no other thread
    /// changes the bucket. `None` in any other.
    #[inline(always)]
    pub(crate) fn try_take(&self, tokens: u32, now: Duration) -> Option<Take> {
        let (cost, now) = (u64::from(tokens) * ONE, moment(now));
        // A moment before the last one credits nothing.
        if now > self.refilled_until.load(Ordering::Acquire) {
            return None;
        }
        self.take_from(&Seen::as_it_is(self.state.load(Ordering::Acquire)), cost, now)
    }

    /// An attempt at a take; `None` if the bucket was changed since it was seen.
    #[inline]
    fn take_from(&self, seen: &Seen, cost: u64, now: u64) -> Option<Take> {
        let next = seen.worth.wrapping_sub(cost);
        if next >= NO_BALANCE {
            // Nothing is written: the refill that was due stays due.
            return Some(if seen.state == RETIRED { Take::Retired } else { Take::Refused });
        }
        // A bucket is counted before it is not full, and uncounted after it is full again. So the count may be too high
        // for a moment and is never too low.
        let was_full = seen.state >= self.full;
        if was_full {
            self.count();
        }
        if !self.replace(seen.state, next) {
            if was_full {
                self.uncount();
            }
            return None;
        }
        if seen.refilled {
            self.refilled(now, next);
        }
        Some(Take::Taken)
    }

    /// Stores the moment of a refill, for the epoch that it has begun.
    #[inline]
    fn refilled(&self, now: u64, state: u64) {
        self.refilled_until.store(now, Ordering::Release);
        self.refilled_epoch.store(state & EPOCH, Ordering::Release);
    }

    /// Adds the tokens of a success. Reads no clock, and writes nothing if the bucket is full. Returns `false` if
    /// the bucket has left the table.
    #[inline]
    pub(crate) fn credit(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        // A credit that leaves the bucket less than full needs no cut to the capacity, and the bucket stays counted.
        let next = state + self.credit;
        (next < self.full && self.replace(state, next)) || self.add(self.credit)
    }

    /// Fills the bucket, and stops counting it, if time has filled it up by `now`.
    pub(crate) fn settle(&self, now: Duration) {
        let now = moment(now);
        let seen = self.look(now);
        let fills = seen.state < self.full && seen.worth >= self.full;
        if fills && self.replace(seen.state, seen.worth) {
            self.refilled(now, seen.worth);
            self.uncount();
        }
    }

    /// Takes the bucket out of service if it is idle, and full at `now` or to be forgotten. Returns `true` if it did.
    ///
    /// A later take finds it retired. Both are one atomic step, so no take is lost in between.
    pub(crate) fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let seen = self.look(moment(now));
        let leaves = seen.state != RETIRED && (forgets || seen.worth >= self.full) && is_idle();
        if !leaves || !self.replace(seen.state, RETIRED) {
            return false;
        }
        if seen.state < self.full {
            self.uncount();
        }
        true
    }

    /// The balance in millionths, as the last take or credit left it; `None` once retired.
    pub(crate) fn balance(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != RETIRED).then_some(state >> EPOCH_BITS)
    }

    /// Adds an amount, up to the capacity. Returns `false` if the bucket has left the table.
    ///
    /// The amount is at most [`MOST_TOKENS`], shifted to where the state has its balance.
    #[inline(never)]
    fn add(&self, amount: u64) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        while state < self.full {
            if self.add_to(state, amount) {
                return true;
            }
            state = self.state.load(Ordering::Acquire);
        }
        state != RETIRED
    }

    /// An attempt at an addition to a bucket that is not full; `false` if the bucket was changed since `state` was
    /// loaded.
    #[inline]
    fn add_to(&self, state: u64, amount: u64) -> bool {
        let sum = state + amount;
        if sum < self.full {
            return self.replace(state, sum);
        }
        let filled = self.replace(state, self.full | (state & EPOCH));
        if filled {
            self.uncount();
        }
        filled
    }

    /// The state, and what it is worth at `now`.
    ///
    /// The state is read last: when its epoch is the one read first, the moment read between them
    /// is that epoch's own.
    fn look(&self, now: u64) -> Seen {
        let epoch = self.refilled_epoch.load(Ordering::Acquire);
        let until = self.refilled_until.load(Ordering::Acquire);
        let state = self.state.load(Ordering::Acquire);
        if now <= until || state & EPOCH != epoch || state == RETIRED {
            return Seen::as_it_is(state);
        }
        let mut balance = self.full >> EPOCH_BITS;
        if state < self.full {
            let due = accrued(until, now, self.refill);
            balance = (state >> EPOCH_BITS).saturating_add(due).min(balance);
        }
        let next_epoch = (epoch + 1) & EPOCH;
        Seen { state, worth: (balance << EPOCH_BITS) | next_epoch, refilled: true }
    }

    #[inline]
    fn count(&self) {
        self.counted.0.add(self.counted.1);
    }

    #[inline]
    fn uncount(&self) {
        self.counted.0.remove(self.counted.1);
    }

    /// Changes the state. Release and acquire, because a thread loads the moment of the last refill before this step,
    /// and stores that of its own refill after it.
    #[inline]
    fn replace(&self, state: u64, next: u64) -> bool {
        self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl PermitIssuer for Bucket {
    #[inline]
    fn give_back(&self, cost: u32) {
        // It was taken from this bucket, so it is no more than the capacity.
        let amount = u64::from(cost) * ONE;
        let state = self.state.load(Ordering::Acquire);
        if state < self.full && !self.add_to(state, amount) {
            self.add(amount);
        }
    }

    #[inline]
    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        if self.refunds && succeeded {
            self.give_back(cost);
        }
    }
}

impl Seen {
    /// Creates the view without a refill.
    #[inline]
    fn as_it_is(state: u64) -> Self {
        Self { state, worth: state, refilled: false }
    }
}

/// `now` in microseconds, in a form that needs no division; it ends after half a million years.
#[inline]
fn moment(now: Duration) -> u64 {
    let seconds = now.as_secs().min(u64::MAX >> MICROSECOND_BITS);
    (seconds << MICROSECOND_BITS) | u64::from(now.subsec_micros())
}

/// Returns the amount that `refill` a second adds from `since` to `now`, a later moment.
///
/// It is the difference of two whole numbers, one for each moment. So many short stretches add up to one long
/// stretch, and no remainder is lost.
fn accrued(since: u64, now: u64, refill: u64) -> u64 {
    let of_second = |moment: u64| (moment & MICROSECONDS) * refill / 1_000_000;
    let seconds = (now >> MICROSECOND_BITS) - (since >> MICROSECOND_BITS);
    seconds.saturating_mul(refill).saturating_add(of_second(now)) - of_second(since)
}
