//! A rate: tokens per period.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use reattempt_core::snapshot::Part;

/// One token in millionths, the unit of all amounts here.
pub(crate) const TOKEN: u64 = 1_000_000;

const SECOND: u64 = 1_000_000_000;

/// The lowest rate above zero and the highest finite rate, in tokens per second.
const LOWEST: f64 = 1e-6;
const HIGHEST: f64 = 1e9;

/// A rate at which tokens are added.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::Limit;
///
/// assert_eq!(Limit::every(Duration::from_millis(100)), Limit::per_second(10));
/// assert!(Limit::every(Duration::ZERO).is_infinite());
/// ```
#[derive(Clone, Copy)]
pub struct Limit {
    /// Millionths of a token per `period`.
    millionths: u64,
    /// In nanoseconds; 0 means an infinite rate.
    period: u64,
}

impl Limit {
    /// The infinite rate, which allows every call, regardless of the burst.
    pub const INFINITE: Self = Self { millionths: 1, period: 0 };
    /// The zero rate, which allows nothing after the first burst.
    pub const ZERO: Self = Self { millionths: 0, period: SECOND };

    /// Creates a rate of `tokens` per second.
    pub const fn per_second(tokens: u32) -> Self {
        Self { millionths: tokens as u64 * TOKEN, period: SECOND }
    }

    /// Creates a rate of one token per `interval`. A zero interval means an infinite rate. An interval above 584 years
    /// is lowered to 584 years.
    pub fn every(interval: Duration) -> Self {
        Self { millionths: TOKEN, period: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX) }
    }

    /// Creates a rate of `tokens` per second, rounded to millionths. Infinity becomes [`INFINITE`](Self::INFINITE).
    ///
    /// Other rates are clamped to at most 10⁹, and if above 0, to at least 10⁻⁶; for slower rates, use
    /// [`every`](Self::every). NaN and negative rates are treated as 0.
    pub fn of(tokens: f64) -> Self {
        match tokens {
            f64::INFINITY => Self::INFINITE,
            tokens if tokens > 0.0 => Self::clamped(tokens.max(LOWEST)),
            _ => Self::ZERO,
        }
    }

    /// Creates a rate of `tokens` per second, clamped to the range of finite rates.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the product is from 0 to 10¹⁵"
    )]
    pub(crate) fn clamped(tokens: f64) -> Self {
        let millionths = (tokens.clamp(0.0, HIGHEST) * TOKEN as f64).round() as u64;
        Self { millionths, period: SECOND }
    }

    /// Creates a rate of `millionths` of a token per `nanos`, which must not be 0.
    pub(crate) const fn ratio(millionths: u64, nanos: u64) -> Self {
        Self { millionths, period: nanos }
    }

    /// Returns `true` if the rate allows everything.
    #[inline]
    pub const fn is_infinite(self) -> bool {
        self.period == 0
    }

    /// Adds the rate to a part of a snapshot, unless it allows everything.
    pub(crate) fn inspect(self, part: Part) -> Part {
        part.field_if("per_second", (!self.is_infinite()).then(|| self.tokens_per_second()))
    }

    /// Returns the tokens per second.
    #[allow(clippy::cast_precision_loss, reason = "the rate as a float is an approximation")]
    pub fn tokens_per_second(self) -> f64 {
        if self.is_infinite() {
            return f64::INFINITY;
        }
        self.millionths as f64 / TOKEN as f64 * (SECOND as f64 / self.period as f64)
    }

    /// Returns the millionths that `elapsed` nanoseconds add, and the remainder of the division.
    ///
    /// `rest` is the previous remainder at the same rate. An infinite rate adds nothing, because no tokens are taken.
    #[inline]
    pub(crate) fn minted(self, elapsed: u64, rest: u64) -> (u64, u64) {
        if self.is_infinite() {
            return (0, 0);
        }
        let exact = elapsed.checked_mul(self.millionths).and_then(|sum| sum.checked_add(rest));
        match exact {
            Some(sum) => (sum / self.period, sum % self.period),
            None => self.minted_over_ages(elapsed, rest),
        }
    }

    #[cold]
    fn minted_over_ages(self, elapsed: u64, rest: u64) -> (u64, u64) {
        let sum = u128::from(elapsed) * u128::from(self.millionths) + u128::from(rest);
        let period = u128::from(self.period);
        let rest = u64::try_from(sum % period).unwrap_or(0);
        (u64::try_from(sum / period).unwrap_or(u64::MAX), rest)
    }

    /// Returns the nanoseconds after which `missing` millionths have been added, or `None` if never.
    pub(crate) fn time_for(self, missing: u64, rest: u64) -> Option<u64> {
        if missing == 0 || self.is_infinite() {
            return Some(0);
        }
        let needed = u128::from(missing) * u128::from(self.period) - u128::from(rest);
        let millionths = u128::from(self.millionths);
        (millionths > 0).then(|| u64::try_from(needed.div_ceil(millionths)).ok()).flatten()
    }
}

/// A rate is greater than another if it adds more in the same time.
impl Ord for Limit {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |one: &Self, two: &Self| u128::from(one.millionths) * u128::from(two.period);
        product(self, other).cmp(&product(other, self))
    }
}

impl PartialOrd for Limit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Two rates are equal if they always add the same amount.
impl PartialEq for Limit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Limit {}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.tokens_per_second())
    }
}
