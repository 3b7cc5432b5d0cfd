//! The constructors and setters of an adaptive limit, and its `Debug`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::ConfigError;
use reattempt_core::guard::GuardKind;

use super::{AdaptiveLimit, Aimd, Gradient2, LimitRule, Tenant, Vegas};
use crate::destination_table::{DEFAULT_DESTINATIONS, checked_destinations};
use crate::guard::line::Patience;
use crate::guard::places::Rule;
use crate::keyed::Keyed;

#[derive(Debug, Clone)]
pub(super) struct Rules<R> {
    pub(super) rule: R,
    /// Its limit is the initial one.
    pub(super) places: Rule,
    pub(super) bounds: Bounds,
    pub(super) max_destinations: Option<usize>,
}

/// The lowest and the highest limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    least: u32,
    most: u32,
}

impl Bounds {
    pub(super) fn clamp(self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.least), f64::from(self.most))
    }
}

impl AdaptiveLimit<Aimd> {
    /// Creates a limit that moves by dropped calls alone.
    pub fn aimd() -> Self {
        Self::new(Aimd::new())
    }
}

impl AdaptiveLimit<Vegas> {
    /// Creates a limit that keeps the server's queue short.
    pub fn vegas() -> Self {
        Self::new(Vegas::new())
    }
}

impl AdaptiveLimit<Gradient2> {
    /// Creates a limit that follows the trend of latencies.
    pub fn gradient2() -> Self {
        Self::new(Gradient2::new())
    }
}

/// A setter returns a new limit, whose state is its own.
impl<R: LimitRule> AdaptiveLimit<R> {
    /// Creates a limit that moves by `rule`.
    pub fn new(rule: R) -> Self {
        let (kind, patience) = (GuardKind::AdaptiveLimit, Patience::NONE);
        Self::build(Rules {
            rule,
            places: Rule { limit: 20, patience, hold: true, kind },
            bounds: Bounds { least: 1, most: 200 },
            max_destinations: Some(DEFAULT_DESTINATIONS),
        })
    }

    /// Sets the lowest and the highest limit; the initial one is moved between them. Default: 1 and 200, because a
    /// client rarely needs more.
    ///
    /// # Errors
    ///
    /// Returns an error if `least` is 0 or above `most`. At a limit of 0 there would be no sample to raise it again.
    pub fn bounds(self, least: u32, most: u32) -> Result<Self, ConfigError> {
        if least == 0 || least > most {
            return Err(ConfigError::new(
                "least",
                least,
                "at least 1 and at most the highest limit",
            ));
        }
        Ok(self.set(|rules| {
            rules.bounds = Bounds { least, most };
            rules.places.limit = rules.places.limit.clamp(least, most);
        }))
    }

    /// Sets the limit to begin with, within the bounds. Default: 20.
    pub fn initial(self, limit: u32) -> Self {
        self.set(|rules| rules.places.limit = limit.clamp(rules.bounds.least, rules.bounds.most))
    }

    /// Sets how many calls may wait for one destination, and for how long. Default: none.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        self.set(|rules| rules.places.patience = Patience { calls, time })
    }

    /// Frees the place at the response head. Default: at the end of the body.
    ///
    /// The head of a gRPC response does not end its call, so such a place is held until the trailers.
    pub fn release_at_head(self) -> Self {
        self.set(|rules| rules.places.hold = false)
    }

    /// Sets the most destinations with a limit of their own. Default: 1024, which take 1.7 MB.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 1 to 65536.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        let most = checked_destinations(most)?;
        Ok(self.set(|rules| rules.max_destinations = Some(most)))
    }

    /// Keeps one limit for all destinations. Use it for a client of one server.
    pub fn shared(self) -> Self {
        self.set(|rules| rules.max_destinations = None)
    }

    fn set(&self, change: impl FnOnce(&mut Rules<R>)) -> Self {
        let mut rules = Rules::clone(&self.rules.load());
        change(&mut rules);
        Self::build(rules)
    }

    fn build(rules: Rules<R>) -> Self {
        let tenants = Keyed::new(rules.max_destinations, Tenant::new(&rules));
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)), tenants: Arc::new(tenants) }
    }
}

/// The settings, and the destinations with calls in flight.
impl<R: LimitRule> fmt::Debug for AdaptiveLimit<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.load();
        let (in_use, more) = self.tenants.listed(|tenant| tenant.places.in_use());
        f.debug_struct("AdaptiveLimit")
            .field("initial", &rules.places.limit)
            .field("bounds", &rules.bounds)
            .field("queue", &rules.places.patience)
            .field("destinations", &self.tenants.len())
            .field("in_use", &in_use)
            .field("more", &more)
            .finish_non_exhaustive()
    }
}
