//! A schedule with a constant delay.

use alloc::vec::Vec;
use core::time::Duration;

use reattempt_core::{Delays, Limits, NextRetry, Random, Recommended, Schedule, Warning};

/// A constant delay before every retry. The schedule never ends, so limit the attempts or the elapsed time.
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_fixed::Constant;
///
/// let every_second = Constant::new(Duration::from_secs(1));
/// ```
#[doc(alias("Fixed", "FixedInterval"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    base: Duration,
}

impl Constant {
    /// Creates a schedule with the delay `base`. A base of zero is treated as 1 ms; for immediate retries, use
    /// [`immediate`](Self::immediate).
    pub const fn new(base: Duration) -> Self {
        Self { base: at_least_some(base) }
    }

    /// Creates a schedule of immediate retries, for tests and for operations that put no load on a server.
    pub const fn immediate() -> Self {
        Self { base: Duration::ZERO }
    }
}

/// Returns the delay, or 1 ms if it is zero.
pub(crate) const fn at_least_some(delay: Duration) -> Duration {
    if delay.is_zero() { Duration::from_millis(1) } else { delay }
}

impl Schedule for Constant {
    type Delays = Self;

    #[inline]
    fn delays(&self) -> Self {
        *self
    }

    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        first_delay("base", self.base, limits)
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }
}

/// Returns a warning if the first delay, which is the shortest, is too long.
pub(crate) fn first_delay(field: &'static str, delay: Duration, limits: &Limits) -> Vec<Warning> {
    let is_late = limits.max_elapsed.is_some_and(|elapsed| delay >= elapsed);
    let warning = if is_late {
        Some(Warning::new(field, format_args!("{delay:?}"), "below `max_elapsed`"))
    } else {
        // Constant delays below 1 s are common, so they are checked as if they were 1 s.
        Recommended::CAP.time(field, delay.max(Duration::from_secs(1)))
    };
    warning.into_iter().collect()
}

impl Delays for Constant {
    #[inline]
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        Some(self.base)
    }
}
