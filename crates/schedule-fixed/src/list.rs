//! A schedule with a list of delays.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use reattempt_core::{Delays, Limits, NextRetry, Random, Schedule, Warning};

use crate::constant::first_delay;

/// A list of delays, one per retry. Clones share the list.
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_fixed::List;
///
/// // Two retries.
/// let few = List::ending([10, 100].map(Duration::from_millis));
/// // 10 ms, 100 ms, 100 ms, …
/// let endless = List::repeating_last([10, 100].map(Duration::from_millis));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    delays: Arc<[Duration]>,
    after: Option<Duration>,
}

impl List {
    /// Creates a schedule with one retry per delay. With an empty list, there are no retries.
    pub fn ending(delays: impl IntoIterator<Item = Duration>) -> Self {
        Self { delays: delays.into_iter().collect(), after: None }
    }

    /// Creates a schedule that uses each delay once, and then repeats the last one forever. With an empty list, there
    /// are no retries.
    pub fn repeating_last(delays: impl IntoIterator<Item = Duration>) -> Self {
        let ending = Self::ending(delays);
        Self { after: ending.delays.last().copied(), ..ending }
    }
}

impl Schedule for List {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }

    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        self.delays.first().map(|first| first_delay("delays", *first, limits)).unwrap_or_default()
    }
}

impl Delays for List {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        let listed = usize::try_from(retry.number).ok().and_then(|number| self.delays.get(number));
        listed.copied().or(self.after)
    }
}
