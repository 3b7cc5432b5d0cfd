//! The random numbers for jitter, which are seeded only when a call's first retry needs them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use reattempt_core::Random;

/// A seed from which each call gets its own stream, in call order.
#[derive(Debug, Clone)]
pub struct Seed {
    seed: u64,
    calls: Arc<AtomicU64>,
}

impl Seed {
    /// Creates the streams of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, calls: Arc::default() }
    }

    /// Returns the seed of the next call's stream.
    pub fn next_stream(&self) -> u64 {
        stream(self.seed, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns the seed of the stream for the call with this number, from 0.
fn stream(seed: u64, call: u64) -> u64 {
    // An odd constant separates the streams of one seed; the generator's seeding does the mixing.
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    seed.wrapping_add(call.wrapping_mul(STEP))
}

/// The random numbers of one call, from a stream that is seeded at the first draw.
///
/// A simulation that uses `reattempt-core` directly draws the same numbers as a call through a layer.
///
/// ```
/// use reattempt::schedule::{CallRandom, Random};
///
/// let (mut one, mut again) = (CallRandom::of_call(7, 0), CallRandom::of_call(7, 0));
/// let mut next = CallRandom::of_call(7, 1);
/// let drawn = one.next_u64();
/// assert_eq!(drawn, again.next_u64());
/// assert_ne!(drawn, next.next_u64());
/// ```
#[derive(Debug)]
pub struct CallRandom(SeedState);

#[derive(Debug)]
enum SeedState {
    /// Not seeded yet. The seed will be this number, or random if there is none.
    Unseeded(Option<u64>),
    Seeded(SmallRng),
}

impl CallRandom {
    /// Returns the random numbers of a call under a policy with a [`seed`](crate::RetryPolicy::seed). `call` is the
    /// number of the call, from 0.
    pub fn of_call(seed: u64, call: u64) -> Self {
        Self::unseeded(Some(stream(seed, call)))
    }

    #[doc(hidden)]
    pub const fn unseeded(stream: Option<u64>) -> Self {
        Self(SeedState::Unseeded(stream))
    }
}

impl Random for CallRandom {
    fn next_u64(&mut self) -> u64 {
        loop {
            match &mut self.0 {
                SeedState::Seeded(generator) => return generator.next_u64(),
                SeedState::Unseeded(seed) => {
                    // Jitter need not be secret, so a hasher's random keys suffice. The system seeds them once per
                    // thread.
                    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
                    self.0 = SeedState::Seeded(SmallRng::seed_from_u64(seed));
                }
            }
        }
    }
}
