//! The limits of a policy: attempts and time.

use std::time::Duration;

use reattempt_core::Schedule;

use super::RetryPolicy;
use crate::call::protocol::Protocol;

/// Limits on attempts and time.
impl<K, D, B, M> RetryPolicy<K, D, B, M>
where
    K: Protocol + Clone,
    D: Schedule + Clone,
    B: Clone,
{
    /// Sets the most attempts in all, the first included; 0 and 1 both mean never to retry. Default 3.
    ///
    /// The default [`budget`](Self::budget) grants at most three retries to a destination while no call succeeds. If
    /// calls must outlast an outage, set another one, such as [`RetryBudget::percent`](crate::RetryBudget::percent).
    #[doc(alias("max_retries", "max_tries"))]
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| {
            settings.limits.max_attempts = attempts;
            settings.chosen.max_attempts = true;
        })
    }

    /// Turns retries off, for a configuration or a test. No other setting and no option of a call turns them on again.
    ///
    /// [`CallOptions::never_retry`](crate::CallOptions::never_retry) does so for one call or one handle.
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

    /// Sets the most time from the start of a call to the start of its last attempt; `None` for no limit. Default 30 s.
    ///
    /// A retry whose delay would end later is not made. The limit interrupts no attempt. The time starts when the
    /// call's future is first polled and is not ready.
    ///
    /// One retry may be sent later. Before a retry, the refused response is dropped. If the inner service or a hook
    /// then takes longer than the limit, the retry's outcome is the only one left to return. Policies with boxed errors
    /// end such a call with a [`TimedOut`](crate::TimedOut).
    #[doc(alias = "total_timeout")]
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| {
            settings.limits.max_elapsed = elapsed;
            settings.chosen.max_elapsed = true;
        })
    }

    /// Sets the longest delay that a server may ask for. If it asks for a longer one, the call is not
    /// retried. Default 60 s; the default `max_elapsed` of 30 s decides first.
    #[doc(alias("retry_after", "max_retry_after"))]
    pub fn max_server_delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.limits.max_server_delay = delay)
    }
}
