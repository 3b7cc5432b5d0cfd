//! How delays are scattered.
//!
//! What flows in: an interval, and a source of random numbers. What flows out: a delay near it, or
//! the bounds within which such a delay lies.

use core::time::Duration;

use crate::{ConfigError, Random};

/// How far a delay is scattered around or below a schedule's interval.
///
/// Clients that fail at one moment and wait equally long come back at one moment; jitter keeps
/// them apart.
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
    /// The interval itself; no random number is drawn.
    pub const fn none() -> Self {
        Self(Form::None)
    }

    /// Anything from zero to the interval; half of it on average. It scatters best.
    pub const fn full() -> Self {
        Self(Form::Full)
    }

    /// Anything from half the interval to the whole of it; three quarters on average.
    pub const fn equal() -> Self {
        Self(Form::Equal)
    }

    /// Anything from `interval · (1 − r)` to `interval · (1 + r)`; the interval on average.
    ///
    /// # Errors
    ///
    /// `randomisation` (`r`) must lie within 0 and 1, both allowed.
    pub fn symmetric(randomisation: f64) -> Result<Self, ConfigError> {
        if (0.0..=1.0).contains(&randomisation) {
            Ok(Self(Form::Symmetric(randomisation)))
        } else {
            Err(ConfigError::new("randomisation", randomisation, "a number from 0 to 1"))
        }
    }

    /// The shortest and the longest delay that may come of this interval.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use reattempt_core::Jitter;
    /// let (shortest, longest) = Jitter::symmetric(0.5)?.range(Duration::from_millis(500));
    /// assert_eq!(shortest, Duration::from_millis(250));
    /// assert_eq!(longest, Duration::from_millis(750));
    /// # Ok::<_, reattempt_core::ConfigError>(())
    /// ```
    pub fn range(&self, interval: Duration) -> (Duration, Duration) {
        match self.0 {
            Form::None => (interval, interval),
            Form::Full => (Duration::ZERO, interval),
            Form::Equal => (interval / 2, interval),
            Form::Symmetric(randomisation) => {
                // Near the end of what a duration can hold, the float may round past it.
                let spread = Duration::try_from_secs_f64(interval.as_secs_f64() * randomisation)
                    .unwrap_or(interval);
                (interval.saturating_sub(spread), interval.saturating_add(spread))
            }
        }
    }

    /// A delay drawn uniformly from [`range`](Jitter::range).
    pub fn draw(&self, interval: Duration, random: &mut dyn Random) -> Duration {
        match self.range(interval) {
            (shortest, longest) if shortest == longest => shortest,
            (shortest, longest) => random.between(shortest, longest),
        }
    }
}
