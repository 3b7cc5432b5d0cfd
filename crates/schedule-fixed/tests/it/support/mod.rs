//! Delays of schedules that draw no random numbers.

use core::time::Duration;

use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Schedule};
use reattempt_testing::Never;

/// Returns the next delay of a call.
pub(crate) fn next(delays: &mut impl Delays, number: u32) -> Option<Duration> {
    let retry = NextRetry::new(number, Failure::new(FailureKind::Server));
    delays.next_delay(&retry, &mut Never)
}

/// Returns the delay before one retry of a fresh call.
pub(crate) fn delay(schedule: &impl Schedule, number: u32) -> Option<Duration> {
    next(&mut schedule.delays(), number)
}

/// Returns the first `count` delays of a call, fewer if the schedule ends.
pub(crate) fn first(count: usize, schedule: &impl Schedule) -> Vec<Duration> {
    reattempt_testing::first(count, schedule, &mut Never)
}
