//! A cautious token bucket, with a doubt counter that blocks retries while attempts fail.
//!
//! The whole state is one word, so each event is a single compare-and-swap: a failure is counted and its retry's token
//! taken in one step. There is no lock, and no thread waits for another. The model checker includes this file
//! unchanged, so it must not refer to destinations or settings.
//!
//! | bits | content |
//! |---|---|
//! | 56–63 | *trust*: 128 − doubt |
//! | 36–55 | tokens, in thousandths |
//! | 0–35 | time of the last failure, in ticks of 64 ms; overflows after 139 years |
//!
//! A bucket with all tokens and no doubt is full. As a number, its state is above that of every bucket that is not
//! full, regardless of the time of its last failure. One comparison thus shows whether a success has an effect.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{FailureKind, PermitIssuer};

use super::bucket::Take;
use super::not_full::{NotFull, Slot};
use crate::sync::{AtomicU64, Ordering};

/// The maximum doubt: 64 successes remove it.
pub(crate) const MOST_DOUBT: u64 = 128;
/// The doubt above which no retry is granted. It lets the first call of an outage make three attempts.
const ALLOWED_DOUBT: u64 = 3;
/// The doubt that one success removes, at its position in the state. With 1, a server that fails half of its attempts
/// would block the bucket.
const REMOVED_BY_SUCCESS: u64 = 2 << DOUBT_SHIFT;
/// The time without a failure after which a bucket resets. An unused host's bucket stays in the table for this long.
pub(crate) const QUIET: Duration = Duration::from_secs(600);

const TICK_BITS: u32 = 36;
const TICK: u64 = (1 << TICK_BITS) - 1;
const TOKEN_BITS: u32 = 20;
const TOKENS: u64 = ((1 << TOKEN_BITS) - 1) << TICK_BITS;
const DOUBT_SHIFT: u32 = TICK_BITS + TOKEN_BITS;
const TRUST: u64 = u64::MAX << DOUBT_SHIFT;
/// The last second that ticks can represent.
const LAST_SECOND: u64 = (TICK << 6) / 1000 - 1;
/// The lowest state in which the doubt is zero.
const NO_DOUBT: u64 = MOST_DOUBT << DOUBT_SHIFT;

/// One token in thousandths, the unit of this file.
const TOKEN: u64 = 1000;
/// The tokens that a retry takes. They are returned if it succeeds.
const RETURNED: u32 = 1;
/// The tokens that a hedge, or a retry after the server throttled, takes. They are not returned, because its success
/// does not prove that the server has spare capacity.
const NOT_RETURNED: u32 = 2;

/// The number of millionths (the unit of the settings) in a thousandth.
const MILLIONTHS: u64 = 1000;

/// The bounds of a bucket's capacity, which must pay for any retry and fit into its bits.
pub(crate) const LEAST_TOKENS: u32 = NOT_RETURNED;
pub(crate) const MOST_TOKENS: u32 = 1000;

/// The state of a bucket that was removed from the table. It is above every full state, and adding a credit to it does
/// not overflow. Successes and permits therefore do not change it.
const RETIRED: u64 = u64::MAX << DOUBT_SHIFT;

/// The settings of a cautious bucket, in millionths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caution {
    /// The capacity, which is also the initial balance; from [`LEAST_TOKENS`] to [`MOST_TOKENS`].
    pub(crate) capacity: u64,
    /// The tokens that one success adds.
    pub(crate) credit: u64,
}

/// An event that a bucket records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// An attempt failed, and no retry is requested.
    Failure(FailureKind),
    /// An attempt failed, and its retry requests tokens.
    FailureAndRetry(FailureKind),
    /// A hedge requests tokens without a failure. Needing a hedge is itself a sign of trouble.
    Hedge(FailureKind),
}

pub(crate) struct CautiousBucket {
    state: AtomicU64,
    /// No doubt and all tokens, at tick 0: the lowest full state.
    full: u64,
    /// The amount that one success adds, at the position of the tokens in the state.
    credit: u64,
    /// The counter and the slot that count the bucket while it is not full.
    counted: (Arc<NotFull>, Slot),
}

impl Event {
    #[inline]
    pub(crate) fn kind(self) -> FailureKind {
        match self {
            Self::Failure(kind) | Self::FailureAndRetry(kind) | Self::Hedge(kind) => kind,
        }
    }

    /// Returns the cost of a retry after this event.
    #[inline]
    pub(crate) fn cost(self) -> u32 {
        match self {
            Self::Failure(_) => 0,
            Self::Hedge(_) | Self::FailureAndRetry(FailureKind::Throttled) => NOT_RETURNED,
            Self::FailureAndRetry(_) => RETURNED,
        }
    }
}

impl CautiousBucket {
    /// Creates a full bucket.
    pub(crate) fn new(rule: Caution, counted: (Arc<NotFull>, Slot)) -> Self {
        let capacity = rule.capacity / MILLIONTHS;
        let full = (MOST_DOUBT << DOUBT_SHIFT) | (capacity << TICK_BITS);
        let (state, credit) = (AtomicU64::new(full), (rule.credit / MILLIONTHS) << TICK_BITS);
        Self { state, full, credit, counted }
    }

    /// Records `event` and, if allowed, takes the tokens that it requests, in one atomic step.
    ///
    /// A refused hedge changes nothing. The failure before a refused retry is still counted.
    pub(crate) fn record(&self, event: Event, now: Duration) -> Take {
        loop {
            if let Some(take) = self.try_record(event, now) {
                return take;
            }
        }
    }

    /// Tries to [`record`](Self::record) once. Returns `None` if another thread has changed the bucket in the meantime.
    #[inline(always)]
    pub(crate) fn try_record(&self, event: Event, now: Duration) -> Option<Take> {
        let now = tick(now);
        let state = self.state.load(Ordering::Acquire);
        if state == RETIRED {
            return Some(Take::Retired);
        }
        let doubted = doubted(self.after_quiet(state, now), event, now);
        let cost = u64::from(event.cost()) * TOKEN;
        let taken = cost > 0 && allows_retry(doubted) && tokens_of(doubted) >= cost;
        let next = match event {
            Event::Hedge(_) if !taken => return Some(Take::Refused),
            _ if taken => doubted - (cost << TICK_BITS),
            _ => doubted,
        };
        // Failures and hedges add doubt, so the bucket is not full afterwards.
        let was_full = state >= self.full;
        if was_full {
            self.count();
        }
        if self.exchange(state, next) {
            return Some(if taken { Take::Taken } else { Take::Refused });
        }
        if was_full {
            self.uncount();
        }
        None
    }

    /// Records a success. Reads no clock, and writes nothing if the bucket is full. Returns `false` if the bucket was
    /// removed from the table.
    #[inline]
    pub(crate) fn credit(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        // Fast path, small enough to be inlined: there is no doubt, and the bucket stays below full.
        let next = state + self.credit;
        (state >= NO_DOUBT && next < self.full && self.exchange(state, next))
            || self.add(REMOVED_BY_SUCCESS, self.credit)
    }

    /// Returns the balance in millionths, or `None` once retired.
    pub(crate) fn balance(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != RETIRED).then(|| tokens_of(state) * MILLIONTHS)
    }

    /// Returns the doubt, or 0 once retired.
    pub(crate) fn doubt(&self) -> u64 {
        MOST_DOUBT.saturating_sub(self.state.load(Ordering::Acquire) >> DOUBT_SHIFT)
    }

    /// Returns the tick of the last failure.
    pub(crate) fn last_failure(&self) -> u64 {
        self.state.load(Ordering::Acquire) & TICK
    }

    /// Restores a balance in millionths (at most the capacity), a doubt and the tick of the last failure, each unless
    /// the bucket's own is stricter. Called before any other thread uses the bucket.
    pub(crate) fn restore(&self, balance: u64, doubt: u64, last_failure: u64) {
        let own = self.state.load(Ordering::Acquire);
        let tokens = ((balance / MILLIONTHS) << TICK_BITS).min(own & TOKENS);
        let trust = (MOST_DOUBT.saturating_sub(doubt) << DOUBT_SHIFT).min(own & TRUST);
        let state = trust | tokens | (last_failure & TICK).max(own & TICK);
        if state < self.full && own >= self.full {
            self.count();
        }
        self.state.store(state, Ordering::Release);
    }

    /// Resets the bucket if it has been quiet for [`QUIET`].
    pub(crate) fn catch_up(&self, now: Duration) {
        let state = self.state.load(Ordering::Acquire);
        let caught_up = self.after_quiet(state, tick(now));
        // If another thread changes the bucket in the meantime, a later call fills it.
        let _ = self.replace(state, caught_up);
    }

    /// Retires the bucket if it is idle and either full at `now` or `forgets` is set. Returns `true` if it was retired.
    ///
    /// A thread that records a failure afterwards finds the bucket retired, so no failure is lost.
    pub(crate) fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state != RETIRED
            && (forgets || self.after_quiet(state, tick(now)) >= self.full)
            && is_idle()
            && self.replace(state, RETIRED).is_ok()
    }

    /// Returns the state, or a new bucket's state if there was no failure for [`QUIET`].
    fn after_quiet(&self, state: u64, now: u64) -> u64 {
        let is_quiet = now.saturating_sub(state & TICK) >= tick(QUIET);
        if is_quiet && state < self.full { self.full | (state & TICK) } else { state }
    }

    /// Removes doubt from a non-full bucket and adds tokens, within their bounds. Both arguments are shifted to their
    /// positions in the state. Returns `false` if the bucket was removed from the table.
    ///
    /// Not inlined, so that a success on a full bucket need not save registers.
    #[inline(never)]
    fn add(&self, removed: u64, tokens: u64) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        while state < self.full {
            let trust = ((state & TRUST) + removed).min(NO_DOUBT);
            let tokens = ((state & TOKENS) + tokens).min(self.full & TOKENS);
            match self.replace(state, trust | tokens | (state & TICK)) {
                Ok(()) => return true,
                Err(seen) => state = seen,
            }
        }
        state != RETIRED
    }

    /// Exchanges `state` for a `next` that is at least as full, or returns the current state.
    ///
    /// The bucket is uncounted after it has become full, and [`try_record`](Self::try_record) counts it before it stops
    /// being full. The count may therefore briefly be too high, but is never too low.
    #[inline]
    fn replace(&self, state: u64, next: u64) -> Result<(), u64> {
        if state == next {
            return Ok(());
        }
        self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire)?;
        if state < self.full && next >= self.full {
            self.uncount();
        }
        Ok(())
    }

    /// Exchanges the state without changing the count.
    #[inline]
    fn exchange(&self, state: u64, next: u64) -> bool {
        self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[inline]
    fn count(&self) {
        self.counted.0.add(self.counted.1);
    }

    #[inline]
    fn uncount(&self) {
        self.counted.0.remove(self.counted.1);
    }
}

/// Returns the state after a failure or a hedge: more doubt, the new time, and the same tokens.
///
/// A lost connection fails every call on it. A `Network` failure in the same tick as another failure therefore adds no
/// doubt.
fn doubted(state: u64, event: Event, now: u64) -> u64 {
    let trust = state >> DOUBT_SHIFT;
    let lost = matches!(event, Event::Failure(FailureKind::Network) | Event::FailureAndRetry(FailureKind::Network));
    let is_known = lost && trust < MOST_DOUBT && state & TICK == now;
    let trust = if is_known { trust } else { trust.saturating_sub(1) };
    (trust << DOUBT_SHIFT) | (state & TOKENS) | now.max(state & TICK)
}

fn allows_retry(state: u64) -> bool {
    state >> DOUBT_SHIFT >= MOST_DOUBT - ALLOWED_DOUBT
}

#[inline]
fn tokens_of(state: u64) -> u64 {
    (state & TOKENS) >> TICK_BITS
}

/// Converts a time to ticks, without a division.
#[inline]
fn tick(now: Duration) -> u64 {
    let seconds = now.as_secs().min(LAST_SECOND);
    (seconds * 1000 + u64::from(now.subsec_millis())) >> 6
}

impl PermitIssuer for CautiousBucket {
    /// Returns the tokens of a retry that was never sent. The preceding failure still counts.
    #[inline]
    fn give_back(&self, cost: u32) {
        let tokens = (u64::from(cost) * TOKEN) << TICK_BITS;
        let state = self.state.load(Ordering::Acquire);
        let next = state + tokens;
        let fits = next & TOKENS <= self.full & TOKENS && next < self.full;
        let _ = (fits && self.exchange(state, next)) || self.add(0, tokens);
    }

    #[inline]
    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        if succeeded && cost == RETURNED {
            self.give_back(cost);
        }
    }
}
