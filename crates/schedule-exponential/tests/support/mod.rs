//! What the tests of this crate share: seeded random numbers, and a call that asks for its delays
//! as the engine does.

#![allow(dead_code, reason = "each test file uses a part of it")]

use core::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule};

/// A reproducible stream of random numbers.
#[derive(Debug)]
pub(crate) struct Seeded(SmallRng);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed))
    }
}

impl Random for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Draws the same number again and again: 0 is the low end of every range, `u64::MAX` the high end.
#[derive(Debug)]
pub(crate) struct Always(pub(crate) u64);

impl Random for Always {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// One call that fails again and again.
#[derive(Debug)]
pub(crate) struct Call<D> {
    delays: D,
    number: u32,
    previous: Option<Duration>,
}

impl<D: Delays> Call<D> {
    pub(crate) fn new<S: Schedule<Delays = D>>(schedule: &S) -> Self {
        Self { delays: schedule.delays(), number: 0, previous: None }
    }

    /// The delay before the next retry, which is then taken as used.
    pub(crate) fn next(&mut self, random: &mut dyn Random) -> Option<Duration> {
        let retry = NextRetry::new(self.number, Failure::new(FailureKind::Server));
        let delay = self.delays.next_delay(&retry.after(self.previous), random)?;
        self.number = self.number.saturating_add(1);
        self.previous = Some(delay);
        Some(delay)
    }
}

/// The first `count` delays of a call, fewer if the schedule ends.
pub(crate) fn first<S: Schedule>(
    count: usize,
    schedule: &S,
    random: &mut dyn Random,
) -> Vec<Duration> {
    let mut call = Call::new(schedule);
    (0..count).map_while(|_| call.next(random)).collect()
}

/// The lowest and the highest of each of the first `count` delays, where one does not hang on the
/// other.
pub(crate) fn bounds<S: Schedule>(count: usize, schedule: &S) -> Vec<(Duration, Duration)> {
    let low = first(count, schedule, &mut Always(0));
    let high = first(count, schedule, &mut Always(u64::MAX));
    low.into_iter().zip(high).collect()
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
