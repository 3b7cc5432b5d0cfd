//! The policy of a method in a service config.

use std::time::Duration;

use super::CodeSet;

/// The policy of one method, of the methods of a service, or of all others.
///
/// If the caller sets a limit too, the smaller one counts (SC-12, SC-13). If the caller sets whether to wait for a
/// connection, that counts (DL-7).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The most time for a call, with all its attempts and delays. 0 is a limit as well.
    pub timeout: Option<Duration>,
    /// If `true`, a call waits for a connection instead of failing without one.
    pub wait_for_ready: Option<bool>,
    /// The most bytes of a compressed message that is sent. 0 is a limit as well.
    pub max_request_message_bytes: Option<u32>,
    /// The most bytes of a message that is received, before it is decompressed. 0 is a limit as well.
    pub max_response_message_bytes: Option<u32>,
    /// The policy of retries or hedges.
    pub policy: MethodPolicy,
}

/// The policy for further attempts of a call: retries, hedges, or neither (CALL-1).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum MethodPolicy {
    /// No further attempts.
    #[default]
    None,
    /// A failed attempt is followed by another one after a delay.
    Retry(MethodRetryPolicy),
    /// Attempts run at the same time, each sent a delay after the one before.
    Hedging(MethodHedgingPolicy),
}

/// The `retryPolicy` of a method, by which a failed attempt is retried.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodRetryPolicy {
    pub(super) max_attempts: u32,
    pub(super) initial_backoff: Duration,
    pub(super) max_backoff: Duration,
    pub(super) backoff_multiplier: f64,
    pub(super) retryable_codes: CodeSet,
}

impl MethodRetryPolicy {
    /// Returns the most attempts, the first included: at least 2. A client lowers it to its own limit, by default 5
    /// (CALL-8).
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the delay before the first retry, before jitter of ±20 %: above 0.
    pub fn initial_backoff(&self) -> Duration {
        self.initial_backoff
    }

    /// Returns the longest delay, before jitter of ±20 %: above 0. It may be below the initial delay, which it then
    /// limits too (SC-21, BK-4).
    pub fn max_backoff(&self) -> Duration {
        self.max_backoff
    }

    /// Returns the factor from each delay to the next: finite and above 0. Below 1, delays shrink (BK-5).
    pub fn backoff_multiplier(&self) -> f64 {
        self.backoff_multiplier
    }

    /// Returns the codes that are retried: at least one, never OK.
    pub fn retryable_codes(&self) -> CodeSet {
        self.retryable_codes
    }
}

/// The `hedgingPolicy` of a method, by which attempts run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodHedgingPolicy {
    pub(super) max_attempts: u32,
    pub(super) hedging_delay: Duration,
    pub(super) non_fatal_codes: CodeSet,
}

impl MethodHedgingPolicy {
    /// Returns the most attempts, the first included: at least 2. A client lowers it to its own limit, by default 5
    /// (CALL-8).
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the time from one attempt to the next. 0, the default, sends all attempts at once (HG-2).
    pub fn hedging_delay(&self) -> Duration {
        self.hedging_delay
    }

    /// Returns the codes after which the other attempts go on, never OK. Every other error ends the call (HG-5).
    pub fn non_fatal_codes(&self) -> CodeSet {
        self.non_fatal_codes
    }
}
