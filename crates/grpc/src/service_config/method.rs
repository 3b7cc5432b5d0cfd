//! The policy of a method in a service config.

use std::time::Duration;

use super::CodeSet;

/// The policy of one method, of the methods of a service, or of all others.
///
/// If the caller sets a limit too, the smaller one counts (rules SC-12, SC-13). The caller's choice whether to
/// wait for a connection wins (rule DL-7).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The most time for a call, with all its attempts and waits; 0 is a real limit.
    pub timeout: Option<Duration>,
    /// If `true`, a call waits for a connection instead of failing without one.
    pub wait_for_ready: Option<bool>,
    /// The most bytes of a message that is sent, after its compression; 0 is a real limit.
    pub max_request_message_bytes: Option<u32>,
    /// The most bytes of a message that is received, before it is decompressed; 0 is a real limit.
    pub max_response_message_bytes: Option<u32>,
    /// The policy of retries or hedges.
    pub policy: MethodPolicy,
}

/// The policy for more attempts of a method's calls: retries, hedges, or neither (rule CALL-1).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum MethodPolicy {
    /// Neither.
    #[default]
    None,
    /// A failed attempt is followed by another, after a delay.
    Retry(RetryPolicy),
    /// Attempts run side by side.
    Hedging(HedgingPolicy),
}

/// The policy by which a failed attempt is retried.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    pub(super) max_attempts: u32,
    pub(super) initial_backoff: Duration,
    pub(super) max_backoff: Duration,
    pub(super) backoff_multiplier: f64,
    pub(super) retryable_codes: CodeSet,
}

impl RetryPolicy {
    /// The most attempts, the first included, as the document has it: at least 2. A client has a
    /// cap of its own, 5 unless it is changed, above which this is lowered (rule CALL-8).
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// The delay before the first retry, give or take a fifth: above 0.
    pub fn initial_backoff(&self) -> Duration {
        self.initial_backoff
    }

    /// Returns the longest delay before jitter of a fifth: above 0. It may be below the initial delay, which it
    /// then limits too (rules SC-21, BK-4).
    pub fn max_backoff(&self) -> Duration {
        self.max_backoff
    }

    /// By what each delay is multiplied to give the next: finite and above 0, and below 1 delays
    /// shrink (rule BK-5).
    pub fn backoff_multiplier(&self) -> f64 {
        self.backoff_multiplier
    }

    /// The codes that are worth a retry: at least one, never OK.
    pub fn retryable_codes(&self) -> CodeSet {
        self.retryable_codes
    }
}

/// The policy by which attempts run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HedgingPolicy {
    pub(super) max_attempts: u32,
    pub(super) hedging_delay: Duration,
    pub(super) non_fatal_codes: CodeSet,
}

impl HedgingPolicy {
    /// The most attempts, the first included, as the document has it: at least 2. A client's own
    /// cap lowers it, as in [`RetryPolicy::max_attempts`].
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// The time from one attempt to the next; 0, also where the document has none, sends all at
    /// once (rule HG-2).
    pub fn hedging_delay(&self) -> Duration {
        self.hedging_delay
    }

    /// The codes that leave the other attempts running; with none, every error ends the call (rule
    /// HG-5). Never OK.
    pub fn non_fatal_codes(&self) -> CodeSet {
        self.non_fatal_codes
    }
}
