//! The rule for a rate limit's bucket in a store, as a function over integers.
//!
//! The script of a Redis store is the same function in Lua. Change both together.

use std::num::NonZeroU32;

use crate::rule::{self, MOST_TOKENS, TOKEN};

/// The maximum number of tokens in a burst.
const MOST_BURST: u32 = 100_000;

/// The longest time in milliseconds for which a bucket waits for a clock that was set back. A longer step back is an
/// error of the clock.
const CATCH_UP: u64 = 5_000;

/// The state of a rate limit's bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The number of tokens, in millionths.
    pub tokens: u64,
    /// The time of the last event, in milliseconds on the store's clock.
    pub at: u64,
    /// The time of the last grant of at least one token, in milliseconds on the store's clock.
    pub granted_at: u64,
}

impl State {
    /// Parses a state from its text, three numbers separated by spaces. Returns `None` for any other text.
    ///
    /// ```
    /// use reattempt_fleet::rate::State;
    ///
    /// let state = State { tokens: 9_000_000, at: 1_700_000_000_000, granted_at: 1_699_999_999_000 };
    /// assert_eq!(State::parse(&state.to_string()), Some(state));
    /// assert_eq!(State::parse("rubbish"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (bucket, granted_at) = text.rsplit_once(' ')?;
        let rule::State { tokens, at } = rule::State::parse(bucket)?;
        Some(Self { tokens, at, granted_at: rule::number(granted_at)? })
    }
}

/// The output is the text of a state in a store.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.tokens, self.at, self.granted_at)
    }
}

/// A store's answer to a request for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The number of tokens granted.
    pub granted: u32,
    /// The time of the bucket's last grant to any process, in milliseconds on the store's clock. Two answers with the
    /// same time show that no process was granted a token between them.
    pub granted_at: u64,
}

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

/// Adds the tokens for the time passed, then takes up to `wanted` whole tokens. Returns the new state and the answer.
///
/// If the store has no state for the key, `state` is `None`, and the bucket is full. `now` is the store's time in
/// milliseconds. If the clock goes backwards, no tokens are added until it has caught up. If the time of `state` is
/// ahead of `now` by more than 5 s, the clock was wrong, and `now` replaces that time.
///
/// ```
/// use std::num::NonZeroU32;
/// use reattempt_fleet::rate::{Rate, take};
///
/// let number = |number| NonZeroU32::new(number).unwrap();
/// let rate = Rate::new(number(100), number(20));
/// let (state, taken) = take(None, 0, rate, 15);
/// assert_eq!(taken.granted, 15);
/// // 5 tokens are left, and 10 ms bring one.
/// let (_, taken) = take(Some(state), 10, rate, 15);
/// assert_eq!((taken.granted, taken.granted_at), (6, 10));
/// ```
pub fn take(state: Option<State>, now: u64, rate: Rate, wanted: u32) -> (State, Taken) {
    let burst = u64::from(rate.burst()) * TOKEN;
    let State { tokens, at, granted_at } = state.unwrap_or(State { tokens: MOST_TOKENS, at: now, granted_at: now });
    let at = if at > now.saturating_add(CATCH_UP) { now } else { at };
    // A token per second is a thousandth of a token per millisecond.
    let per_millisecond = u64::from(rate.per_second()) * (TOKEN / 1000);
    let brought = per_millisecond.saturating_mul(now.saturating_sub(at));
    let tokens = tokens.saturating_add(brought).min(burst);
    let granted = u64::from(wanted).min(tokens / TOKEN);
    let granted_at = if granted > 0 { now } else { granted_at };
    let state = State { tokens: tokens - granted * TOKEN, at: at.max(now), granted_at };
    (state, Taken { granted: u32::try_from(granted).unwrap_or(0), granted_at })
}
