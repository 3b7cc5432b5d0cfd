//! The constructor and setters of a send rate.

use std::time::Duration;

use reattempt_core::guard::GuardKind;

use super::{Limit, SendRate};
use crate::guard::per_destination::PerDestination;
use crate::guard::rate_limit::limiter::LimiterSettings;
use crate::guard::wait_queue::Patience;

/// Each setter returns a new rate with its own state.
impl SendRate {
    /// Creates a send rate without a limit until the first refusal.
    pub fn new() -> Self {
        let patience = Patience { calls: 1024, time: Duration::from_secs(30) };
        let (limit, kind) = (Limit::INFINITE, GuardKind::SEND_RATE);
        Self(PerDestination::new(LimiterSettings { limit, burst: 0, patience, following: None, kind }))
    }

    /// Sets how many calls may wait per destination, and for how long. Default: 1024 calls for 30 s, as in a
    /// [`RateLimit`](crate::RateLimit).
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        Self(self.0.changed(|settings| settings.patience = Patience { calls, time }))
    }

    /// Refuses calls without an available token, instead of making them wait.
    pub fn no_queue(self) -> Self {
        self.queue(0, Duration::ZERO)
    }
}

impl Default for SendRate {
    fn default() -> Self {
        Self::new()
    }
}
