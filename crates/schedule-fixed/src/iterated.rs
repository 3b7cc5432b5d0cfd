//! An adapter for iterators of delays, with which other crates' schedules can be used unchanged.

use core::fmt;
use core::time::Duration;

use reattempt_core::{Delays, NextRetry, Random, Schedule};

/// Delays from an iterator that a factory creates for each call. Retries end when the iterator ends.
///
/// The iterator's random numbers do not come from a retry policy's seed, so its delays are not reproducible. Turn off
/// its jitter and use [`ScheduleExt::jittered`](reattempt_core::ScheduleExt::jittered) instead.
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_fixed::Iterated;
///
/// // 1 s, 4 s, 9 s, 16 s, 25 s
/// let squares = Iterated::new(|| (1..=5).map(|n| Duration::from_secs(n * n)));
/// ```
#[derive(Clone, Copy)]
pub struct Iterated<F> {
    factory: F,
}

impl<F, I> Iterated<F>
where
    F: Fn() -> I,
    I: Iterator<Item = Duration>,
{
    /// Creates a schedule that calls `factory` when a call first fails.
    pub const fn new(factory: F) -> Self {
        Self { factory }
    }
}

impl<F> fmt::Debug for Iterated<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iterated").finish_non_exhaustive()
    }
}

impl<F, I> Schedule for Iterated<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Iterator<Item = Duration>,
{
    type Delays = IteratedDelays<I>;

    fn delays(&self) -> IteratedDelays<I> {
        IteratedDelays { iterator: (self.factory)() }
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }
}

/// The per-call state of [`Iterated`]: its iterator, advanced by one for each retry.
#[derive(Debug, Clone)]
pub struct IteratedDelays<I> {
    iterator: I,
}

impl<I: Iterator<Item = Duration>> Delays for IteratedDelays<I> {
    #[inline]
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        self.iterator.next()
    }
}
