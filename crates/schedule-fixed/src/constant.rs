//! The same delay before every retry.

use core::time::Duration;

use reattempt_core::{Delays, NextRetry, Random, Schedule};

/// The same delay before every retry, without end.
///
/// It has no state, so it is its own [`Delays`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    base: Duration,
}

impl Constant {
    /// Waits `base` before every retry; zero retries at once.
    pub const fn new(base: Duration) -> Self {
        Self { base }
    }
}

impl Schedule for Constant {
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

impl Delays for Constant {
    #[inline]
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        Some(self.base)
    }
}
