//! Overrides for all calls to one method, published by the service's owner.

use std::fmt;
use std::time::Duration;

use reattempt_core::Verdict;
use reattempt_schedule_exponential::ExponentialDelays;

/// The overrides for one method, published by the service's owner. The caller's own overrides take precedence.
pub trait MethodOverrides: fmt::Debug + Send + Sync {
    /// Returns `true` if calls to the method are retried or hedged at all.
    fn has_policy(&self) -> bool;

    /// Returns the time limit for a call.
    fn timeout(&self) -> Option<Duration>;

    /// Returns the maximum number of attempts, or `None` for a method without a policy.
    fn max_attempts(&self) -> Option<u32>;

    /// Returns the delays between attempts, if the method is retried.
    fn delays(&self) -> Option<ExponentialDelays>;

    /// Returns the time from one attempt to the next, if the method is hedged.
    fn hedging_delay(&self) -> Option<Duration>;

    /// Returns the verdict for an attempt that ended with this protocol code. `None` means a code that no list can
    /// contain.
    fn verdict(&self, code: Option<u16>) -> Verdict;
}
