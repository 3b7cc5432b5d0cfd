//! The constructor and setters of a throttle, and its `Debug`.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::ConfigError;

use super::{Tenant, Throttle};
use crate::destination_table::{DEFAULT_DESTINATIONS, checked_destinations};
use crate::keyed::Keyed;

/// The millionths of one.
pub(super) const MILLION: u64 = 1_000_000;

/// The settings as the state machine reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// K, in millionths.
    pub(super) multiplier: u64,
    /// Millionths.
    pub(super) max_probability: u32,
    pub(super) min_requests: u32,
    pub(super) min_rate: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) rule: Rule,
    pub(super) window: Duration,
    pub(super) seed: u64,
    pub(super) max_destinations: Option<usize>,
}

impl Rules {
    /// Returns the seed of a destination: throttles that were seeded alike draw alike.
    pub(super) fn seed_for(&self, destination: &str) -> u64 {
        let step = |seed: u64, byte: &u8| (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        destination.as_bytes().iter().fold(self.seed, step)
    }
}

/// A setter returns a new throttle, whose state is its own.
impl Throttle {
    /// Creates a throttle with K = 2 over 2 minutes.
    pub fn new() -> Self {
        Self::build(Rules {
            rule: Rule {
                multiplier: 2 * MILLION,
                max_probability: 900_000,
                min_requests: 10,
                min_rate: 5,
            },
            window: Duration::from_secs(120),
            seed: RandomState::new().hash_one(0),
            max_destinations: Some(DEFAULT_DESTINATIONS),
        })
    }

    /// Sets K, the requests that are sent for each accepted one. Default: 2. A lower K refuses more calls here and
    /// fewer at the server.
    ///
    /// # Errors
    ///
    /// Returns an error unless `k` is a number from 1 to 100. Below 1, a healthy server's calls would be refused.
    pub fn multiplier(self, k: f64) -> Result<Self, ConfigError> {
        if !(1.0..=100.0).contains(&k) {
            return Err(ConfigError::new("multiplier", k, "from 1 to 100"));
        }
        Ok(self.set(|rules| rules.rule.multiplier = u64::from(millionths(k))))
    }

    /// Sets the highest probability of a refusal. Default: 0.9, so one call in ten still tests the server.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 0 to 1.
    pub fn max_probability(self, most: f64) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&most) {
            return Err(ConfigError::new("max_probability", most, "from 0 to 1"));
        }
        Ok(self.set(|rules| rules.rule.max_probability = millionths(most)))
    }

    /// Sets the time over which requests are counted, in 16 buckets. Default: 2 minutes.
    ///
    /// A bucket is at least a nanosecond long.
    pub fn window(self, length: Duration) -> Self {
        self.set(|rules| rules.window = length)
    }

    /// Sets the requests, in the window and for each second, below which nothing is refused. Default: 10 and 5,
    /// because fewer prove nothing and cost the server little.
    pub fn inactive_below(self, requests: u32, per_second: u32) -> Self {
        self.set(|rules| {
            (rules.rule.min_requests, rules.rule.min_rate) = (requests, per_second);
        })
    }

    /// Seeds the draws. Default: a seed of its own for each throttle.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|rules| rules.seed = seed)
    }

    /// Sets the most destinations with counts of their own. Default: 1024, which take 0.4 MB.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 1 to 65536.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        let most = checked_destinations(most)?;
        Ok(self.set(|rules| rules.max_destinations = Some(most)))
    }

    /// Keeps one set of counts for all destinations. Use it for a client of one server.
    pub fn shared(self) -> Self {
        self.set(|rules| rules.max_destinations = None)
    }

    fn set(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = **self.rules.load();
        change(&mut rules);
        Self::build(rules)
    }

    fn build(rules: Rules) -> Self {
        let others = Tenant::new(&rules, rules.seed_for(""));
        let tenants = Arc::new(Keyed::new(rules.max_destinations, others));
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)), tenants }
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is from 0 to 100"
)]
fn millionths(number: f64) -> u32 {
    (number * 1e6).round() as u32
}

/// The settings, and the destinations of which part is refused, as the last call left them.
impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.load();
        let (shedding, more) = self.tenants.listed(|tenant| {
            let state = tenant.lock();
            (state.excess() > 0).then(|| state.window.total())
        });
        f.debug_struct("Throttle")
            .field("rule", &rules.rule)
            .field("window", &rules.window)
            .field("destinations", &self.tenants.len())
            .field("shedding", &shedding)
            .field("more", &more)
            .finish_non_exhaustive()
    }
}
