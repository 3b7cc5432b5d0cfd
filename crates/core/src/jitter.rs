//! Jitter, which randomises delays so that clients do not retry in step.

use core::time::Duration;

use crate::Random;
use crate::random::{from_nanos, narrow};

/// The range from which a delay is drawn. It is relative to the *interval*, which is the delay before jitter.
///
/// Clients that fail at the same time and wait for the same delay also retry at the same time. Jitter spreads them out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter(Form);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    None,
    Full,
    Equal,
    Symmetric(f64),
}

impl Jitter {
    /// Creates a range without jitter: the interval itself. No random number is drawn.
    pub const fn none() -> Self {
        Self(Form::None)
    }

    /// Creates the range from zero to the interval; the mean is half the interval. It spreads clients the most.
    pub const fn full() -> Self {
        Self(Form::Full)
    }

    /// Creates the range from half the interval to the interval; the mean is three quarters of it.
    pub const fn equal() -> Self {
        Self(Form::Equal)
    }

    /// Creates the range from `interval · (1 − r)` to `interval · (1 + r)`; the mean is the interval.
    ///
    /// `randomisation` is `r`. It is clamped to the range 0 to 1, and NaN is treated as 0.
    pub const fn symmetric(randomisation: f64) -> Self {
        Self(Form::Symmetric(randomisation.max(0.0).min(1.0)))
    }

    /// Returns the shortest and the longest delay for this interval.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use reattempt_core::Jitter;
    /// let (shortest, longest) = Jitter::symmetric(0.5).range(Duration::from_millis(500));
    /// assert_eq!(shortest, Duration::from_millis(250));
    /// assert_eq!(longest, Duration::from_millis(750));
    /// ```
    #[inline]
    pub fn range(&self, interval: Duration) -> (Duration, Duration) {
        match self.0 {
            Form::None => (interval, interval),
            Form::Full => (Duration::ZERO, interval),
            Form::Equal => (interval / 2, interval),
            Form::Symmetric(randomisation) => symmetric_range(interval, randomisation),
        }
    }

    /// Draws a delay uniformly from [`range`](Jitter::range). Draws no random number if the range is a single delay.
    #[inline]
    pub fn draw(&self, interval: Duration, random: &mut dyn Random) -> Duration {
        match self.0 {
            Form::None => interval,
            Form::Full => random.between(Duration::ZERO, interval),
            Form::Equal => random.between(interval / 2, interval),
            Form::Symmetric(randomisation) => draw_symmetric(interval, randomisation, random),
        }
    }
}

/// Draws from a symmetric range. Not inlined, so that the cheaper cases can be.
#[inline(never)]
fn draw_symmetric(interval: Duration, randomisation: f64, random: &mut dyn Random) -> Duration {
    let (shortest, longest) = symmetric_range(interval, randomisation);
    random.between(shortest, longest)
}

#[inline]
fn symmetric_range(interval: Duration, randomisation: f64) -> (Duration, Duration) {
    let spread = spread(interval, randomisation);
    (interval.saturating_sub(spread), interval.saturating_add(spread))
}

/// Returns a fraction of the interval (`part`, from 0 to 1), exact to the nanosecond or to float precision.
#[inline]
fn spread(interval: Duration, part: f64) -> Duration {
    // From this value to twice it, floats are consecutive integers, as are their bit patterns.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    match narrow(interval) {
        Some(nanos @ 0..0x10_0000_0000_0000) => from_nanos((nanos as f64 * part + WHOLE).to_bits() - WHOLE.to_bits()),
        _ => long_spread(interval, part),
    }
}

/// Returns a fraction of an interval of more than 52 days. Near the maximum a float may round past the longest
/// duration.
#[cold]
#[inline(never)]
fn long_spread(interval: Duration, part: f64) -> Duration {
    Duration::try_from_secs_f64(interval.as_secs_f64() * part).unwrap_or(interval)
}
