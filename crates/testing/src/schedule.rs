//! A call that draws a schedule's delays in the same way as the engine.

use std::time::Duration;

use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule};

use crate::random::Always;

/// A call whose attempts all fail.
#[derive(Debug)]
pub struct FailingCall<D> {
    delays: D,
    number: u32,
    previous: Option<Duration>,
}

impl<D: Delays> FailingCall<D> {
    /// Creates a call with the delays of `schedule`.
    pub fn new<S: Schedule<Delays = D>>(schedule: &S) -> Self {
        Self { delays: schedule.delays(), number: 0, previous: None }
    }

    /// Returns the delay before the next retry, and stores it as the previous one.
    pub fn next(&mut self, random: &mut dyn Random) -> Option<Duration> {
        let retry = NextRetry::new(self.number, Failure::new(FailureKind::Server));
        let delay = self.delays.next_delay(&retry.after(self.previous), random)?;
        self.number = self.number.saturating_add(1);
        self.previous = Some(delay);
        Some(delay)
    }
}

/// Returns the first `count` delays of a call, or fewer if the schedule ends.
pub fn first<S: Schedule>(count: usize, schedule: &S, random: &mut dyn Random) -> Vec<Duration> {
    let mut call = FailingCall::new(schedule);
    (0..count).map_while(|_| call.next(random)).collect()
}

/// Returns the minimum and maximum of each of the first `count` delays, for schedules whose delays are independent.
pub fn bounds<S: Schedule>(count: usize, schedule: &S) -> Vec<(Duration, Duration)> {
    let low = first(count, schedule, &mut Always(0));
    let high = first(count, schedule, &mut Always(u64::MAX));
    low.into_iter().zip(high).collect()
}
