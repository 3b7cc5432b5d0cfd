//! Decorrelated jitter: each delay is drawn from a range that hangs on the one before.

use core::time::Duration;

use reattempt_core::{Delays, NextRetry, Random, Schedule};

/// Delays drawn from `base` to `min(cap, 3 · previous)`, by
/// [`Exponential::decorrelated`](crate::Exponential::decorrelated).
///
/// `previous` is the delay used before the last attempt, the server's where it asked for one, and
/// never counted below the base; before the first retry it is the base. The range is bounded before
/// the draw: bounding the drawn delay instead would heap two thirds of them on the cap.
///
/// The cap is set by [`max_delay`](Self::max_delay). The factor of three is part of the definition and
/// cannot be set.
///
/// It has no state but the previous delay, which the engine keeps for each call; so it is its own
/// [`Delays`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decorrelated {
    base: Duration,
    cap: Option<Duration>,
}

impl Decorrelated {
    pub(crate) fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap: Some(cap) }
    }

    /// Sets the longest delay. Default 5 s, or the base where that is longer. Recommended: 1 s to 1 min.
    ///
    /// A base above it is cut: every delay is then this long.
    #[doc(alias = "cap")]
    pub fn max_delay(self, longest: Duration) -> Self {
        Self { cap: Some(longest), ..self }
    }

    /// Removes the bound: delays grow up to what a duration can hold.
    pub fn no_max_delay(self) -> Self {
        Self { cap: None, ..self }
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
}

impl Delays for Decorrelated {
    #[inline]
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let previous = retry.previous.map_or(self.base, |previous| previous.max(self.base));
        let cap = self.cap.unwrap_or(Duration::MAX);
        let longest = previous.saturating_mul(3).min(cap);
        Some(random.between(self.base.min(cap), longest))
    }
}
