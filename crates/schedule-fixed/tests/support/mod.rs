//! What the tests of this crate share.

#![allow(dead_code, reason = "each test file uses a part of it")]

use core::time::Duration;

use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule};

/// A source that must not be asked: nothing in this crate draws a random number.
struct Forbidden;

impl Random for Forbidden {
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    fn next_u64(&mut self) -> u64 {
        panic!("a random number was drawn")
    }
}

/// The next delay of a call.
pub(crate) fn next(delays: &mut impl Delays, number: u32) -> Option<Duration> {
    let retry = NextRetry::new(number, Failure::new(FailureKind::Server));
    delays.next_delay(&retry, &mut Forbidden)
}

/// The delay before one retry of a fresh call.
pub(crate) fn delay(schedule: &impl Schedule, number: u32) -> Option<Duration> {
    next(&mut schedule.delays(), number)
}

/// The first `count` delays of a call, fewer if the schedule ends.
pub(crate) fn first(count: u32, schedule: &impl Schedule) -> Vec<Duration> {
    let mut delays = schedule.delays();
    (0..count).map_while(|number| next(&mut delays, number)).collect()
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
