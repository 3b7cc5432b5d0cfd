//! The tokens of a rate that a process holds for one destination, without a runtime or a store.
//!
//! Input: calls that arrive, wait and leave, and the store's answers. Output: which of them may be sent, and the number
//! of tokens to ask for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt_control::{Line, Patience, WaiterId, Wakers};

use crate::destination::between;
use crate::rate_rule::Rate;

/// The time for which tokens are fetched ahead, and the shortest time over which the need is measured.
const AHEAD: Duration = Duration::from_millis(200);
const STRETCH: Duration = Duration::from_millis(100);

/// The time after which tokens that were not spent expire, counted from their question.
const LIFETIME: Duration = Duration::from_secs(1);

/// The shortest and the longest time until the store is asked again, after it granted less than the process asked for.
const SCARCE: (Duration, Duration) = (Duration::from_millis(75), Duration::from_millis(125));

/// The tokens for one destination, and the calls that wait for them.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) key: Box<str>,
    supply: Mutex<Supply>,
}

#[derive(Debug)]
pub(crate) struct Supply {
    tokens: u32,
    expire_at: Duration,
    /// The number of tokens to hold after an answer, in addition to those of waiting calls.
    size: u32,
    /// The time of the last question, and the tokens taken since.
    asked_at: Duration,
    taken: u32,
    is_asking: bool,
    ask_after: Duration,
    pub(crate) line: Line,
}

impl Portion {
    pub(crate) fn new(key: Box<str>, patience: Patience) -> Self {
        let supply = Supply {
            tokens: 0,
            expire_at: Duration::ZERO,
            size: 1,
            asked_at: Duration::ZERO,
            taken: 0,
            is_asking: false,
            ask_after: Duration::ZERO,
            line: Line::new(patience),
        };
        Self { key, supply: Mutex::new(supply) }
    }

    pub(crate) fn supply(&self) -> MutexGuard<'_, Supply> {
        self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if nothing would be lost with this value at `now`.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let mut supply = self.supply();
        !supply.is_asking && supply.line.is_empty() && supply.ask_after <= now && supply.tokens(now) == 0
    }
}

impl Supply {
    /// Takes a token for a call that arrives. Returns `false` if there is none, or if others wait for it.
    pub(crate) fn take(&mut self, now: Duration) -> bool {
        self.line.is_empty() && self.take_one(now)
    }

    /// Takes a token for the first call of the line, which then leaves. The wakers wake the next one.
    pub(crate) fn take_first(&mut self, waiter: WaiterId, now: Duration) -> Option<Wakers> {
        (self.line.position_of(waiter) == Some(0) && self.take_one(now)).then(|| self.line.leave(waiter))
    }

    fn take_one(&mut self, now: Duration) -> bool {
        let has_one = self.tokens(now) > 0;
        if has_one {
            self.tokens -= 1;
            self.taken = self.taken.saturating_add(1);
        }
        has_one
    }

    /// Returns the token of a call that was not sent.
    pub(crate) fn give_back(&mut self, now: Duration) -> Wakers {
        if now < self.expire_at {
            self.tokens += 1;
            self.taken = self.taken.saturating_sub(1);
        }
        self.line.first()
    }

    /// Returns the time at which the first call in line checks again.
    pub(crate) fn next_look(&self, waiter: WaiterId) -> Duration {
        let waits_until = self.line.waits_until(waiter);
        let asks_next = self.line.position_of(waiter) == Some(0) && !self.is_asking;
        if asks_next { waits_until.min(self.ask_after) } else { waits_until }
    }

    /// Returns the number of tokens to ask for, if the store should be asked now, and records that a question was sent.
    /// A call that was refused asks on behalf of the next call.
    ///
    /// A process that uses fewer than ten tokens a second asks for each call. One that uses more asks when half of what
    /// it uses in [`AHEAD`] is left, so that no call waits for an answer.
    pub(crate) fn question(&mut self, rate: Rate, was_refused: bool, now: Duration) -> Option<u32> {
        let held = self.tokens(now);
        let waiting = u32::try_from(self.line.len()).unwrap_or(u32::MAX);
        let is_low = held < self.size / 2 || waiting > held || was_refused;
        if self.is_asking || now < self.ask_after || !is_low {
            return None;
        }
        // A process never asks for more tokens at once than the rate adds in an eighth of a second.
        let most = (rate.per_second() / 8).saturating_add(1);
        let stretch = now.saturating_sub(self.asked_at).clamp(STRETCH, Duration::from_secs(60));
        let used = u128::from(self.taken) * AHEAD.as_millis();
        self.size = u32::try_from(used.div_ceil(stretch.as_millis())).unwrap_or(most).clamp(1, most);
        (self.is_asking, self.asked_at, self.taken) = (true, now, 0);
        // A quiet process fetches no tokens ahead, but only those for its waiting calls.
        let ahead = if self.size > 1 { self.size } else { 0 };
        Some(waiting.saturating_sub(held).saturating_add(ahead).clamp(1, most))
    }

    /// Records the end of a question: the number of tokens granted, or `None` if there was no answer.
    pub(crate) fn answer(&mut self, granted: Option<u32>, wanted: u32, now: Duration, random: u64) -> Wakers {
        self.is_asking = false;
        let granted = granted.unwrap_or(0);
        self.tokens = self.tokens(now).saturating_add(granted.min(wanted));
        self.expire_at = self.asked_at + LIFETIME;
        self.ask_after = if granted < wanted { now + between(SCARCE.0, SCARCE.1, random) } else { now };
        self.line.first()
    }

    /// Returns the tokens that have not expired.
    fn tokens(&mut self, now: Duration) -> u32 {
        if now >= self.expire_at {
            self.tokens = 0;
        }
        self.tokens
    }
}
