//! The constructor and setters of a rate limit.

use std::time::Duration;

use reattempt_core::guard::GuardKind;

use super::limiter::{Following, LimiterSettings};
use super::{Limit, RateLimit, cost};
use crate::guard::per_destination::PerDestination;
use crate::guard::wait_queue::Patience;

/// Each setter returns a new limit with its own state.
impl RateLimit {
    /// Creates a limit with a rate, such as [`Limit::per_second`], and a burst in calls. A burst of 0 allows nothing,
    /// unless the rate is infinite.
    #[doc(alias("per_second", "quota"))]
    pub fn new(limit: Limit, burst: u32) -> Self {
        let patience = Patience { calls: 1024, time: Duration::from_secs(30) };
        let (kind, following) = (GuardKind::RATE_LIMIT, Some(Following::DEFAULT));
        Self(PerDestination::new(LimiterSettings { limit, burst: cost(burst), patience, following, kind }))
    }

    /// Sets how many calls may wait per destination, and for how long. Default: 1024 calls for 30 s, the default
    /// `max_elapsed` of a call.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        Self(self.0.changed(|settings| settings.patience = Patience { calls, time }))
    }

    /// Refuses calls without an available token, instead of making them wait.
    pub fn no_queue(self) -> Self {
        self.queue(0, Duration::ZERO)
    }

    /// Sets the longest reset that is [followed](Self::follow_at). Default: 1 h. Some servers send a Unix time where
    /// others send seconds. If a Unix time were read as seconds, it would stop all calls for decades.
    pub fn longest_reset(self, longest: Duration) -> Self {
        self.following(|following| following.longest_reset = longest)
    }

    /// Sets the maximum interval between calls while the limit [follows](Self::follow_at) a server. Default: 1 min.
    ///
    /// Without trial calls, a single response with no remaining calls, even a mistaken one, would stop all calls until
    /// its reset. The response to a trial call replaces the earlier one. [`Duration::MAX`] obeys the server strictly.
    pub fn trial_interval(self, interval: Duration) -> Self {
        self.following(|following| following.trial_interval = interval)
    }

    fn following(self, change: impl FnOnce(&mut Following)) -> Self {
        Self(self.0.changed(|settings| settings.following.as_mut().map_or((), change)))
    }
}
