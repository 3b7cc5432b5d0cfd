//! A lock-free token bucket that is exact under contention.
//!
//! Input: requests for tokens at given times, credits, and returned permits. Output: the tokens are taken or refused,
//! or the bucket is retired. The model checker includes this file unchanged, so it must not refer to destinations.
//!
//! The balance and the *epoch* (the number of refills so far) share one word, so every change is a single
//! compare-and-swap. A refill adds the tokens, takes the caller's token and starts the next epoch in one step. Then it
//! stores its time, tagged with the new epoch. Until that tag matches the word's epoch, no other thread refills, and
//! takes and credits proceed as if no time had passed. Thus no interval is credited twice, no balance exceeds the
//! capacity, and no thread waits.

use std::time::Duration;

use reattempt_core::PermitIssuer;

use super::not_full::BucketCount;
use crate::sync::{AtomicU64, Ordering};

/// One token in millionths, the unit of all amounts here. It makes 0.1, 0.3 and 0.6 exact.
pub(crate) const TOKEN: u64 = 1_000_000;

/// The number of low bits that count refills; the balance is above them. The count wraps after half a million. A
/// compare-and-swap misses a change only if exactly that many refills happen between its load and its swap, and the
/// balance is unchanged.
const EPOCH_BITS: u32 = 19;
const EPOCH: u64 = (1 << EPOCH_BITS) - 1;

/// One token at the position of the balance in the state.
const ONE: u64 = TOKEN << EPOCH_BITS;

/// The largest capacity. The sum of two full balances fits into the balance's 45 bits.
pub(crate) const MOST_TOKENS: u32 = 10_000_000;

/// The state of a bucket that was removed from the table. It is above every full state, and adding a credit to it does
/// not overflow. Credits and returned permits therefore treat the bucket as full and leave it unchanged.
const RETIRED: u64 = 7 << 61;

/// The lowest value that is not a balance. Subtracting more than the bucket holds wraps to at least this value, as does
/// every take from a retired bucket.
const NO_BALANCE: u64 = 1 << 63;
const _: () = {
    let most = MOST_TOKENS as u64 * ONE;
    assert!(most < NO_BALANCE && RETIRED - most >= NO_BALANCE);
};

/// The number of low bits of a time that hold microseconds; whole seconds are above them.
const MICROSECOND_BITS: u32 = 20;
const MICROSECONDS: u64 = (1 << MICROSECOND_BITS) - 1;

/// The settings of a bucket, in millionths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenRule {
    /// The capacity, which is also the initial balance; at most [`MOST_TOKENS`].
    pub(crate) capacity: u64,
    /// The amount added per success; 0 if only time adds tokens.
    pub(crate) ratio: u64,
    /// The amount added per second; at most a million tokens.
    pub(crate) refill: u64,
    /// `true` if a retry returns its cost when its call succeeds.
    pub(crate) refunds: bool,
}

/// The outcome of a request for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// The tokens were taken.
    Taken,
    /// More tokens were taken than there were, which only a cautious bucket permits.
    Overdrawn,
    /// No tokens were taken.
    Refused,
    /// The bucket was removed from the table: the caller must look up its replacement.
    Retired,
}

pub(crate) struct Bucket {
    /// The balance above [`EPOCH_BITS`] and the epoch below, or [`RETIRED`].
    state: AtomicU64,
    /// The time up to which refills have been credited, tagged with its epoch.
    refilled_until: AtomicU64,
    refilled_epoch: AtomicU64,
    /// Capacity and ratio, shifted to the position of the balance in the state.
    full: u64,
    credit: u64,
    refill: u64,
    refunds: bool,
    /// Counts the bucket while it is not full.
    counted: BucketCount,
}

/// A snapshot of a bucket at one time.
struct Seen {
    state: u64,
    /// The state after any pending refill, which starts the next epoch.
    worth: u64,
    /// `true` if `worth` includes a refill.
    refilled: bool,
}

impl Bucket {
    /// Creates a full bucket.
    pub(crate) fn new(rule: TokenRule, counted: BucketCount) -> Self {
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

    /// Takes either all `tokens` or none.
    #[inline]
    pub(crate) fn take(&self, tokens: u32, now: Duration) -> Take {
        self.try_take(tokens, now).unwrap_or_else(|| self.take_in_time(tokens, now))
    }

    /// Slow path of [`take`](Self::take).
    #[inline(never)]
    fn take_in_time(&self, tokens: u32, now: Duration) -> Take {
        let (cost, now) = (u64::from(tokens) * ONE, moment(now));
        loop {
            if let Some(take) = self.take_from(&self.look(now), cost, now) {
                return take;
            }
        }
    }

    /// Fast path of [`take`](Self::take), small enough to be inlined: no time has passed, and no other thread changes
    /// the bucket. Returns `None` otherwise.
    #[inline(always)]
    pub(crate) fn try_take(&self, tokens: u32, now: Duration) -> Option<Take> {
        let (cost, now) = (u64::from(tokens) * ONE, moment(now));
        // The time before the last refill adds no tokens.
        if now > self.refilled_until.load(Ordering::Acquire) {
            return None;
        }
        self.take_from(&Seen::as_it_is(self.state.load(Ordering::Acquire)), cost, now)
    }

    /// Tries to take `cost` once. Returns `None` if the bucket has changed since `seen`.
    #[inline]
    fn take_from(&self, seen: &Seen, cost: u64, now: u64) -> Option<Take> {
        let next = seen.worth.wrapping_sub(cost);
        if next >= NO_BALANCE {
            // Nothing is written, so the pending refill stays pending.
            return Some(if seen.state == RETIRED { Take::Retired } else { Take::Refused });
        }
        // A bucket is counted before it stops being full, and uncounted after it is full again. The count may therefore
        // briefly be too high, but is never too low.
        let was_full = seen.state >= self.full;
        if was_full {
            self.counted.add();
        }
        if !self.replace(seen.state, next) {
            if was_full {
                self.counted.remove();
            }
            return None;
        }
        if seen.refilled {
            self.refilled(now, next);
        }
        Some(Take::Taken)
    }

    /// Stores the time of a refill, tagged with the epoch that the refill started.
    #[inline]
    fn refilled(&self, now: u64, state: u64) {
        self.refilled_until.store(now, Ordering::Release);
        self.refilled_epoch.store(state & EPOCH, Ordering::Release);
    }

    /// Adds the tokens for a success. Reads no clock, and writes nothing if the bucket is full. Returns `false` if the
    /// bucket was removed from the table.
    #[inline]
    pub(crate) fn credit(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        // A credit that does not fill the bucket needs no clamping, and the bucket stays counted.
        let next = state + self.credit;
        (next < self.full && self.replace(state, next)) || self.add(self.credit)
    }

    /// Marks the bucket as full, and stops counting it, if it has filled up over time by `now`.
    pub(crate) fn catch_up(&self, now: Duration) {
        let now = moment(now);
        let seen = self.look(now);
        let fills = seen.state < self.full && seen.worth >= self.full;
        if fills && self.replace(seen.state, seen.worth) {
            self.refilled(now, seen.worth);
            self.counted.remove();
        }
    }

    /// Retires the bucket if it is idle and either full at `now` or `forgets` is set. Returns `true` if it was retired.
    ///
    /// The check and the retirement are a single atomic step, so no take is lost in between.
    pub(crate) fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let seen = self.look(moment(now));
        let leaves = seen.state != RETIRED && (forgets || seen.worth >= self.full) && is_idle();
        if !leaves || !self.replace(seen.state, RETIRED) {
            return false;
        }
        if seen.state < self.full {
            self.counted.remove();
        }
        true
    }

    /// Returns the balance in millionths as of the last take or credit, or `None` once retired.
    pub(crate) fn balance(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != RETIRED).then_some(state >> EPOCH_BITS)
    }

    /// Returns the time up to which refills have been credited.
    pub(crate) fn refilled_until(&self) -> u64 {
        self.refilled_until.load(Ordering::Acquire)
    }

    /// Lowers the balance to a value in millionths, as of a given time. Called before any other thread uses the bucket.
    pub(crate) fn restore(&self, balance: u64, refilled_until: u64) {
        let state = balance << EPOCH_BITS;
        let own = self.state.load(Ordering::Acquire);
        if state < own {
            if own >= self.full {
                self.counted.add();
            }
            self.state.store(state, Ordering::Release);
            self.refilled_until.store(refilled_until, Ordering::Release);
        }
    }

    /// Adds `amount`, up to the capacity. Returns `false` if the bucket was removed from the table.
    ///
    /// `amount` is at most [`MOST_TOKENS`], shifted to the position of the balance.
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

    /// Tries once to add to a bucket that is not full. Returns `false` if the bucket has changed since `state` was
    /// loaded.
    #[inline]
    fn add_to(&self, state: u64, amount: u64) -> bool {
        let sum = state + amount;
        if sum < self.full {
            return self.replace(state, sum);
        }
        let filled = self.replace(state, self.full | (state & EPOCH));
        if filled {
            self.counted.remove();
        }
        filled
    }

    /// Returns the state, and its value at `now`.
    ///
    /// The state is reloaded last. If its epoch has not changed, the time read in between belongs to that epoch.
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

    /// Exchanges the state. The ordering is acquire-release, because a thread loads the time of the last refill before
    /// this step and stores its own afterwards.
    #[inline]
    fn replace(&self, state: u64, next: u64) -> bool {
        self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl PermitIssuer for Bucket {
    #[inline]
    fn give_back(&self, cost: u32) {
        // The amount was taken from this bucket, so it is at most the capacity.
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
    /// Creates a snapshot without a refill.
    #[inline]
    fn as_it_is(state: u64) -> Self {
        Self { state, worth: state, refilled: false }
    }
}

/// Returns `now` in microseconds, in a form that needs no division. It overflows after half a million years.
#[inline]
fn moment(now: Duration) -> u64 {
    let seconds = now.as_secs().min(u64::MAX >> MICROSECOND_BITS);
    (seconds << MICROSECOND_BITS) | u64::from(now.subsec_micros())
}

/// Returns the amount that a rate of `refill` per second adds between `since` and the later time `now`.
///
/// The result is the difference of two whole numbers, one per time. Many short intervals thus add up to one long
/// interval, without losing remainders.
fn accrued(since: u64, now: u64, refill: u64) -> u64 {
    let of_second = |moment: u64| (moment & MICROSECONDS) * refill / 1_000_000;
    let seconds = (now >> MICROSECOND_BITS) - (since >> MICROSECOND_BITS);
    seconds.saturating_mul(refill).saturating_add(of_second(now)) - of_second(since)
}
