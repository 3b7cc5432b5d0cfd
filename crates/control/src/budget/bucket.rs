//! One bucket of tokens, exact under contention and without a lock.
//!
//! What flows in: takes with the moment they are made at, credits, and what unspent permits give back. What
//! flows out: whether a token was there. The model checker includes this file as it stands, so it
//! knows nothing of destinations or of what else shares a budget.
//!
//! The balance and an *epoch* sit in one word, so that every change is one compare-and-swap. A
//! refill raises the balance, takes the token and starts the next epoch in that one step, and only
//! then writes down until when it has refilled. Until it has, the epochs differ, and nobody else
//! refills: they take and give as if no time had passed. So no stretch of time is credited twice,
//! none is credited past the capacity, and nobody ever waits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::GiveBack;

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// One token, in the millionths that everything here is counted in: 0.1, 0.3 and 0.6 are exact.
pub(crate) const TOKEN: u64 = 1_000_000;

/// The low bits of the state, which count refills; the balance is above them. The count starts again
/// after half a million: for a change to pass unseen, that many refills and no other number would
/// have to fit between a thread's look and its swap, and to end at the same balance.
const EPOCH_BITS: u32 = 19;
const EPOCH: u64 = (1 << EPOCH_BITS) - 1;

/// One token where the state has its balance.
const ONE: u64 = TOKEN << EPOCH_BITS;

/// The most tokens a bucket may hold: two full balances can be added up without an overflow of the
/// 45 bits that the balance has.
pub(crate) const MOST_TOKENS: u32 = 10_000_000;

/// The state of a bucket that has left the table. It is above every full state, so that credits and
/// permits given back take the bucket for full and leave it alone.
const RETIRED: u64 = u64::MAX;

/// The low bits of a moment, which are microseconds; whole seconds are above them.
const MICROSECOND_BITS: u32 = 20;
const MICROSECONDS: u64 = (1 << MICROSECOND_BITS) - 1;

/// What a bucket obeys, in millionths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The most it holds, and what it starts with; at most [`MOST_TOKENS`].
    pub(crate) capacity: u64,
    /// What a success adds; 0 under a rule of time alone.
    pub(crate) ratio: u64,
    /// What a second adds; at most a million tokens.
    pub(crate) refill: u64,
}

/// How a take ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// A token is gone from the bucket.
    Taken,
    /// There was not a whole token, and nothing was changed.
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
    /// How many buckets of this budget are not full: never too few, see [`Bucket::take`].
    not_full: Arc<AtomicUsize>,
}

/// A bucket as a thread sees it at a moment.
struct Seen {
    state: u64,
    /// The state with the refill that is due, in the next epoch if there is one.
    worth: u64,
    /// Whether time has passed that this thread may credit.
    refilled: bool,
}

impl Bucket {
    /// A full bucket, one of those that `not_full` counts.
    pub(crate) fn new(rule: Rule, not_full: Arc<AtomicUsize>) -> Self {
        let full = rule.capacity << EPOCH_BITS;
        Self {
            state: AtomicU64::new(full),
            refilled_until: AtomicU64::new(0),
            refilled_epoch: AtomicU64::new(0),
            full,
            credit: rule.ratio << EPOCH_BITS,
            refill: rule.refill,
            not_full,
        }
    }

    /// Takes one token. The only operation, with [`retire`](Self::retire), that looks at time.
    #[inline]
    pub(crate) fn take(&self, now: Duration) -> Take {
        let now = moment(now);
        loop {
            let take = if now > self.refilled_until.load(Ordering::Acquire) {
                self.take_with_refill(now)
            } else {
                // No time has passed: a moment before the last one credits nothing.
                let state = self.state.load(Ordering::Acquire);
                self.take_from(&Seen { state, worth: state, refilled: false }, now)
            };
            if let Some(take) = take {
                return take;
            }
        }
    }

    #[inline(never)]
    fn take_with_refill(&self, now: u64) -> Option<Take> {
        self.take_from(&self.look(now), now)
    }

    /// One attempt at a take; `None` if the bucket was changed since it was seen.
    #[inline]
    fn take_from(&self, seen: &Seen, now: u64) -> Option<Take> {
        if seen.state == RETIRED {
            return Some(Take::Retired);
        }
        if seen.worth < ONE {
            // Nothing is written: the refill that was due stays due.
            return Some(Take::Refused);
        }
        // Counted before it is true, and uncounted after it has ceased to be: the count may be too
        // high for a moment and is never too low.
        let was_full = seen.state >= self.full;
        if was_full {
            self.not_full.fetch_add(1, Ordering::Relaxed);
        }
        let next = seen.worth - ONE;
        if !self.replace(seen.state, next) {
            if was_full {
                self.not_full.fetch_sub(1, Ordering::Release);
            }
            return None;
        }
        if seen.refilled {
            self.refilled_until.store(now, Ordering::Release);
            self.refilled_epoch.store(next & EPOCH, Ordering::Release);
        }
        Some(Take::Taken)
    }

    /// Adds what a success is worth. Reads no clock, and writes nothing when the bucket is full.
    #[inline]
    pub(crate) fn credit(&self) {
        if self.credit > 0 {
            self.add(self.credit);
        }
    }

    /// Takes the bucket out of service if it is full at `now`, and says whether it did.
    ///
    /// Whoever takes from it afterwards is told so: between the look at the balance and the end of
    /// the bucket no token can leave it unseen.
    pub(crate) fn retire(&self, now: Duration) -> bool {
        let seen = self.look(moment(now));
        let full = seen.state != RETIRED && seen.worth >= self.full;
        if !full || !self.replace(seen.state, RETIRED) {
            return false;
        }
        if seen.state < self.full {
            self.not_full.fetch_sub(1, Ordering::Release);
        }
        true
    }

    /// Whether [`retire`](Self::retire) would find it full.
    pub(crate) fn is_full_at(&self, now: Duration) -> bool {
        self.look(moment(now)).worth >= self.full
    }

    /// The balance in millionths, as the last take or credit left it; `None` once retired.
    pub(crate) fn balance(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != RETIRED).then_some(state >> EPOCH_BITS)
    }

    /// Adds an amount of at most [`MOST_TOKENS`] that stands where the state has its balance.
    #[inline]
    fn add(&self, amount: u64) {
        let mut state = self.state.load(Ordering::Acquire);
        while state < self.full {
            let sum = state + amount;
            let fills = sum >= self.full;
            let next = if fills { self.full | (state & EPOCH) } else { sum };
            match self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    if fills {
                        self.not_full.fetch_sub(1, Ordering::Release);
                    }
                    return;
                }
                Err(changed) => state = changed,
            }
        }
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
            return Seen { state, worth: state, refilled: false };
        }
        let due = accrued(until, now, self.refill);
        let balance = (state >> EPOCH_BITS).saturating_add(due).min(self.full >> EPOCH_BITS);
        let next_epoch = (epoch + 1) & EPOCH;
        Seen { state, worth: (balance << EPOCH_BITS) | next_epoch, refilled: true }
    }

    /// Release and acquire on every change: a thread's reading of the moment comes before its
    /// change, and a later change before the storing of the next moment.
    fn replace(&self, state: u64, next: u64) -> bool {
        self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl GiveBack for Bucket {
    fn give_back(&self, cost: u32) {
        let amount = u64::from(cost.min(MOST_TOKENS)) * TOKEN;
        self.add(amount << EPOCH_BITS);
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("balance", &self.balance()).finish_non_exhaustive()
    }
}

/// `now` in microseconds, in a form that needs no division; it ends after half a million years.
fn moment(now: Duration) -> u64 {
    let seconds = now.as_secs().min(u64::MAX >> MICROSECOND_BITS);
    (seconds << MICROSECOND_BITS) | u64::from(now.subsec_micros())
}

/// What `refill` a second amounts to from `since` to `now`, a later moment.
///
/// It is the difference of two whole numbers that each belong to one moment, so that what many
/// short stretches add up to is what one long stretch gives, and no remainder is lost or gained.
fn accrued(since: u64, now: u64, refill: u64) -> u64 {
    let of_second = |moment: u64| (moment & MICROSECONDS) * refill / 1_000_000;
    let seconds = (now >> MICROSECOND_BITS) - (since >> MICROSECOND_BITS);
    seconds.saturating_mul(refill).saturating_add(of_second(now)) - of_second(since)
}
