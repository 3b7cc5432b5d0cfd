//! Doubling delays with a random part added to each, for a few retries.

use core::time::Duration;

use reattempt_core::{Delays, NextRetry, Random, Schedule};

use crate::growth::Growth;

/// Delays of `base · 2ⁿ` and a random part, ending after so many retries.
///
/// The default is what Google documents for its APIs: 1 s, 2 s, 4 s, 8 s and 16 s, each with 0 to
/// 1000 ms more, and then no further retry; 31 s and the random parts in all. The random part is
/// drawn afresh each time and does not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedExponential {
    base: Duration,
    retries: u32,
    random_part: Duration,
}

impl TruncatedExponential {
    /// Delays from `base`, doubling, each with up to `random_part` more, for this many `retries`.
    ///
    /// There is no cap: the number of retries bounds the growth.
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

/// The state of one call of [`TruncatedExponential`].
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
