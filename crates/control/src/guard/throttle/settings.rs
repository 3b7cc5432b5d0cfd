//! The constructor and setters of a throttle.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use super::Throttle;
use crate::guard::per_destination::PerDestination;
use crate::millionths::{MILLION, millionths};

/// The settings used by the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusalRule {
    /// K, in millionths.
    pub(super) multiplier: u64,
    /// In millionths.
    pub(super) max_probability: u64,
    pub(super) min_requests: u32,
    pub(super) min_rate: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ThrottleSettings {
    pub(super) rule: RefusalRule,
    pub(super) window: Duration,
    pub(super) seed: u64,
}

impl ThrottleSettings {
    /// Returns a destination's seed. Throttles with the same seed refuse the same calls.
    pub(super) fn seed_for(&self, destination: &str) -> u64 {
        let step = |seed: u64, byte: &u8| (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        destination.as_bytes().iter().fold(self.seed, step)
    }
}

/// Each setter returns a new throttle with its own state.
impl Throttle {
    /// Creates a throttle with the [multiplier](Self::multiplier) K = 2 and a [window](Self::window) of 2 minutes.
    pub fn new() -> Self {
        Self(PerDestination::new(ThrottleSettings {
            rule: RefusalRule { multiplier: 2 * MILLION, max_probability: 900_000, min_requests: 10, min_rate: 5 },
            window: Duration::from_secs(120),
            seed: RandomState::new().hash_one(0),
        }))
    }

    /// Sets the multiplier K, which is roughly the number of requests sent per accepted request. Default: 2. With a
    /// lower K, more calls are refused locally and fewer by the server.
    ///
    /// The value is clamped to 1 to 100, and NaN is treated as 1. Below 1, calls to a healthy server would be refused.
    pub fn multiplier(self, k: f64) -> Self {
        let multiplier = millionths(k, 1.0, 100.0);
        Self(self.0.changed(|settings| settings.rule.multiplier = multiplier))
    }

    /// Sets the maximum probability of a refusal. Default: 0.9, so one call in ten still tests the server.
    ///
    /// The value is clamped to 0 to 1, and NaN is treated as 0.
    pub fn max_probability(self, most: f64) -> Self {
        let most = millionths(most, 0.0, 1.0);
        Self(self.0.changed(|settings| settings.rule.max_probability = most))
    }

    /// Sets the length of the window in which requests are counted. Default: 2 minutes.
    ///
    /// The window is divided into 16 buckets, each at least a nanosecond long.
    pub fn window(self, length: Duration) -> Self {
        Self(self.0.changed(|settings| settings.window = length))
    }

    /// Sets the numbers of requests, in the window and per second, below which nothing is refused. Default: 10 in the
    /// window and 5 per second, because fewer are no evidence of overload and cost the server little.
    pub fn inactive_below(self, requests: u32, per_second: u32) -> Self {
        Self(self.0.changed(|settings| {
            (settings.rule.min_requests, settings.rule.min_rate) = (requests, per_second);
        }))
    }

    /// Sets the random seed for refusals. Default: a different seed for each throttle.
    pub fn seed(self, seed: u64) -> Self {
        Self(self.0.changed(|settings| settings.seed = seed))
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}
