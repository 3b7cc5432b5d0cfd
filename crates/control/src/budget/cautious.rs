//! A cautious token bucket, with a doubt counter that blocks retries while attempts fail.
//!
//! The whole state is one word, so each event is a single compare-and-swap: a failure is counted and its retry's token
//! taken in one step. There is no lock, and no thread waits for another. The model checker includes this file
//! unchanged, so it must not refer to destinations or settings.
//!
//! | bits | content |
//! |---|---|
//! | 56–63 | *trust*: 128 − doubt |
//! | 40–55 | tokens, in twentieths, plus the largest debt |
//! | 39 | the last failure belongs to an event |
//! | 38 | that event was granted |
//! | 0–37 | time of the last event, or of a later failure that is in no event, in ms; saturates after 8 years |
//!
//! # Events
//!
//! Failures with one cause are one event ([`Evidence`](reattempt_core::Evidence#events)). Its first failure opens it:
//! it adds doubt, and grants the event if it would grant a retry. The other failures, its *members*, add none, and
//! share the grant. If the event is the only doubt, they may even overdraw the bucket, because a lost connection often
//! ends more calls than there are tokens. An overdrawn retry costs twice as much and is not returned. Otherwise calls
//! that fail because they wait too long would pay for their own retries. The debt has a bound, and no further event is
//! granted until successes have repaid it.
//!
//! A bucket with all tokens and no doubt is full. As a number, its state is above that of every bucket that is not
//! full, regardless of the time of its last failure. One comparison thus shows whether a success has an effect.

use std::time::Duration;

use reattempt_core::event::is_member;
use reattempt_core::{FailureKind, PermitIssuer};

use super::bucket::Take;
use super::not_full::BucketCount;
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

const TICK_BITS: u32 = 38;
const TICK: u64 = (1 << TICK_BITS) - 1;
const GRANTED: u64 = 1 << TICK_BITS;
const EVENT: u64 = 2 << TICK_BITS;
const TOKEN_SHIFT: u32 = TICK_BITS + 2;
const TOKEN_BITS: u32 = 16;
const TOKENS: u64 = ((1 << TOKEN_BITS) - 1) << TOKEN_SHIFT;
const DOUBT_SHIFT: u32 = TOKEN_SHIFT + TOKEN_BITS;
const TRUST: u64 = u64::MAX << DOUBT_SHIFT;
/// The last second that ticks can represent.
const LAST_SECOND: u64 = TICK / 1000 - 1;
/// The lowest state in which the doubt is zero.
const NO_DOUBT: u64 = MOST_DOUBT << DOUBT_SHIFT;

/// One token in twentieths, the unit of this file.
const TOKEN: u64 = 20;
/// The largest debt. It lets a client with 256 calls on one connection repeat them all.
const MOST_DEBT: u64 = MOST_DEBT_TOKENS as u64 * TOKEN;
/// The doubt above which members of an event do not overdraw the bucket: that of the event itself.
const OVERDRAFT_DOUBT: u64 = 1;
/// The doubt above which a call does not move to another endpoint without a token.
const MOVING_DOUBT: u64 = 2;
/// The tokens that a retry takes. They are returned if it succeeds.
const RETURNED: u32 = 1;
/// The tokens that a hedge, an overdrawn retry, or a retry after the server throttled takes. They are not returned,
/// because its success does not prove that the server has spare capacity.
pub(crate) const NOT_RETURNED: u32 = 2;

/// The number of millionths (the unit of the settings) in a twentieth.
const MILLIONTHS: u64 = 50_000;

/// The bounds of a bucket's capacity, which must pay for any retry and fit into its bits.
pub(crate) const LEAST_TOKENS: u32 = NOT_RETURNED;
pub(crate) const MOST_TOKENS: u32 = 1000;
pub(crate) const MOST_DEBT_TOKENS: u32 = 512;

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
    /// The largest debt; at most [`MOST_DEBT_TOKENS`].
    pub(crate) debt: u64,
}

/// A failure that a bucket records, or a hedge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: FailureKind,
    pub(crate) cause: Cause,
    pub(crate) wants: Wants,
}

/// The relation of a failure to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It stands alone.
    Own,
    /// Attempts that were sent before it was seen may fail of the same cause. This one was sent at this time.
    Shared { sent: Duration },
    /// It shows nothing about the server.
    Local,
}

/// The request of a call to the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    Nothing,
    /// The tokens of a retry.
    Retry,
    /// The tokens of a hedge. There was no failure, but needing a hedge is itself a sign of trouble.
    Hedge,
    /// Permission to replace an attempt that was not processed, which costs nothing.
    Replacement,
}

/// Returns the most retries that a full bucket grants while no call succeeds.
pub(crate) fn most_retries(capacity: u64) -> u32 {
    let tokens = capacity / MILLIONTHS / TOKEN / u64::from(RETURNED);
    tokens.min(ALLOWED_DOUBT) as u32
}

pub(crate) struct CautiousBucket {
    state: AtomicU64,
    /// No doubt and all tokens, at tick 0: the lowest full state.
    full: u64,
    /// The amount that one success adds, at the position of the tokens in the state.
    credit: u64,
    /// The lowest balance, plus the largest debt.
    least: u64,
    /// Counts the bucket while it is not full.
    counted: BucketCount,
}

impl Event {
    /// Returns the cost of the attempt that the call requests.
    #[inline]
    pub(crate) fn cost(self) -> u32 {
        match self.wants {
            Wants::Nothing | Wants::Replacement => 0,
            Wants::Retry if self.kind != FailureKind::Throttled => RETURNED,
            Wants::Retry | Wants::Hedge => NOT_RETURNED,
        }
    }
}

impl CautiousBucket {
    /// Creates a full bucket.
    pub(crate) fn new(rule: Caution, counted: BucketCount) -> Self {
        let capacity = rule.capacity / MILLIONTHS;
        let full = NO_DOUBT | ((capacity + MOST_DEBT) << TOKEN_SHIFT);
        let (state, credit) = (AtomicU64::new(full), (rule.credit / MILLIONTHS) << TOKEN_SHIFT);
        let least = MOST_DEBT.saturating_sub(rule.debt / MILLIONTHS);
        Self { state, full, credit, least, counted }
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
        let (doubted, is_member) = doubted(self.after_quiet(state, now), event, now);
        let (take, cost) = granted(doubted, event, is_member, self.least);
        if event.wants == Wants::Hedge && take == Take::Refused {
            return Some(take);
        }
        let next = doubted - ((cost * TOKEN) << TOKEN_SHIFT);
        if next == state {
            return Some(take);
        }
        // Most failures and hedges add doubt or take tokens, so the bucket is not full afterwards.
        let was_full = state >= self.full;
        if was_full {
            self.counted.add();
        }
        if self.exchange(state, next) {
            // A failure that adds no doubt may have found a quiet bucket, which is full again.
            if next >= self.full {
                self.counted.remove();
            }
            return Some(take);
        }
        if was_full {
            self.counted.remove();
        }
        None
    }

    /// Returns `true` if the doubt lets a call move to another endpoint without a token.
    pub(crate) fn allows_moves(&self) -> bool {
        self.doubt() <= MOVING_DOUBT
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

    /// Returns the balance in millionths, which is negative for a debt, or `None` once retired.
    pub(crate) fn balance(&self) -> Option<i64> {
        let state = self.state.load(Ordering::Acquire);
        let balance = tokens_of(state).wrapping_sub(MOST_DEBT).cast_signed();
        (state != RETIRED).then(|| balance * MILLIONTHS.cast_signed())
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
    pub(crate) fn restore(&self, balance: i64, doubt: u64, last_failure: u64) {
        let own = self.state.load(Ordering::Acquire);
        let tokens = (balance / MILLIONTHS.cast_signed()).saturating_add_unsigned(MOST_DEBT).max(0).cast_unsigned();
        let tokens = (tokens << TOKEN_SHIFT).min(own & TOKENS);
        let trust = (MOST_DOUBT.saturating_sub(doubt) << DOUBT_SHIFT).min(own & TRUST);
        let state = trust | tokens | (last_failure & TICK).max(own & TICK);
        if state < self.full && own >= self.full {
            self.counted.add();
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
        if is_quiet { self.full | (state & TICK) } else { state }
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
            match self.replace(state, trust | tokens | (state & (EVENT | GRANTED | TICK))) {
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
            self.counted.remove();
        }
        Ok(())
    }

    /// Exchanges the state without changing the count.
    #[inline]
    fn exchange(&self, state: u64, next: u64) -> bool {
        self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Returns the state after a failure or a hedge, with the same tokens, and whether it is a member of the last event.
fn doubted(state: u64, event: Event, now: u64) -> (u64, bool) {
    let doubted = || {
        let trust = (state >> DOUBT_SHIFT).saturating_sub(1);
        (trust << DOUBT_SHIFT) | (state & TOKENS) | now.max(state & TICK)
    };
    match event.cause {
        Cause::Local => (state, false),
        Cause::Own => (doubted(), false),
        Cause::Shared { sent } if state & EVENT != 0 && is_member(tick(sent), state & TICK) => (state, true),
        Cause::Shared { .. } => {
            let opened = doubted() | EVENT;
            let grants = allows_retry(opened) && tokens_of(opened) >= MOST_DEBT + TOKEN;
            (if grants { opened | GRANTED } else { opened }, false)
        }
    }
}

/// Returns the answer to a request in this state, and the tokens that it takes.
fn granted(state: u64, event: Event, is_member: bool, least: u64) -> (Take, u64) {
    let (allowed, cost) = (allows_retry(state), u64::from(event.cost()));
    let doubt = MOST_DOUBT.saturating_sub(state >> DOUBT_SHIFT);
    match event.wants {
        Wants::Replacement if allowed => (Take::Taken, 0),
        Wants::Nothing | Wants::Replacement => (Take::Refused, 0),
        _ if is_member && state & GRANTED == 0 => (Take::Refused, 0),
        _ if allowed && tokens_of(state) >= MOST_DEBT + cost * TOKEN => (Take::Taken, cost),
        _ if is_member && doubt <= OVERDRAFT_DOUBT && tokens_of(state) >= least + u64::from(NOT_RETURNED) * TOKEN => {
            (Take::Overdrawn, NOT_RETURNED.into())
        }
        _ => (Take::Refused, 0),
    }
}

fn allows_retry(state: u64) -> bool {
    state >> DOUBT_SHIFT >= MOST_DOUBT - ALLOWED_DOUBT
}

/// Returns the tokens plus the largest debt.
#[inline]
fn tokens_of(state: u64) -> u64 {
    (state & TOKENS) >> TOKEN_SHIFT
}

/// Converts a time to ticks, without a division.
#[inline]
fn tick(now: Duration) -> u64 {
    let seconds = now.as_secs().min(LAST_SECOND);
    seconds * 1000 + u64::from(now.subsec_millis())
}

impl PermitIssuer for CautiousBucket {
    /// Returns the tokens of a retry that was never sent. The preceding failure still counts.
    #[inline]
    fn give_back(&self, cost: u32) {
        let tokens = (u64::from(cost) * TOKEN) << TOKEN_SHIFT;
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
