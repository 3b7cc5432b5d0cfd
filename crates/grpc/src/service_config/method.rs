//! What a service config says of a method.

use std::time::Duration;

use super::CodeSet;

/// What a service config says of one method, or of all methods for which it says nothing else.
///
/// Where the caller says something too, the smaller limit counts (rules SC-12, SC-13), and the
/// caller's choice whether to wait (rule DL-7).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The most time for a call, with all its attempts and waits; 0 is a real limit.
    pub timeout: Option<Duration>,
    /// Whether a call waits for a connection rather than fail without one.
    pub wait_for_ready: Option<bool>,
    /// The most bytes of a message that is sent, after its compression; 0 is a real limit.
    pub max_request_message_bytes: Option<u32>,
    /// The most bytes of a message that is received, before it is decompressed; 0 is a real limit.
    pub max_response_message_bytes: Option<u32>,
    /// Whether attempts are repeated, and how.
    pub policy: MethodPolicy,
}

/// Whether a method's calls are retried or hedged: one of them, or neither (rule CALL-1).
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

/// When a failed attempt is followed by another one.
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

    /// What no delay grows past, give or take a fifth: above 0. May be below the initial delay,
    /// which is then cut as well (rules SC-21, BK-4).
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

/// When attempts run side by side.
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
