//! What the tests of this crate share: random numbers that are known, and callers of a service.

#![allow(dead_code, reason = "each test file uses a part of it")]

use core::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use reattempt_core::{Failure, FailureKind, Random, Schedule};
use reattempt_schedule_responsive::Responsive;

pub(crate) const THROTTLED: Failure = Failure::new(FailureKind::Throttled);

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

/// Fails the test when a number is drawn.
#[derive(Debug)]
pub(crate) struct Never;

impl Random for Never {
    fn next_u64(&mut self) -> u64 {
        panic!("a random number was drawn")
    }
}

/// A call that is throttled; the interval after it.
pub(crate) fn refuse(pace: &Responsive, random: &mut dyn Random) -> Duration {
    pace.on_failure(pace.on_send(), &THROTTLED, random);
    pace.interval()
}

/// A call that succeeds; the interval after it.
pub(crate) fn accept(pace: &Responsive, random: &mut dyn Random) -> Duration {
    pace.on_success(pace.on_send(), random);
    pace.interval()
}

/// The settings of the reference's check: 1 ms, up 1.5, down 0.6, no randomisation, threshold 5.
pub(crate) fn of_the_check() -> Responsive {
    Responsive::new()
        .initial(ms(1))
        .and_then(|pace| pace.down(0.6))
        .and_then(|pace| pace.randomisation(0.0))
        .and_then(|pace| pace.threshold(5))
        .expect("legal settings")
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
