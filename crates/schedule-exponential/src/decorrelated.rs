//! Decorrelated jitter, which draws each delay from a range that depends on the previous delay.

use alloc::vec::Vec;
use core::time::Duration;

use reattempt_core::{Delays, Limits, NextRetry, Random, Recommended, Schedule, Warning};

use crate::growth::at_least_some;

/// Delays drawn from `base` to `min(cap, 3 · previous)`.
/// [`Exponential::decorrelated`](crate::Exponential::decorrelated) creates it.
///
/// `previous` is the delay before the previous attempt, whether the schedule or the server set it. It is at least the
/// base, which is also its value before the first retry.
///
/// The range is clamped to the cap before the draw. If the drawn delay were clamped instead, two thirds of all delays
/// would equal the cap. The factor 3 is part of the definition.
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_exponential::Exponential;
///
/// // 100 ms to 300 ms, then 100 ms to three times the last delay, up to 2 s
/// let schedule = Exponential::decorrelated(Duration::from_millis(100))
///     .max_delay(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decorrelated {
    base: Duration,
    /// The base, or the cap if that is shorter.
    shortest: Duration,
    cap: Duration,
}

impl Decorrelated {
    pub(crate) fn new(base: Duration, cap: Duration) -> Self {
        Self { base, shortest: base.min(cap), cap }
    }

    /// Sets the cap, which is the longest delay. Default: 5 s, or the base if that is longer. Recommended: 1 s to 1
    /// min. A cap of zero is treated as 1 ms, like a base of zero.
    ///
    /// A base above the cap is lowered to it. Every delay then equals the cap.
    #[doc(alias = "cap")]
    pub fn max_delay(self, longest: Duration) -> Self {
        Self::new(self.base, at_least_some(longest))
    }

    /// Removes the cap. Delays grow up to [`Duration::MAX`].
    pub fn no_max_delay(self) -> Self {
        Self::new(self.base, Duration::MAX)
    }
}

impl Schedule for Decorrelated {
    type Delays = Self;

    #[inline]
    fn delays(&self) -> Self {
        *self
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }

    fn validate(&self, _: &Limits) -> Vec<Warning> {
        let base = Recommended::BASE.time("base", self.base);
        base.into_iter().chain(Recommended::CAP.time("max_delay", self.cap)).collect()
    }
}

impl Delays for Decorrelated {
    #[inline]
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let previous = retry.previous.map_or(self.shortest, |previous| previous.max(self.shortest));
        let longest = previous.saturating_mul(3).min(self.cap);
        Some(random.between(self.shortest, longest))
    }
}
