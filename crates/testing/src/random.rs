//! Random sources with fixed draws, for tests.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use reattempt_core::Random;

/// A reproducible stream of random numbers.
#[derive(Debug)]
pub struct Seeded(SmallRng);

impl Seeded {
    /// Creates the stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed))
    }
}

impl Random for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// A source that always returns one number: 0 is the low end of every range, `u64::MAX` the high end.
#[derive(Debug)]
pub struct Always(pub u64);

impl Random for Always {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// A source that fails the test if a number is drawn.
#[derive(Debug)]
pub struct Never;

impl Random for Never {
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    fn next_u64(&mut self) -> u64 {
        panic!("a random number was drawn")
    }
}
