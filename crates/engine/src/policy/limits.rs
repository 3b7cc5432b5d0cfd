//! A policy's limits on attempts and time.

use std::time::Duration;

use reattempt_core::Schedule;

use super::RetryPolicy;
use crate::call::protocol::Protocol;

/// Limits on attempts and time.
impl<P, Backoff, B, Mode> RetryPolicy<P, Backoff, B, Mode>
where
    P: Protocol + Clone,
    Backoff: Schedule + Clone,
    B: Clone,
{
    /// Sets the maximum number of attempts, including the first. 0 and 1 turn retries off. `None` removes the limit.
    /// Default: 3.
    ///
    /// The default [`budget`](Self::budget) grants at most three retries to a destination while no call succeeds. If
    /// calls must outlast an outage, set a different budget, such as
    /// [`RetryBudget::percent`](crate::RetryBudget::percent).
    #[doc(alias = "max_tries")]
    pub fn max_attempts(self, attempts: impl Into<Option<u32>>) -> Self {
        let attempts = attempts.into().unwrap_or(u32::MAX);
        self.set(|settings| {
            settings.limits.max_attempts = attempts;
            settings.chosen.max_attempts = true;
        })
    }

    /// Sets the maximum number of attempts after the first, as most other libraries count: `max_retries(2)` is
    /// [`max_attempts(3)`](Self::max_attempts). Default: 2.
    pub fn max_retries(self, retries: u32) -> Self {
        self.max_attempts(retries.saturating_add(1))
    }

    /// Turns retries off for all calls, for example in a configuration or a test. No other setting or call option can
    /// turn them on again. The request body is not saved, so an unprocessed attempt is not replaced either.
    ///
    /// [`CallOptions::never_retry`](crate::CallOptions::never_retry) does the same for one call or one handle.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    ///
    /// let (mut policy, retries_wanted) = (RetryPolicy::http().max_attempts(5), false);
    /// if !retries_wanted {
    ///     policy = policy.never_retry();
    /// }
    /// assert_eq!(policy.limits().max_attempts, 1);
    /// ```
    #[doc(alias("disabled", "no_retry", "off"))]
    pub fn never_retry(self) -> Self {
        self.set(|settings| settings.never = true)
    }

    /// Sets the maximum time from the start of a call to the start of its last attempt. `None` removes the limit.
    /// Default: 30 s.
    ///
    /// A retry is not granted if its delay would exceed this time. The limit does not interrupt attempts. A call starts
    /// when its future first returns `Pending`.
    ///
    /// If the inner service or a hook is not ready in time, a granted retry may be sent later. By then, the refused
    /// response has been dropped, so only the retry can provide an outcome. Policies with boxed errors end such a call
    /// with a [`TimedOut`](crate::TimedOut) instead.
    #[doc(alias = "total_timeout")]
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| {
            settings.limits.max_elapsed = elapsed;
            settings.chosen.max_elapsed = true;
        })
    }

    /// Sets the maximum delay that a server may ask for. If it asks for more, the call is not retried. `None` removes
    /// the limit. Default: 60 s, but the default `max_elapsed` of 30 s is stricter.
    #[doc(alias("retry_after", "max_retry_after"))]
    pub fn max_server_delay(self, delay: impl Into<Option<Duration>>) -> Self {
        let delay = delay.into().unwrap_or(Duration::MAX);
        self.set(|settings| {
            settings.limits.max_server_delay = delay;
            settings.chosen.max_server_delay = true;
        })
    }
}
