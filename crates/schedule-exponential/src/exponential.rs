//! Exponential backoff whose interval grows by its own account, whatever the jitter makes of it.

use core::fmt;
use core::time::Duration;

use reattempt_core::{ConfigError, Delays, Jitter, NextRetry, Random, Schedule};

use crate::Decorrelated;
use crate::growth::Growth;

/// The cap of a schedule that was given none, unless its base is longer.
const DEFAULT_CAP: Duration = Duration::from_secs(5);

/// The longest interval, in nanoseconds, whose double fits into 64 bits: 292 years.
const LONGEST_DOUBLING: u64 = u64::MAX / 2;

/// Delays of `min(cap, base · factorⁿ)`, jittered.
///
/// `n` is the number of the retry, from 0. The [`factor`](Self::factor) is 2 by default. The cap is set by
/// [`max_delay`](Self::max_delay). It is 5 s by default, because callers seldom wait longer, and it is the
/// base where that is longer. A base of zero counts as 1 ms; for retries without a delay use
/// `Constant::immediate()`.
///
/// The default is the schedule of reattempt's own defaults: full jitter, base 100 ms, factor 2, cap
/// 5 s.
///
/// Intervals are whole nanoseconds, exact with whole factors until `factorⁿ` has more than 53 bits,
/// and with factor 2 for ever. Full jitter with that factor and a cap of up to 292 years takes two
/// dozen instructions a delay; the others take about a hundred, and several hundred for intervals of
/// 52 days and more.
///
/// ```
/// use core::time::Duration;
/// use reattempt_schedule_exponential::Exponential;
///
/// // 500 ms ± 50 %, 750 ms ± 50 %, … 60 s ± 50 %
/// let schedule = Exponential::symmetric(Duration::from_millis(500), 0.5)?
///     .factor(1.5)?
///     .max_delay(Duration::from_secs(60));
/// # Ok::<_, reattempt_core::ConfigError>(())
/// ```
#[doc(alias = "ExponentialBackoff")]
#[derive(Clone, Copy, PartialEq)]
pub struct Exponential {
    settings: General,
    /// The state of a call that begins, ready to be copied.
    fresh: ExponentialDelays,
}

impl Exponential {
    /// The interval itself: every client that failed at one moment comes back at one moment.
    ///
    /// For a single client, or where the delays must be known.
    pub fn no_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::none())
    }

    /// Anything from zero to the interval: the best at keeping clients apart, and the default.
    #[doc(alias = "jitter")]
    pub fn full_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::full())
    }

    /// Anything from half the interval to the whole of it: never a retry at once.
    pub fn equal_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::equal())
    }

    /// Anything from `interval · (1 − r)` to `interval · (1 + r)`.
    ///
    /// At the cap, that is up to `1 + r` times the cap; [`clamp_jitter`](Self::clamp_jitter) keeps it
    /// below.
    ///
    /// # Errors
    ///
    /// `randomisation` (`r`) must lie within 0 and 1, both allowed.
    pub fn symmetric(base: Duration, randomisation: f64) -> Result<Self, ConfigError> {
        Ok(Self::new(base, Jitter::symmetric(randomisation)?))
    }

    /// Anything from the base to three times the delay before; a schedule of its own kind.
    pub fn decorrelated(base: Duration) -> Decorrelated {
        let base = at_least_some(base);
        Decorrelated::new(base, default_cap(base))
    }

    /// Full jitter from this many milliseconds: a short form of [`full_jitter`](Self::full_jitter).
    pub fn from_millis(base: u64) -> Self {
        Self::full_jitter(Duration::from_millis(base))
    }

    fn new(base: Duration, jitter: Jitter) -> Self {
        let base = at_least_some(base);
        let growth = Growth::new(base, 2.0, default_cap(base));
        Self::of(General { growth, jitter, clamp_jitter: false })
    }

    fn of(settings: General) -> Self {
        let doubling = DoublingFull::of(&settings).map(State::DoublingFull);
        let fresh = ExponentialDelays(doubling.unwrap_or(State::General(settings)));
        Self { settings, fresh }
    }

    /// Grows by this factor. Recommended: 1.5 to 3.
    ///
    /// Below 1, the delays shrink.
    ///
    /// # Errors
    ///
    /// `factor` must be finite and above 0.
    pub fn factor(mut self, factor: f64) -> Result<Self, ConfigError> {
        if factor.is_finite() && factor > 0.0 {
            self.settings.growth.factor = factor;
            Ok(Self::of(self.settings))
        } else {
            Err(ConfigError::new("factor", factor, "a finite number above 0"))
        }
    }

    /// Sets the longest interval. Default 5 s, or the base where that is longer. Recommended: 1 s to 1 min.
    ///
    /// The bound is applied after the growth and before the jitter. It holds for the first interval too: a
    /// base above it is cut, as gRPC's service config means its `maxBackoff`.
    #[doc(alias = "cap")]
    pub fn max_delay(mut self, longest: Duration) -> Self {
        self.settings.growth.cap = longest;
        Self::of(self.settings)
    }

    /// Removes the bound: the intervals grow up to what a duration can hold.
    pub fn no_max_delay(mut self) -> Self {
        self.settings.growth.cap = Duration::MAX;
        Self::of(self.settings)
    }

    /// Keeps the jittered delay at or below [`max_delay`](Self::max_delay) too.
    ///
    /// The range is cut before the draw, so delays do not bunch on the bound; their mean there is below
    /// the interval. Only the symmetric form exceeds its bound; the other forms do not change.
    pub fn clamp_jitter(mut self) -> Self {
        self.settings.clamp_jitter = true;
        Self::of(self.settings)
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Self::full_jitter(Duration::from_millis(100))
    }
}

impl fmt::Debug for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let General { growth, jitter, clamp_jitter } = &self.settings;
        f.debug_struct("Exponential")
            .field("base", &growth.base)
            .field("factor", &growth.factor)
            .field("cap", &(growth.cap < Duration::MAX).then_some(growth.cap))
            .field("jitter", jitter)
            .field("clamp_jitter", clamp_jitter)
            .finish()
    }
}

impl Schedule for Exponential {
    type Delays = ExponentialDelays;

    #[inline]
    fn delays(&self) -> ExponentialDelays {
        self.fresh
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }
}

/// The state of one call of [`Exponential`].
///
/// The interval grows with each delay that is asked for, not with the retry's number, so a schedule
/// that mixes several, each with a count of its own, need not renumber anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExponentialDelays(State);

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The form that nearly everybody uses.
    DoublingFull(DoublingFull),
    /// Everything else.
    General(General),
}

/// Full jitter and factor 2: an addition, a comparison and a multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DoublingFull {
    /// The number of delays to draw from: from zero to the interval in nanoseconds.
    choices: u64,
    /// That number at the cap.
    most: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct General {
    growth: Growth,
    jitter: Jitter,
    clamp_jitter: bool,
}

impl Delays for ExponentialDelays {
    #[inline]
    fn next_delay(&mut self, _: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        match &mut self.0 {
            State::DoublingFull(doubling) => Some(doubling.next_delay(random)),
            State::General(general) => Some(general.next_delay(random)),
        }
    }
}

impl DoublingFull {
    fn of(General { growth, jitter, .. }: &General) -> Option<Self> {
        if growth.factor != 2.0 || *jitter != Jitter::full() {
            return None;
        }
        Some(Self { choices: choices(growth.base.min(growth.cap))?, most: choices(growth.cap)? })
    }

    #[inline]
    fn next_delay(&mut self, random: &mut dyn Random) -> Duration {
        let choices = self.choices;
        self.choices = (choices + (choices - 1)).min(self.most);
        // The high half of the product maps 64 random bits onto 0 and up, below the choices.
        let product = u128::from(random.next_u64()) * u128::from(choices);
        from_nanos(u64::try_from(product >> 64).unwrap_or(0))
    }
}

impl General {
    /// Not inlined, so that what draws the usual delay stays small.
    #[inline(never)]
    fn next_delay(&mut self, random: &mut dyn Random) -> Duration {
        if !self.clamp_jitter
            && let Some(interval) = self.growth.short_step()
        {
            return self.jitter.draw(interval, random);
        }
        self.next_rare_delay(random)
    }

    /// Of an interval too long for the short form, or cut to the cap.
    #[inline(never)]
    fn next_rare_delay(&mut self, random: &mut dyn Random) -> Duration {
        let (shortest, mut longest) = self.jitter.range(self.growth.step());
        if self.clamp_jitter {
            longest = longest.min(self.growth.cap);
        }
        random.between(shortest, longest)
    }
}

/// Returns the number of delays from zero to this one, if twice as many still fit.
fn choices(longest: Duration) -> Option<u64> {
    let nanos = u64::try_from(longest.as_nanos()).ok().filter(|nanos| *nanos <= LONGEST_DOUBLING);
    Some(nanos? + 1)
}

/// Returns the result of [`Duration::from_nanos`], without its division for delays below a second.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "below a billion")]
fn from_nanos(nanoseconds: u64) -> Duration {
    if nanoseconds < 1_000_000_000 {
        Duration::new(0, nanoseconds as u32)
    } else {
        from_many_nanos(nanoseconds)
    }
}

/// Not inlined, so that what draws the usual delay stays small.
#[cold]
#[inline(never)]
fn from_many_nanos(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

/// The cap of a schedule that was given none.
fn default_cap(base: Duration) -> Duration {
    base.max(DEFAULT_CAP)
}

/// Returns the base, or 1 ms for a base of zero: growth would never leave zero.
fn at_least_some(base: Duration) -> Duration {
    if base.is_zero() { Duration::from_millis(1) } else { base }
}
