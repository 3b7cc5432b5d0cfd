//! The random numbers for picks, from one generator per thread.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use reattempt_core::Random;

thread_local!(static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0)));

/// This thread's SplitMix64 generator. Picks need not be unpredictable.
pub(super) struct OfThread;

impl Random for OfThread {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        STATE.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Seeds all later picks on this thread, so that tests on one thread are reproducible.
///
/// By default, each thread has a random seed.
///
/// ```
/// reattempt::endpoints::seed_picks(7);
/// ```
pub fn seed_picks(seed: u64) {
    STATE.set(seed);
}

/// Returns a seed for a client's subset.
pub(super) fn seed() -> u64 {
    OfThread.next_u64()
}
