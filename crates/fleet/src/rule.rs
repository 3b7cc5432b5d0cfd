//! The rule for a store's buckets, one per destination, as a function over integers.
//!
//! Its inputs are the state, the store's time, the tokens earned, a retry's cost and the tokens that it must find. Its
//! outputs are the next state and the answer. The Redis store's script is the same function in Lua. Change both
//! together, and increase [`VERSION`].

/// The version of the rule. It is part of every key, so two versions never share a bucket.
pub const VERSION: u32 = 2;

/// One token in millionths, the unit of this module.
pub const TOKEN: u64 = 1_000_000;

/// The number of tokens in a new bucket, in millionths. Time never fills a bucket beyond this number.
pub const CAPACITY: u64 = 10 * TOKEN;

/// The maximum number of tokens in a bucket, in millionths. The product of this number and a decay factor is still an
/// exact number in Lua.
pub const MOST_TOKENS: u64 = 100_000 * TOKEN;

/// The time in milliseconds after which a store may forget a state: capacity / rate + 20 s. By then the bucket is full
/// again.
pub const TIME_TO_LIVE: u64 = CAPACITY / PER_MILLISECOND + 20_000;

/// The millionths that each millisecond adds below the capacity: half a token per second.
const PER_MILLISECOND: u64 = 500;

/// The fraction of an excess that is left after 1, 2, 4, … milliseconds, in 65536ths: it halves every second.
const FACTORS: [u64; 15] =
    [65491, 65445, 65355, 65174, 64813, 64098, 62692, 59972, 54880, 45957, 32227, 15848, 3832, 224, 1];

/// The state of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The number of tokens, in millionths; at most [`MOST_TOKENS`].
    pub tokens: u64,
    /// The time of the last event, in milliseconds on the store's clock.
    pub at: u64,
}

impl State {
    /// Parses a state from its text, two numbers separated by a space. Returns `None` for any other text.
    ///
    /// ```
    /// use reattempt_fleet::rule::State;
    ///
    /// let state = State { tokens: 9_000_000, at: 1_700_000_000_000 };
    /// assert_eq!(State::parse(&state.to_string()), Some(state));
    /// assert_eq!(State::parse("rubbish"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (tokens, at) = text.split_once(' ')?;
        let state = Self { tokens: number(tokens)?, at: number(at)? };
        (state.tokens <= MOST_TOKENS).then_some(state)
    }
}

/// Parses a number of at most 15 digits, which is exact in Lua.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The output is the text of a state in a store.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.tokens, self.at)
    }
}

/// Adds the tokens for the time passed and the `earned` tokens, then takes `cost` if the bucket has that much, and at
/// least `least`. Returns the new state, and `true` if `cost` was taken.
///
/// If the store has no state for the key, `state` is `None`, and the bucket is full. `now` is the store's time in
/// milliseconds. `earned`, `cost` and `least` are millionths of a token. A process that has had no success at the
/// destination passes [`CAPACITY`] as `least`, so it leaves the last tokens to the others.
///
/// Below the capacity, time adds half a token per second. Above it, the excess halves every second. If the clock goes
/// backwards, no tokens are added until it has caught up. If the time of `state` is ahead of `now` by more than
/// [`TIME_TO_LIVE`], the clock was wrong, and `now` replaces that time.
///
/// ```
/// use reattempt_fleet::rule::{State, TOKEN, settle};
///
/// let (mut state, mut granted) = (None, 0);
/// for second in 0..=10 {
///     // A hundred processes ask in each second of an outage.
///     for _ in 0..100 {
///         let (next, answer) = settle(state, second * 1000, 0, TOKEN, 0);
///         state = Some(next);
///         granted += u32::from(answer);
///     }
/// }
/// assert_eq!(granted, 10 + 5);
/// ```
pub fn settle(state: Option<State>, now: u64, earned: u64, cost: u64, least: u64) -> (State, bool) {
    let State { tokens, at } = state.unwrap_or(State { tokens: CAPACITY, at: now });
    let at = if at > now.saturating_add(TIME_TO_LIVE) { now } else { at };
    let passed = now.saturating_sub(at).min(TIME_TO_LIVE);
    let tokens = match tokens.checked_sub(CAPACITY) {
        Some(excess) => CAPACITY + halved(excess, passed),
        None => CAPACITY.min(tokens + PER_MILLISECOND * passed),
    };
    let tokens = MOST_TOKENS.min(tokens + earned.min(MOST_TOKENS));
    let at = at.max(now);
    match tokens.checked_sub(cost) {
        Some(rest) if tokens >= least => (State { tokens: rest, at }, true),
        _ => (State { tokens, at }, false),
    }
}

/// Returns what is left of an excess after `milliseconds`.
fn halved(excess: u64, milliseconds: u64) -> u64 {
    if milliseconds >> FACTORS.len() > 0 {
        return 0;
    }
    let steps = FACTORS.iter().enumerate().filter(|(step, _)| milliseconds >> step & 1 == 1);
    steps.fold(excess, |excess, (_, factor)| excess * factor / 65536)
}
