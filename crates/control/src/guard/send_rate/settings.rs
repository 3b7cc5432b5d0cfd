//! The constructor and setters of a send rate, and its `Debug`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::ConfigError;
use reattempt_core::guard::GuardKind;

use super::{Limit, SendRate, Tenant};
use crate::destination_table::{DEFAULT_DESTINATIONS, checked_destinations};
use crate::guard::line::Patience;
use crate::guard::rate_limit::limiter::Rule;
use crate::keyed::Keyed;

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) rule: Rule,
    pub(super) max_destinations: Option<usize>,
}

/// A setter returns a new rate, whose state is its own.
impl SendRate {
    /// Creates a rate that limits nothing before the first refusal.
    pub fn new() -> Self {
        let patience = Patience { calls: 1024, time: Duration::from_secs(30) };
        let (limit, kind) = (Limit::INFINITE, GuardKind::SendRate);
        let rule = Rule { limit, burst: 0, patience, kind };
        Self::build(Rules { rule, max_destinations: Some(DEFAULT_DESTINATIONS) })
    }

    /// Sets how many calls may wait for one destination, and for how long. Default: 1024 for 30 s, as a
    /// [`RateLimit`](crate::RateLimit).
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        self.set(|rules| rules.rule.patience = Patience { calls, time })
    }

    /// Refuses calls for which there is no token, instead of making them wait.
    pub fn no_queue(self) -> Self {
        self.set(|rules| rules.rule.patience = Patience::NONE)
    }

    /// Sets the most destinations with a rate of their own. Default: 1024, which take 0.4 MB.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 1 to 65536.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        let most = checked_destinations(most)?;
        Ok(self.set(|rules| rules.max_destinations = Some(most)))
    }

    /// Keeps one rate for all destinations. Use it for a quota of the whole client.
    pub fn shared(self) -> Self {
        self.set(|rules| rules.max_destinations = None)
    }

    fn set(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = **self.rules.load();
        change(&mut rules);
        Self::build(rules)
    }

    fn build(rules: Rules) -> Self {
        let tenants = Arc::new(Keyed::new(rules.max_destinations, Tenant::new(&rules)));
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)), tenants }
    }
}

impl Default for SendRate {
    fn default() -> Self {
        Self::new()
    }
}

/// The settings, and the destinations that are limited.
impl fmt::Debug for SendRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limited, more) = self.tenants.listed(|tenant| {
            let look = tenant.limiter.look(None);
            (!look.limit.is_infinite()).then_some(look)
        });
        f.debug_struct("SendRate")
            .field("queue", &self.rules.load().rule.patience)
            .field("destinations", &self.tenants.len())
            .field("limited", &limited)
            .field("more", &more)
            .finish_non_exhaustive()
    }
}
