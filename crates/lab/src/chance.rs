//! Random numbers of simulations, from the streams that the library draws from.

use reattempt::schedule::{CallRandom, Random};

use crate::events::nanoseconds;

/// Draws a number uniformly from [0, 1).
pub(crate) fn fraction(random: &mut CallRandom) -> f64 {
    // 53 bits, the precision of an `f64`.
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the nanoseconds to the next call of a Poisson process with this rate.
pub(crate) fn gap(rate: f64, random: &mut CallRandom) -> u64 {
    // From 2⁻⁵³ to 1, both included.
    let drawn = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    nanoseconds(crate::text::seconds(-drawn.ln() / rate))
}
