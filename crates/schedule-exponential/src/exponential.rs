//! Exponential backoff whose interval grows by its own account, whatever the jitter makes of it.

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
/// `n` is the number of the retry, from 0. The factor is 2 until [`factor`](Self::factor) sets
/// another: it doubles. The cap is 5 s until [`cap`](Self::cap) sets another, for a caller seldom
/// waits longer; a base above 5 s is its own cap, so such a schedule is flat until it is given one.
///
/// The default is the schedule of reattempt's own defaults: full jitter, base 100 ms, factor 2, cap
/// 5 s.
///
/// Intervals are whole nanoseconds, exact with factor 2. Full jitter with that factor and a cap of up
/// to 292 years takes a few dozen instructions a delay; everything else a few hundred.
///
/// ```
/// use core::time::Duration;
/// use reattempt_schedule_exponential::Exponential;
///
/// // 500 ms ± 50 %, 750 ms ± 50 %, … 60 s ± 50 %
/// let schedule = Exponential::symmetric(Duration::from_millis(500), 0.5)?
///     .factor(1.5)?
///     .cap(Duration::from_secs(60))?;
/// # Ok::<_, reattempt_core::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    base: Duration,
    factor: f64,
    cap: Option<Duration>,
    jitter: Jitter,
    within_cap: bool,
}

impl Exponential {
    /// The interval itself: every client that failed at one moment comes back at one moment.
    ///
    /// For a single client, or where the delays must be known.
    pub fn no_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::none())
    }

    /// Anything from zero to the interval: the best at keeping clients apart, and the default.
    pub fn full_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::full())
    }

    /// Anything from half the interval to the whole of it: never a retry at once.
    pub fn equal_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::equal())
    }

    /// Anything from `interval · (1 − r)` to `interval · (1 + r)`.
    ///
    /// At the cap, that is up to `1 + r` times the cap; [`within_cap`](Self::within_cap) keeps it
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
        Decorrelated::new(base, default_cap(base))
    }

    fn new(base: Duration, jitter: Jitter) -> Self {
        Self { base, factor: 2.0, cap: Some(default_cap(base)), jitter, within_cap: false }
    }

    /// Grows by this factor. Recommended: 1.5 to 3.
    ///
    /// Below 1, the delays shrink.
    ///
    /// # Errors
    ///
    /// `factor` must be finite and above 0.
    pub fn factor(self, factor: f64) -> Result<Self, ConfigError> {
        if factor.is_finite() && factor > 0.0 {
            Ok(Self { factor, ..self })
        } else {
            Err(ConfigError::new("factor", factor, "a finite number above 0"))
        }
    }

    /// Grows no further than this. Recommended: 1 s to 1 min.
    ///
    /// # Errors
    ///
    /// `cap` must not be below the base delay.
    pub fn cap(self, cap: Duration) -> Result<Self, ConfigError> {
        Ok(Self { cap: Some(checked_cap(self.base, cap)?), ..self })
    }

    /// Grows without end, up to what a duration can hold.
    pub fn without_cap(self) -> Self {
        Self { cap: None, ..self }
    }

    /// Keeps the jittered delay at or below the cap too.
    ///
    /// The range is cut before the draw, so nothing bunches on the cap; the mean there falls below
    /// the interval. Only the symmetric form ever passes its cap; the others are as they were.
    pub fn within_cap(self) -> Self {
        Self { within_cap: true, ..self }
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Self::full_jitter(Duration::from_millis(100))
    }
}

impl Schedule for Exponential {
    type Delays = ExponentialDelays;

    #[inline]
    fn delays(&self) -> ExponentialDelays {
        let cap = self.cap.unwrap_or(Duration::MAX);
        if self.factor == 2.0
            && self.jitter == Jitter::full()
            && let Some(cap) = below_longest_doubling(cap)
            && let Some(interval) = below_longest_doubling(self.base)
        {
            return ExponentialDelays(State::DoublingFull { interval, cap });
        }
        ExponentialDelays(State::General(General {
            growth: Growth::new(self.base, self.factor, cap),
            jitter: self.jitter,
            longest: if self.within_cap { cap } else { Duration::MAX },
        }))
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
#[derive(Debug, Clone, Copy)]
pub struct ExponentialDelays(State);

#[derive(Debug, Clone, Copy)]
enum State {
    /// The form that nearly everybody uses, in nanoseconds, neither above [`LONGEST_DOUBLING`]: an
    /// addition, a comparison and a multiplication.
    DoublingFull { interval: u64, cap: u64 },
    /// Everything else.
    General(General),
}

#[derive(Debug, Clone, Copy)]
struct General {
    growth: Growth,
    jitter: Jitter,
    longest: Duration,
}

impl Delays for ExponentialDelays {
    #[inline]
    fn next_delay(&mut self, _: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        match &mut self.0 {
            State::DoublingFull { interval, cap } => {
                let highest = *interval;
                *interval = (highest << 1).min(*cap);
                Some(Duration::from_nanos(up_to(highest, random.next_u64())))
            }
            State::General(general) => Some(general.next_delay(random)),
        }
    }
}

impl General {
    fn next_delay(&mut self, random: &mut dyn Random) -> Duration {
        let (shortest, longest) = self.jitter.range(self.growth.step());
        if shortest == longest {
            return shortest;
        }
        random.between(shortest, longest.min(self.longest))
    }
}

/// Maps 64 random bits onto `0..=highest`: the high half of their product with `highest + 1`.
#[inline]
fn up_to(highest: u64, bits: u64) -> u64 {
    let product = u128::from(bits) * u128::from(highest + 1);
    u64::try_from(product >> 64).unwrap_or(highest)
}

/// The duration in nanoseconds, if its double still fits.
fn below_longest_doubling(duration: Duration) -> Option<u64> {
    u64::try_from(duration.as_nanos()).ok().filter(|nanos| *nanos <= LONGEST_DOUBLING)
}

/// The cap of a schedule that was given none.
fn default_cap(base: Duration) -> Duration {
    base.max(DEFAULT_CAP)
}

/// `cap`, if it is one for this base.
pub(crate) fn checked_cap(base: Duration, cap: Duration) -> Result<Duration, ConfigError> {
    if cap >= base {
        Ok(cap)
    } else {
        Err(ConfigError::new("cap", format_args!("{cap:?}"), "at least the base delay"))
    }
}
