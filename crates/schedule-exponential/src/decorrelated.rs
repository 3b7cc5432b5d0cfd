//! Decorrelated jitter: each delay is drawn from a range that hangs on the one before.

use core::time::Duration;

use reattempt_core::{ConfigError, Delays, NextRetry, Random, Schedule};

use crate::exponential::checked_cap;

/// Delays drawn from `base` to `min(cap, 3 · previous)`, by
/// [`Exponential::decorrelated`](crate::Exponential::decorrelated).
///
/// `previous` is the delay used before the last attempt, the server's where it asked for one, and
/// never counted below the base; before the first retry it is the base. The range is bounded before
/// the draw: bounding the drawn delay instead would heap two thirds of them on the cap.
///
/// The cap is 5 s until [`cap`](Self::cap) sets another; a base above 5 s is its own cap. The three
/// is part of the definition, so there is no factor to set.
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

    /// No delay longer than this. Recommended: 1 s to 1 min.
    ///
    /// # Errors
    ///
    /// `cap` must not be below the base delay.
    pub fn cap(self, cap: Duration) -> Result<Self, ConfigError> {
        Ok(Self { cap: Some(checked_cap(self.base, cap)?), ..self })
    }

    /// Delays as long as the draws make them, up to what a duration can hold.
    pub fn without_cap(self) -> Self {
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
        let longest = previous.saturating_mul(3).min(self.cap.unwrap_or(Duration::MAX));
        Some(random.between(self.base, longest))
    }
}
