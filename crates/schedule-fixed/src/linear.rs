//! A schedule with linearly growing delays.

use alloc::vec::Vec;
use core::time::Duration;

use reattempt_core::{Delays, Limits, NextRetry, Random, Schedule, Warning};

use crate::constant::{at_least_some, first_delay};

/// Delays of `min(cap, base + n · step)`, where `n` is the retry number, counting from 0.
///
/// Delays saturate at [`Duration::MAX`].
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_fixed::Linear;
///
/// // 1 s, 1.5 s, 2 s, 2 s, …
/// let schedule = Linear::new(Duration::from_secs(1))
///     .step(Duration::from_millis(500))
///     .max_delay(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    base: Duration,
    step: Duration,
    cap: Option<Duration>,
}

impl Linear {
    /// Creates a schedule that starts at `base` and grows by `base`, without a cap.
    ///
    /// A base of zero is treated as 1 ms; for immediate retries, use
    /// [`Constant::immediate`](crate::Constant::immediate).
    pub const fn new(base: Duration) -> Self {
        let base = at_least_some(base);
        Self { base, step: base, cap: None }
    }

    /// Sets the step by which each delay grows. Default: the base.
    pub const fn step(self, step: Duration) -> Self {
        Self { step, ..self }
    }

    /// Sets the cap, which is the longest delay. Default: no cap. A base above the cap is lowered to it. A cap of zero
    /// is treated as 1 ms, like a base of zero.
    #[doc(alias = "cap")]
    pub const fn max_delay(self, longest: Duration) -> Self {
        Self { cap: Some(at_least_some(longest)), ..self }
    }
}

impl Schedule for Linear {
    type Delays = Self;

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }

    #[inline]
    fn delays(&self) -> Self {
        *self
    }

    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        first_delay("base", self.cap.map_or(self.base, |cap| self.base.min(cap)), limits)
    }
}

impl Delays for Linear {
    #[inline]
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        let delay = self.base.saturating_add(self.step.saturating_mul(retry.number));
        Some(self.cap.map_or(delay, |cap| delay.min(cap)))
    }
}
