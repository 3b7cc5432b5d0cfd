//! Random faults that are reproducible with a seed.

use std::time::Duration;

use crate::arriving::Arriving;

/// A distribution of random faults, which are drawn with a seed.
///
/// A given seed always yields the same faults. [`Per`] selects what a draw depends on besides the seed.
///
/// ```
/// use std::io::ErrorKind;
/// use reattempt_faults::{Chances, Per, Script, ServiceFault};
///
/// let chances = Chances::new(7, Per::Call)
///     .fault(100, ServiceFault::Hang) // a tenth of the arrivals
///     .fault(5, ServiceFault::Error(ErrorKind::ConnectionReset));
/// let script = Script::from([ServiceFault::NoFault; 3]).chances(chances);
/// # drop(script);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chances<F> {
    seed: u64,
    per: Per,
    faults: Vec<(u32, F)>,
}

/// The input of a random draw, in addition to the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Per {
    /// The number of the arrival among all calls. The faults of concurrent calls may be swapped from run to run.
    Arrival,
    /// The name of the call, and the number of the arrival within it. The order of concurrent calls does not matter.
    Call,
    /// The number of the connection: all arrivals on it have the same fault.
    Connection,
    /// The time, in periods of this length: all arrivals in a period have the same fault. Zero is raised to one
    /// nanosecond.
    Period(Duration),
}

impl<F> Chances<F> {
    /// Creates a distribution without faults.
    pub fn new(seed: u64, per: Per) -> Self {
        Self { seed, per, faults: Vec::new() }
    }

    /// Adds a fault that occurs in `per_mille` of 1000 draws. If the sum of all faults exceeds 1000, faults added
    /// earlier take precedence.
    #[must_use]
    pub fn fault(mut self, per_mille: u32, fault: F) -> Self {
        self.faults.push((per_mille, fault));
        self
    }

    pub(crate) fn faults(&self) -> impl Iterator<Item = &F> {
        self.faults.iter().map(|(_, fault)| fault)
    }
}

impl<F: Clone> Chances<F> {
    /// Draws the fault of an arrival.
    pub(crate) fn draw(&self, arriving: &Arriving<'_>, arrivals: u64, of_call: u64) -> Option<F> {
        let (text, number) = match self.per {
            Per::Arrival => ("", arrivals),
            Per::Call => (arriving.call.unwrap_or_default(), of_call),
            Per::Connection => ("", arriving.connection as u64),
            Per::Period(length) => {
                let period = arriving.at.as_nanos() / length.as_nanos().max(1);
                ("", u64::try_from(period).unwrap_or(u64::MAX))
            }
        };
        let mixed = mixed(mixed(self.seed) ^ crate::checksum(text.as_bytes()));
        let mut drawn = self::mixed(mixed ^ number) % 1000;
        self.faults.iter().find_map(|(share, fault)| {
            let hit = drawn < u64::from(*share);
            drawn = drawn.saturating_sub(u64::from(*share));
            hit.then(|| fault.clone())
        })
    }
}

/// Returns the number that SplitMix64 produces from a seed.
fn mixed(seed: u64) -> u64 {
    let mut number = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
