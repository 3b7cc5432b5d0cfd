//! The throttle: a token bucket that stops retries and hedges while most calls to a server fail.
//!
//! A failed attempt takes a token. A retry takes none: it is allowed if more than half of the tokens are left. First
//! attempts and transparent retries are always allowed.

// THR-7, THR-8

mod bucket;
pub(crate) mod throttling;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bucket::Bucket;
use reattempt_core::{Budget, Evidence, Failure, Permit, ServerHint};

pub use throttling::RetryThrottling;

/// gRPC's retry throttle, which stops all retries and hedges to a server while most calls to that server fail.
///
/// The throttle is a token bucket that starts full. A [counted failure](Self::failed) takes one token, and a successful
/// call adds `tokenRatio`. Retries and hedges are sent only while more than half of the tokens are left. Without
/// settings, nothing is throttled.
///
/// Clones share the bucket. Use one throttle per channel, for all its methods. A throttle takes no lock, and
/// its counts are exact under contention.
///
/// ```
/// # use reattempt_grpc::{RetryThrottle, RetryThrottling};
///
/// let throttle = RetryThrottle::new(Some(RetryThrottling::new(4.0, 0.5)));
/// assert!(throttle.failed(), "3 of 4 tokens are left: a retry may follow");
/// assert!(!throttle.failed(), "2 are left, which is half: no retry");
/// throttle.succeeded();
/// assert!(!throttle.is_throttled(), "2.5 are left");
/// ```
///
/// # As a budget
///
/// As a [`Budget`], it charges for failed attempts, and permits are free. A call's last attempt therefore also costs a
/// token if it fails.
///
/// A permanent failure adds nothing, because only status OK adds tokens. If the server's pushback stops the
/// call, the failure takes a token.
// THR-11, THR-1, RET-1, THR-4, THR-3, PB-8
#[derive(Clone)]
pub struct RetryThrottle {
    bucket: Arc<Bucket>,
}

impl RetryThrottle {
    /// Creates a throttle with a full bucket. With `None`, nothing is throttled.
    pub fn new(settings: Option<RetryThrottling>) -> Self {
        Self { bucket: Arc::new(Bucket::new(settings)) }
    }

    /// Records a failed attempt, which takes a token. Returns `true` if a retry may follow.
    ///
    /// Call it once for each attempt that fails with one of the policy's codes, or with a pushback that stops the call.
    /// Do not call it for transparent retries.
    // THR-3, THR-5
    pub fn failed(&self) -> bool {
        !self.bucket.debit()
    }

    /// Records a successful call, which adds `tokenRatio`. Call it once for each call with status OK, regardless of its
    /// method.
    // THR-4
    #[inline]
    pub fn succeeded(&self) {
        self.bucket.credit();
    }

    /// Returns `true` if retries and hedges are currently throttled.
    pub fn is_throttled(&self) -> bool {
        self.bucket.is_throttled()
    }

    /// Replaces the settings, for all clones at once.
    ///
    /// The bucket stays filled to the same fraction, so that a new config does not refill it. Without previous
    /// settings, the bucket starts full. Settings equal to the current ones have no effect.
    pub fn configure(&self, settings: Option<RetryThrottling>) {
        self.bucket.configure(settings);
    }

    /// Returns the remaining tokens in thousandths, or `None` if the throttle has no settings.
    pub fn tokens_thousandths(&self) -> Option<u32> {
        self.bucket.tokens()
    }
}

impl From<RetryThrottling> for RetryThrottle {
    fn from(settings: RetryThrottling) -> Self {
        Self::new(Some(settings))
    }
}

impl Budget for RetryThrottle {
    /// Returns a free permit, unless retries are throttled.
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        (!self.is_throttled()).then(Permit::free)
    }

    /// Takes a token for the failure, and checks in the same step if a retry may follow.
    fn acquire_after_failure(&self, _: &str, _: &Evidence, _: Duration) -> Option<Permit> {
        (!self.bucket.debit()).then(Permit::free)
    }

    fn on_failure(&self, _: &str, _: &Evidence, _: Duration) {
        self.bucket.debit();
    }

    fn on_success(&self, _: &str, _: u32) {
        self.bucket.credit();
    }

    fn on_permanent_failure(&self, _: &str, hint: ServerHint, _: u32) {
        if hint == ServerHint::Stop {
            self.bucket.debit();
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.bucket.is_full()
    }

    #[inline]
    fn is_keyed(&self) -> bool {
        false
    }
}

impl fmt::Debug for RetryThrottle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryThrottle").field("tokens_thousandths", &self.tokens_thousandths()).finish_non_exhaustive()
    }
}
