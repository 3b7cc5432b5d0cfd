//! The rule for a rate limit's bucket in a store, as a function over integers.
//!
//! The script of a Redis store is the same function in Lua. Change both together.

use std::num::NonZeroU32;

use crate::rule::{MOST_TOKENS, State, TOKEN};

/// The maximum number of tokens in a burst.
const MOST_BURST: u32 = 100_000;

/// A rate limit for a whole fleet: a number of tokens per second, and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    per_second: NonZeroU32,
    burst: NonZeroU32,
}

impl Rate {
    /// Creates a rate. A burst above 100,000 is lowered to 100,000.
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let most = NonZeroU32::new(MOST_BURST).unwrap_or(burst);
        Self { per_second, burst: burst.min(most) }
    }

    /// Returns the number of tokens added per second.
    pub fn per_second(self) -> u32 {
        self.per_second.get()
    }

    /// Returns the maximum number of saved tokens.
    pub fn burst(self) -> u32 {
        self.burst.get()
    }

    /// Returns the time in milliseconds after which a store may forget a state: burst / rate + 20 s. By then the bucket
    /// is full again.
    pub fn time_to_live(self) -> u64 {
        u64::from(self.burst()) * 1000 / u64::from(self.per_second()) + 20_000
    }
}

/// Adds the tokens for the time passed, then takes up to `wanted` whole tokens. Returns the new state and the number of
/// tokens taken.
///
/// If the store has no state for the key, `state` is `None`, and the bucket is full. `now` is the store's time in
/// milliseconds. If the clock goes backwards, no tokens are added until it has caught up. If the time of `state` is
/// ahead of `now` by more than the time to live, the clock was wrong, and `now` replaces that time.
///
/// ```
/// use std::num::NonZeroU32;
/// use reattempt_fleet::rate::{Rate, take};
///
/// let number = |number| NonZeroU32::new(number).unwrap();
/// let rate = Rate::new(number(100), number(20));
/// let (state, granted) = take(None, 0, rate, 15);
/// assert_eq!(granted, 15);
/// // 5 tokens are left, and 10 ms bring one.
/// let (_, granted) = take(Some(state), 10, rate, 15);
/// assert_eq!(granted, 6);
/// ```
pub fn take(state: Option<State>, now: u64, rate: Rate, wanted: u32) -> (State, u32) {
    let burst = u64::from(rate.burst()) * TOKEN;
    let State { tokens, at } = state.unwrap_or(State { tokens: MOST_TOKENS, at: now });
    let at = if at > now.saturating_add(rate.time_to_live()) { now } else { at };
    // A token per second is a thousandth of a token per millisecond.
    let per_millisecond = u64::from(rate.per_second()) * (TOKEN / 1000);
    let brought = per_millisecond.saturating_mul(now.saturating_sub(at));
    let tokens = tokens.saturating_add(brought).min(burst);
    let granted = u64::from(wanted).min(tokens / TOKEN);
    let state = State { tokens: tokens - granted * TOKEN, at: at.max(now) };
    (state, u32::try_from(granted).unwrap_or(0))
}
