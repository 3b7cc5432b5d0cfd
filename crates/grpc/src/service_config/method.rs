//! The method policies in a service config.

use std::time::Duration;

use super::CodeSet;

/// The policy for one method, for all methods of a service, or for all other methods.
///
/// If the caller also sets a limit, the smaller one applies. The caller's own `wait_for_ready` takes
/// precedence.
// SC-12, SC-13, DL-7
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The time limit for a call, including all its attempts and delays. A limit of 0 is valid and enforced.
    pub timeout: Option<Duration>,
    /// If `true`, a call waits for a connection instead of failing immediately.
    pub wait_for_ready: Option<bool>,
    /// The maximum size of a sent message after compression, in bytes. 0 is valid.
    pub max_request_message_bytes: Option<u32>,
    /// The maximum size of a received message before decompression, in bytes. 0 is valid.
    pub max_response_message_bytes: Option<u32>,
    /// The retry or hedging policy.
    pub policy: MethodPolicy,
}

/// The policy for further attempts of a call: retries, hedges, or neither.
// CALL-1
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum MethodPolicy {
    /// No further attempts.
    #[default]
    None,
    /// Retries: a failed attempt is followed by another one after a delay.
    Retry(MethodRetryPolicy),
    /// Hedging: attempts run in parallel, each sent one delay after the previous one.
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
    /// Returns the maximum number of attempts, including the first. It is at least 2, and clients cap it at their own
    /// limit, by default 5.
    // CALL-8
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the delay before the first retry, before jitter of ±20 %. It is always above 0.
    pub fn initial_backoff(&self) -> Duration {
        self.initial_backoff
    }

    /// Returns the longest delay, before jitter of ±20 %. It is always above 0, and caps the initial delay too.
    // SC-21, BK-4
    pub fn max_backoff(&self) -> Duration {
        self.max_backoff
    }

    /// Returns the growth factor of the delays, which is finite and above 0. Below 1, the delays shrink.
    // BK-5
    pub fn backoff_multiplier(&self) -> f64 {
        self.backoff_multiplier
    }

    /// Returns the retryable codes. There is at least one, and OK is never among them.
    pub fn retryable_codes(&self) -> CodeSet {
        self.retryable_codes
    }
}

/// A method's `hedgingPolicy`: attempts run in parallel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodHedgingPolicy {
    pub(super) max_attempts: u32,
    pub(super) hedging_delay: Duration,
    pub(super) non_fatal_codes: CodeSet,
}

impl MethodHedgingPolicy {
    /// Returns the maximum number of attempts, including the first. It is at least 2, and clients cap it at their own
    /// limit, by default 5.
    // CALL-8
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the delay between attempts. 0, the default, sends all attempts at the same time.
    // HG-2
    pub fn hedging_delay(&self) -> Duration {
        self.hedging_delay
    }

    /// Returns the codes after which the other attempts continue; OK is never among them. Any other error ends the
    /// call.
    // HG-5
    pub fn non_fatal_codes(&self) -> CodeSet {
        self.non_fatal_codes
    }
}
