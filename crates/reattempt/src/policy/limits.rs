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
    /// The default [`budget`](Self::budget) ends a run of failures without a success after three retries. A call
    /// that is meant to bridge an outage needs another one, such as [`RetryBudget::percent`](crate::RetryBudget::percent).
    #[doc(alias("max_retries", "max_tries"))]
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| {
            settings.limits.max_attempts = attempts;
            settings.chosen.max_attempts = true;
        })
    }

    /// Turns retries off: by a configuration, or in a test. No other setting and no option of a call turns them
    /// on again.
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

    /// Sets the most time from the start of a call to the start of its last attempt: a retry whose delay
    /// would pass it is not made. `None` for no limit; default 30 s. It interrupts nothing. The call
    /// starts when its future is first polled, as far as this is concerned.
    ///
    /// One retry may be sent later: where the response before it has been thrown away and the inner
    /// service, or a hook, then takes longer than the limit, there is nothing left to return but what
    /// the retry brings. Policies with boxed errors end such a call with a
    /// [`TimedOut`](crate::TimedOut).
    #[doc(alias = "total_timeout")]
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| {
            settings.limits.max_elapsed = elapsed;
            settings.chosen.max_elapsed = true;
        })
    }

    /// Sets the longest delay that a server may ask for. If it asks for a longer one, the call ends. Default
    /// 60 s, of which `max_elapsed` leaves 30 s unless it is raised.
    pub fn max_server_delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.limits.max_server_delay = delay)
    }
}
