//! The settings of the throttle.

use crate::decimal::Decimal;

/// The settings of a [`RetryThrottle`](crate::RetryThrottle): the bucket's size, and the tokens added per success.
///
/// Both are stored in thousandths of a token. Further decimals are dropped, not rounded.
///
/// The default is a bucket of 10 tokens, and 0.1 per success. Retries then stop after 5 failures in a row, or if more
/// than one in eleven attempts fails over a long time.
///
/// ```
/// # use reattempt_grpc::RetryThrottling;
/// let throttling = RetryThrottling::new(10.0, 0.5466);
/// assert_eq!(throttling.max_tokens_thousandths(), 10_000);
/// assert_eq!(throttling.token_ratio_thousandths(), 546);
/// ```
// THR-9, THR-10
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryThrottling {
    max_tokens: u32,
    token_ratio: u32,
}

pub(crate) const MAX_TOKENS: &str = "a number from 0.001 to 1000";
pub(crate) const TOKEN_RATIO: &str = "a number of at least 0.001";

impl RetryThrottling {
    /// Creates settings with a bucket size of `max_tokens` and `token_ratio` tokens per success.
    ///
    /// Both are clamped to 0.001 to 1000, and NaN is treated as 0.001.
    pub fn new(max_tokens: f64, token_ratio: f64) -> Self {
        Self { max_tokens: thousandths(max_tokens), token_ratio: thousandths(token_ratio) }
    }

    /// Creates settings from thousandths, as checked by [`max_tokens_of`] and [`token_ratio_of`].
    pub(crate) fn of_thousandths(max_tokens: u32, token_ratio: u32) -> Self {
        Self { max_tokens, token_ratio }
    }

    /// Returns the bucket's size in thousandths of a token, from 1 to 1,000,000.
    pub const fn max_tokens_thousandths(self) -> u32 {
        self.max_tokens
    }

    /// Returns the tokens added per success, in thousandths, at least 1.
    pub const fn token_ratio_thousandths(self) -> u32 {
        self.token_ratio
    }
}

impl Default for RetryThrottling {
    fn default() -> Self {
        Self { max_tokens: 10_000, token_ratio: 100 }
    }
}

/// Converts a number to thousandths, clamped to 0.001 to 1000.
///
/// The number is parsed from its decimal text ("0.3"), so that the result is 300 and not 299.
fn thousandths(number: f64) -> u32 {
    let number = if number > 0.001 { number.min(1000.0) } else { 0.001 };
    max_tokens_of(&number.to_string()).unwrap_or(1)
}

/// Parses a JSON `maxTokens` into thousandths. Returns `None` unless they are in [`MAX_TOKENS`].
pub(crate) fn max_tokens_of(text: &str) -> Option<u32> {
    let number = Decimal::parse(text, 3)?;
    let above = number.units == 1_000_000 && !number.exact;
    let legal = (1..=1_000_000).contains(&number.units) && !above;
    legal.then_some(number.units)?.try_into().ok()
}

/// Parses a JSON `tokenRatio` into thousandths. Returns `None` unless they are in [`TOKEN_RATIO`].
///
/// The value saturates, because 1000 tokens fill any bucket.
pub(crate) fn token_ratio_of(text: &str) -> Option<u32> {
    let units = Decimal::parse(text, 3)?.units;
    (units > 0).then(|| units.try_into().unwrap_or(u32::MAX))
}
