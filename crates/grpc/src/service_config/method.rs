//! The method policies in a service config.

use std::time::Duration;

use super::CodeSet;

/// The policy for one method, for all methods of a service, or for all other methods.
///
/// If the caller sets a limit too, the smaller one applies (SC-12, SC-13). The caller's own setting of `wait_for_ready`
/// has precedence (DL-7).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The time limit for a call, including all its attempts and delays. A limit of 0 is enforced too.
    pub timeout: Option<Duration>,
    /// If `true`, a call waits for a connection instead of failing when there is none.
    pub wait_for_ready: Option<bool>,
    /// The size limit for a sent message after compression, in bytes. 0 is a valid limit.
    pub max_request_message_bytes: Option<u32>,
    /// The size limit for a received message before decompression, in bytes. 0 is a valid limit.
    pub max_response_message_bytes: Option<u32>,
    /// The retry or hedging policy.
    pub policy: MethodPolicy,
}

/// The policy for further attempts of a call: retries, hedges, or neither (CALL-1).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum MethodPolicy {
    /// No further attempts.
    #[default]
    None,
    /// Retries: a failed attempt is followed by another one after a delay.
    Retry(MethodRetryPolicy),
    /// Hedging: attempts run at the same time, each sent one delay after the previous one.
    Hedging(MethodHedgingPolicy),
}

/// A method's `retryPolicy`: failed attempts are retried.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodRetryPolicy {
    pub(super) max_attempts: u32,
    pub(super) initial_backoff: Duration,
    pub(super) max_backoff: Duration,
    pub(super) backoff_multiplier: f64,
    pub(super) retryable_codes: CodeSet,
}

impl MethodRetryPolicy {
    /// Returns the maximum number of attempts, including the first: at least 2. A client lowers it to its own limit, by
    /// default 5 (CALL-8).
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the delay before the first retry, not including the jitter of ±20 %. It is always above 0.
    pub fn initial_backoff(&self) -> Duration {
        self.initial_backoff
    }

    /// Returns the longest delay, before jitter of ±20 %: above 0. If the initial delay is longer, it is lowered to
    /// this value (SC-21, BK-4).
    pub fn max_backoff(&self) -> Duration {
        self.max_backoff
    }

    /// Returns the growth factor of the delays: finite and above 0. Below 1, delays shrink (BK-5).
    pub fn backoff_multiplier(&self) -> f64 {
        self.backoff_multiplier
    }

    /// Returns the retryable codes: at least one, never OK.
    pub fn retryable_codes(&self) -> CodeSet {
        self.retryable_codes
    }
}

/// A method's `hedgingPolicy`: attempts run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodHedgingPolicy {
    pub(super) max_attempts: u32,
    pub(super) hedging_delay: Duration,
    pub(super) non_fatal_codes: CodeSet,
}

impl MethodHedgingPolicy {
    /// Returns the maximum number of attempts, including the first: at least 2. A client lowers it to its own limit, by
    /// default 5 (CALL-8).
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the time from one attempt to the next. 0, the default, sends all attempts at once (HG-2).
    pub fn hedging_delay(&self) -> Duration {
        self.hedging_delay
    }

    /// Returns the codes after which the other attempts continue, never OK. Every other error ends the call (HG-5).
    pub fn non_fatal_codes(&self) -> CodeSet {
        self.non_fatal_codes
    }
}
