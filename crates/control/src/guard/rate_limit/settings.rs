//! The constructor and setters of a rate limit, and its `Debug`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::guard::GuardKind;
use reattempt_core::{ConfigError, Recommended, Warning};

use super::limiter::{Limiter, Rule};
use super::{Limit, RateLimit, TOKEN, cost};
use crate::destination_table::{DEFAULT_DESTINATIONS, checked_destinations};
use crate::guard::line::Patience;
use crate::keyed::Keyed;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) rule: Rule,
    pub(super) longest_reset: Duration,
    pub(super) trial_interval: Duration,
    pub(super) max_destinations: Option<usize>,
}

/// A setter returns a new limit, whose state is its own.
impl RateLimit {
    /// Creates a limit of this rate, such as [`Limit::per_second`], and this burst, in calls. A burst of 0 allows
    /// nothing, unless the rate is infinite.
    #[doc(alias("per_second", "quota"))]
    pub fn new(limit: Limit, burst: u32) -> Self {
        let patience = Patience { calls: 1024, time: Duration::from_secs(30) };
        let kind = GuardKind::RateLimit;
        let rule = Rule { limit, burst: cost(burst), patience, kind };
        let max_destinations = Some(DEFAULT_DESTINATIONS);
        let (longest_reset, trial_interval) = (HOUR, MINUTE);
        Self::build(Rules { rule, longest_reset, trial_interval, max_destinations })
    }

    /// Sets how many calls may wait for one destination, and for how long. Default: 1024 calls for 30 s, the default
    /// `max_elapsed` of a call.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        self.set(|rules| rules.rule.patience = Patience { calls, time })
    }

    /// Refuses calls for which there is no token, instead of making them wait.
    pub fn no_queue(self) -> Self {
        self.set(|rules| rules.rule.patience = Patience::NONE)
    }

    /// Sets the longest reset that is [followed](Self::follow). Default: 1 h. Some servers send a Unix time where
    /// others send seconds; taken for seconds it would stop all calls for decades.
    pub fn longest_reset(self, longest: Duration) -> Self {
        self.set(|rules| rules.longest_reset = longest)
    }

    /// Sets the longest interval between calls while the limit [follows](Self::follow) a server. Default: 1 min.
    ///
    /// A response with no calls left, perhaps by mistake or for another client, would otherwise stop all calls until
    /// its reset. The response of a trial call replaces it. [`Duration::MAX`] obeys the server to the letter.
    pub fn trial_interval(self, interval: Duration) -> Self {
        self.set(|rules| rules.trial_interval = interval)
    }

    /// Sets the most destinations with a limit of their own. Default: 1024, which take 0.3 MB.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 1 to 65536.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        let most = checked_destinations(most)?;
        Ok(self.set(|rules| rules.max_destinations = Some(most)))
    }

    /// Keeps one state for all destinations. Use it for a quota of the whole client.
    pub fn shared(self) -> Self {
        self.set(|rules| rules.max_destinations = None)
    }

    /// Returns a warning if the burst is unusual for the rate, or if no call can pass. A burst of at least one call is
    /// usual for rates below one call a second.
    pub fn validate(&self) -> Vec<Warning> {
        let Rule { limit, burst, .. } = self.rules.load().rule;
        let per_second = limit.tokens_per_second();
        let calls = f64::from(u32::try_from(burst / TOKEN).unwrap_or(u32::MAX));
        let warning = if limit.is_infinite() {
            None
        } else if limit == Limit::ZERO {
            Some(Warning::new("limit", format_args!("{limit:?}"), "above 0"))
        } else if per_second >= 1.0 {
            Recommended::burst("burst", calls, per_second)
        } else {
            (burst == 0).then(|| Warning::new("burst", 0, "at least 1"))
        };
        warning.into_iter().collect()
    }

    fn set(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = **self.rules.load();
        change(&mut rules);
        Self::build(rules)
    }

    fn build(rules: Rules) -> Self {
        let others = Limiter::new(rules.rule);
        let limiters = Arc::new(Keyed::new(rules.max_destinations, others));
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)), limiters }
    }
}

/// The settings, and the destinations that calls wait for or whose server holds the rate down.
impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.load();
        let (held, more) = self.limiters.listed(|limiter| {
            let look = limiter.look(None);
            (look.waiting > 0 || look.follows).then_some(look)
        });
        f.debug_struct("RateLimit")
            .field("limit", &rules.rule.limit)
            .field("burst", &(rules.rule.burst / TOKEN))
            .field("queue", &rules.rule.patience)
            .field("destinations", &self.limiters.len())
            .field("held", &held)
            .field("more", &more)
            .finish_non_exhaustive()
    }
}
