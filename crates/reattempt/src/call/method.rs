//! Overrides for all calls of one method, published by the owner of a service.

use std::fmt;
use std::time::Duration;

use reattempt_core::Verdict;
use reattempt_schedule_exponential::ExponentialDelays;

/// Overrides that the owner of a service has published for one method. The caller's own go before them.
pub(crate) trait MethodOverrides: fmt::Debug + Send + Sync {
    /// Returns `true` if the calls of the method are retried or hedged at all.
    fn has_policy(&self) -> bool;

    /// Returns the most time for a call.
    fn timeout(&self) -> Option<Duration>;

    /// Returns the most attempts; `None` for a method that has no policy.
    fn max_attempts(&self) -> Option<u32>;

    /// Returns the delays between the attempts of a method that is retried.
    fn delays(&self) -> Option<ExponentialDelays>;

    /// Returns the time from one attempt to the next of a method that is hedged.
    fn hedging_delay(&self) -> Option<Duration>;

    /// Returns the verdict on an attempt that ended with this code of its protocol; `None` is a code that no
    /// list can name.
    fn verdict(&self, code: Option<u16>) -> Verdict;
}
