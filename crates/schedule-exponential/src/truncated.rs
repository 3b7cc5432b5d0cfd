//! The schedule from Google's documentation: a few doubling delays, each plus a random part.

use core::time::Duration;

use reattempt_core::{Delays, NextRetry, Random, Schedule};

use crate::growth::Growth;

/// A fixed number of delays of `base · 2ⁿ`, each plus a random part.
///
/// The random part is drawn for each delay and does not grow. By default there are five retries, after 1 s, 2 s, 4 s, 8
/// s and 16 s, each plus up to 1 s. These are the delays in [Google's
/// example](https://cloud.google.com/storage/docs/exponential-backoff), which does not specify the number of retries.
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_exponential::TruncatedExponential;
///
/// let (base, retries, random_part) = (Duration::from_secs(1), 5, Duration::from_secs(1));
/// let schedule = TruncatedExponential::new(base, retries, random_part);
/// assert_eq!(schedule, TruncatedExponential::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedExponential {
    base: Duration,
    retries: u32,
    random_part: Duration,
}

impl TruncatedExponential {
    /// Creates a schedule of `retries` delays that double from `base`, each with a random part of up to `random_part`.
    ///
    /// There is no cap, because the number of retries limits the growth. With a base of zero, each delay is just the
    /// random part.
    pub const fn new(base: Duration, retries: u32, random_part: Duration) -> Self {
        Self { base, retries, random_part }
    }
}

impl Default for TruncatedExponential {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), 5, Duration::from_millis(1000))
    }
}

impl Schedule for TruncatedExponential {
    type Delays = TruncatedExponentialDelays;

    fn delays(&self) -> TruncatedExponentialDelays {
        TruncatedExponentialDelays {
            growth: Growth::new(self.base, 2.0, Duration::MAX),
            retries: self.retries,
            random_part: self.random_part,
        }
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }
}

/// The per-call state of [`TruncatedExponential`].
#[derive(Debug, Clone, Copy)]
pub struct TruncatedExponentialDelays {
    growth: Growth,
    retries: u32,
    random_part: Duration,
}

impl Delays for TruncatedExponentialDelays {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        if retry.number >= self.retries {
            return None;
        }
        let interval = self.growth.step();
        Some(random.between(interval, interval.saturating_add(self.random_part)))
    }
}
