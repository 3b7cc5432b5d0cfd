//! One bucket of a cautious budget: tokens, and doubt that closes it while attempts fail.
//!
//! The whole state is one word, so each event is one compare-and-swap: a failure is counted and the
//! token of its retry taken at once. Nothing is ever locked, and no thread waits for another. The
//! model checker includes this file as it stands, so it knows nothing of destinations or settings.
//!
//! | bits | content |
//! |---|---|
//! | 56–63 | 128 − doubt |
//! | 36–55 | tokens, in thousandths |
//! | 0–35 | moment of the last failure, in ticks of 64 ms; it ends after 139 years |
//!
//! The state of a bucket with all tokens and no doubt is above every other state, at any moment. So a success finds
//! out by one comparison that it has no effect.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{FailureKind, PermitIssuer};

use super::bucket::Take;
use super::not_full::{NotFull, Slot};
use crate::sync::{AtomicU64, Ordering};

/// The most doubt that is counted: 64 successes remove it.
pub(crate) const MOST_DOUBT: u64 = 128;
/// Beyond this doubt there is no retry. The first call of an outage can make its three attempts.
const ALLOWED_DOUBT: u64 = 3;
/// Doubt that a success removes. With 1, a server that fails every third attempt would close the bucket.
const REMOVED_BY_SUCCESS: u64 = 2;
/// The time without a failure after which a bucket is new again. A dead host keeps its bucket for as long.
pub(crate) const QUIET: Duration = Duration::from_secs(600);

const TICK_BITS: u32 = 36;
const TICK: u64 = (1 << TICK_BITS) - 1;
const TOKEN_BITS: u32 = 20;
const TOKENS: u64 = (1 << TOKEN_BITS) - 1;
const DOUBT_SHIFT: u32 = TICK_BITS + TOKEN_BITS;

/// One token, in the thousandths that are counted here.
const TOKEN: u64 = 1000;
/// The tokens of a retry, which its success returns.
const RETURNED: u32 = 1;
/// The tokens of a hedge, and of a retry after the server throttled. They are not returned: the success of one does not
/// prove that the server has time for more.
const KEPT: u32 = 2;

/// A thousandth in the millionths of the settings.
const MILLIONTHS: u64 = 1000;

/// The bounds of the tokens that such a bucket may hold: any retry can be paid, and they fit into their bits.
pub(crate) const LEAST_TOKENS: u32 = KEPT;
pub(crate) const MOST_TOKENS: u32 = 1000;

/// The state of a bucket that has left the table. It is above every full state, so that successes and
/// permits leave it alone.
const RETIRED: u64 = u64::MAX;

/// The settings of a cautious bucket, in millionths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caution {
    /// The most it holds, and what it starts with; from [`LEAST_TOKENS`] to [`MOST_TOKENS`].
    pub(crate) capacity: u64,
    /// The tokens that a success adds.
    pub(crate) credit: u64,
}

/// An event that a bucket records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// An attempt failed, and no retry is asked for.
    Failure(FailureKind),
    /// An attempt failed, and its retry asks for a token.
    FailureAndRetry(FailureKind),
    /// An attempt is asked for without a failure: a hedge. It is itself a sign of trouble.
    Hedge,
}

pub(crate) struct CautiousBucket {
    state: AtomicU64,
    /// No doubt and all tokens, at tick 0: the least state that is full.
    full: u64,
    /// In thousandths.
    capacity: u64,
    credit: u64,
    /// Where it is counted while it is not full.
    counted: (Arc<NotFull>, Slot),
}

impl Event {
    /// Returns the tokens that a retry costs after the event.
    #[inline]
    pub(crate) fn cost(self) -> u32 {
        match self {
            Self::Failure(_) => 0,
            Self::Hedge | Self::FailureAndRetry(FailureKind::Throttled) => KEPT,
            Self::FailureAndRetry(_) => RETURNED,
        }
    }
}

impl CautiousBucket {
    /// Creates a full bucket.
    pub(crate) fn new(rule: Caution, counted: (Arc<NotFull>, Slot)) -> Self {
        let capacity = rule.capacity / MILLIONTHS;
        let full = (MOST_DOUBT << DOUBT_SHIFT) | (capacity << TICK_BITS);
        let (state, credit) = (AtomicU64::new(full), rule.credit / MILLIONTHS);
        Self { state, full, capacity, credit, counted }
    }

    /// Records `event`, and takes a token if one is asked for and may be taken: one atomic step.
    ///
    /// A refused hedge leaves no trace. A refused retry leaves its failure.
    pub(crate) fn record(&self, event: Event, now: Duration) -> Take {
        let now = tick(now);
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            if state == RETIRED {
                return Take::Retired;
            }
            let doubted = doubted(self.after_quiet(state, now), event, now);
            let cost = u64::from(event.cost()) * TOKEN;
            let taken = cost > 0 && allows_retry(doubted) && tokens_of(doubted) >= cost;
            let next = match event {
                Event::Hedge if !taken => return Take::Refused,
                _ if taken => doubted - (cost << TICK_BITS),
                _ => doubted,
            };
            match self.replace(state, next) {
                Ok(()) if taken => return Take::Taken,
                Ok(()) => return Take::Refused,
                Err(seen) => state = seen,
            }
        }
    }

    /// Records a success. Reads no clock, and writes nothing when the bucket is full. Returns `false` if the
    /// bucket has left the table.
    #[inline]
    pub(crate) fn credit(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        if state < self.full {
            self.add(state, REMOVED_BY_SUCCESS, self.credit);
            return true;
        }
        state != RETIRED
    }

    /// Returns the tokens in millionths; `None` once retired.
    pub(crate) fn balance(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != RETIRED).then(|| tokens_of(state) * MILLIONTHS)
    }

    /// Returns the doubt; 0 once retired.
    pub(crate) fn doubt(&self) -> u64 {
        MOST_DOUBT.saturating_sub(self.state.load(Ordering::Acquire) >> DOUBT_SHIFT)
    }

    /// Fills the bucket if it has been quiet for [`QUIET`].
    pub(crate) fn settle(&self, now: Duration) {
        let state = self.state.load(Ordering::Acquire);
        let settled = self.after_quiet(state, tick(now));
        // If another thread has changed it, it is not quiet.
        let _ = self.replace(state, settled);
    }

    /// Takes the bucket out of service if it is full at `now`. Returns `true` if it did.
    ///
    /// A thread that records a failure in it afterwards finds it retired, so no failure is lost with the bucket.
    pub(crate) fn retire(&self, now: Duration) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state != RETIRED
            && self.after_quiet(state, tick(now)) >= self.full
            && self.replace(state, RETIRED).is_ok()
    }

    /// Returns `true` if [`retire`](Self::retire) would find it full.
    pub(crate) fn is_full_at(&self, now: Duration) -> bool {
        let state = self.state.load(Ordering::Acquire);
        self.after_quiet(state, tick(now)) >= self.full
    }

    /// Returns the state, or that of a new bucket if there was no failure for [`QUIET`].
    fn after_quiet(&self, state: u64, now: u64) -> u64 {
        let is_quiet = now.saturating_sub(state & TICK) >= tick(QUIET);
        if is_quiet && state < self.full { self.full | (state & TICK) } else { state }
    }

    /// Removes doubt from `state`, which is not full, and adds tokens in thousandths, both up to their bounds.
    ///
    /// Not inlined, so that a success of a full bucket saves no registers.
    #[inline(never)]
    fn add(&self, mut state: u64, removed: u64, tokens: u64) {
        while state < self.full {
            let trust = ((state >> DOUBT_SHIFT) + removed).min(MOST_DOUBT);
            let tokens = (tokens_of(state) + tokens).min(self.capacity);
            let next = (trust << DOUBT_SHIFT) | (tokens << TICK_BITS) | (state & TICK);
            match self.replace(state, next) {
                Ok(()) => return,
                Err(seen) => state = seen,
            }
        }
    }

    /// Changes `state` into `next`, or returns what is there instead.
    ///
    /// The bucket is counted before it ceases to be full, and uncounted after it has become full. So the count may
    /// be too high for a moment, but never too low.
    #[inline]
    fn replace(&self, state: u64, next: u64) -> Result<(), u64> {
        if state == next {
            return Ok(());
        }
        let (was_full, is_full) = (state >= self.full, next >= self.full);
        if was_full && !is_full {
            self.count();
        }
        let replaced =
            self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire);
        if was_full != is_full && replaced.is_ok() == is_full {
            self.uncount();
        }
        replaced.map(drop)
    }

    #[cold]
    fn count(&self) {
        self.counted.0.add(self.counted.1);
    }

    #[cold]
    fn uncount(&self) {
        self.counted.0.remove(self.counted.1);
    }
}

/// Adds the doubt of an event to a state.
///
/// A connection that is lost fails every call on it. So a failure of the kind `Network` within the tick of another
/// failure adds no doubt.
fn doubted(state: u64, event: Event, now: u64) -> u64 {
    let trust = state >> DOUBT_SHIFT;
    let lost = matches!(
        event,
        Event::Failure(FailureKind::Network) | Event::FailureAndRetry(FailureKind::Network)
    );
    let is_known = lost && trust < MOST_DOUBT && state & TICK == now;
    let trust = if is_known { trust } else { trust.saturating_sub(1) };
    (trust << DOUBT_SHIFT) | (state & (TOKENS << TICK_BITS)) | now.max(state & TICK)
}

fn allows_retry(state: u64) -> bool {
    state >> DOUBT_SHIFT >= MOST_DOUBT - ALLOWED_DOUBT
}

#[inline]
fn tokens_of(state: u64) -> u64 {
    (state >> TICK_BITS) & TOKENS
}

/// Returns a moment in ticks, which need no division.
fn tick(now: Duration) -> u64 {
    let milliseconds =
        now.as_secs().saturating_mul(1000).saturating_add(now.subsec_millis().into());
    (milliseconds >> 6).min(TICK)
}

impl PermitIssuer for CautiousBucket {
    /// Returns the tokens of a retry that was never sent. The failure before it stays counted.
    #[inline]
    fn give_back(&self, cost: u32) {
        let state = self.state.load(Ordering::Acquire);
        self.add(state, 0, u64::from(cost) * TOKEN);
    }

    #[inline]
    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        if succeeded && cost == RETURNED {
            self.give_back(cost);
        }
    }
}
