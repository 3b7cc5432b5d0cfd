//! The rules by which a failing endpoint is ejected.

use std::time::Duration;

use super::words::MOST_CALLS;
use crate::millionths::{MILLION, millionths};

/// The rules by which an endpoint is ejected because it fails, and for how long.
///
/// The defaults suit most sets. Change them to keep the rules of a proxy that you replace. Endpoints that accept no
/// connection, or ask for a wait, are ejected by fixed rules.
///
/// ```
/// use std::time::Duration;
/// use reattempt_control::{EjectionRules, EndpointSet};
///
/// // The defaults of linkerd's failure accrual.
/// let rules = EjectionRules::new()
///     .in_a_row(7)
///     .without_failure_rate()
///     .lasts(Duration::from_secs(1), Duration::from_secs(60))
///     .at_most(1.0);
/// let set = EndpointSet::<()>::new().ejection_rules(rules);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EjectionRules {
    pub(crate) limits: FailureLimits,
    /// The times of the first and of the longest ejection, in milliseconds.
    pub(crate) lasts: (u64, u64),
    /// The largest share of endpoints that may be out, in millionths.
    pub(crate) at_most: u64,
}

/// The numbers of failures that eject an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailureLimits {
    /// The consecutive failures, or `u32::MAX` for no such limit.
    pub(crate) row: u32,
    /// The least number of calls in a window, or `u32::MAX` for no limit on the failure rate.
    pub(crate) calls: u32,
    /// The share of them, in millionths.
    pub(crate) share: u64,
}

impl FailureLimits {
    pub(crate) const DEFAULT: Self = Self { row: 5, calls: 20, share: MILLION / 2 };
}

impl EjectionRules {
    /// Creates the default rules.
    pub const fn new() -> Self {
        Self { limits: FailureLimits::DEFAULT, lasts: (5_000, 10_000), at_most: MILLION / 2 }
    }

    /// Ejects an endpoint after this many consecutive failures. Default: 5. 0 is raised to 1.
    ///
    /// A lost connection counts as two failures, however many calls it has ended. After an ejection, a single failure
    /// is enough until the first success.
    #[must_use]
    pub const fn in_a_row(mut self, failures: u32) -> Self {
        self.limits.row = if failures == 0 { 1 } else { failures };
        self
    }

    /// Ejects no endpoint because of consecutive failures.
    #[must_use]
    pub const fn without_in_a_row(self) -> Self {
        self.in_a_row(u32::MAX)
    }

    /// Ejects an endpoint that gets at least this many calls within 10 s, if at least this share of them fails.
    /// Default: half of 20 calls. The share is limited to the range from 0 to 1, and the calls to that from 1 to
    /// 60,000.
    #[must_use]
    pub fn failure_rate(mut self, share: f64, calls: u32) -> Self {
        (self.limits.share, self.limits.calls) = (millionths(share, 0.0, 1.0), calls.clamp(1, MOST_CALLS));
        self
    }

    /// Ejects no endpoint because of its failure rate.
    #[must_use]
    pub const fn without_failure_rate(mut self) -> Self {
        self.limits.calls = u32::MAX;
        self
    }

    /// Sets the times of ejections. The first one lasts for `first`, and each further one twice as long as the one
    /// before, up to `longest`. After 30 s in service, one is forgotten. Up to a fifth of the time, chosen at random,
    /// is added. Default: 5 s and 10 s, because the price avoids a failing endpoint before it is ejected.
    ///
    /// Fractions of milliseconds are dropped, `first` is raised to 1 ms, and `longest` to `first`.
    #[must_use]
    pub fn lasts(mut self, first: Duration, longest: Duration) -> Self {
        let [first, longest] = [first, longest].map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 4));
        let first = first.clamp(1, u64::MAX / 4);
        self.lasts = (first, longest.clamp(first, u64::MAX / 4));
        self
    }

    /// Sets the largest share of endpoints that may be out of service because they fail, from 0 to 1. Default: 0.5. If
    /// more fail, or all, then all stay in service, and calls prefer those that fail less. Other shares are limited to
    /// that range.
    ///
    /// The share is not rounded up: with 0.1, none of nine endpoints is ejected. In tiers before the last one, all may
    /// be out.
    #[must_use]
    pub fn at_most(mut self, share: f64) -> Self {
        self.at_most = millionths(share, 0.0, 1.0);
        self
    }
}

impl Default for EjectionRules {
    fn default() -> Self {
        Self::new()
    }
}
