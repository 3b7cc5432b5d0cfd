//! Retry budgets. Every retry must be granted by a budget before it is sent.

mod both;
mod permit;
mod spend_only;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{Evidence, Failure, ServerHint, Warning};

pub use permit::{PaidRetry, Permit, PermitIssuer};
pub use spend_only::SpendOnly;

/// A client-wide limit on retries.
///
/// A single budget serves all calls, from any thread. Clones share its state. `destination` identifies the request's
/// server, such as `https://example.com`; a budget with a single bucket ignores it. `now` is the monotonic time since
/// some fixed instant.
///
/// # Events
///
/// | event | method |
/// |---|---|
/// | a retryable failure, after which only the budget can still refuse the retry | [`acquire_after_failure`](Budget::acquire_after_failure) |
/// | a retryable failure after which another rule prevents the retry | [`on_failure`](Budget::on_failure) |
/// | an attempt that was not processed, and may be replaced without a permit | [`on_unprocessed`](Budget::on_unprocessed) |
/// | a hedge is about to be sent alongside the attempts in flight | [`acquire`](Budget::acquire) |
/// | a granted retry waits to be sent, and is confirmed or refused | [`PermitIssuer::poll_confirmed`] |
/// | a paid retry ended, or was not sent | [`PermitIssuer`] |
/// | a call succeeded | [`on_success`](Budget::on_success) |
/// | a call ended with a permanent-failure response | [`on_permanent_failure`](Budget::on_permanent_failure) |
///
/// Each failed attempt is reported once. A call that ends with an error is not reported, because only responses earn
/// tokens.
#[expect(unused_variables, reason = "a default ignores its arguments")]
pub trait Budget: Send + Sync + 'static {
    /// Withdraws the cost of another attempt after `failure`. Returns `None` if the budget has too few tokens.
    ///
    /// Dropping the permit unspent returns the tokens. For a hedge that follows a slow attempt, the failure is a
    /// [`Timeout`](crate::FailureKind::Timeout).
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit>;

    /// Records a failed attempt and withdraws the cost of its retry. This is the last step of a retry decision.
    ///
    /// A budget that counts failures overrides this method to do both in one atomic step. Default:
    /// [`on_failure`](Budget::on_failure), then [`acquire`](Budget::acquire).
    fn acquire_after_failure(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        self.on_failure(destination, evidence, now);
        self.acquire(destination, &evidence.failure, now)
    }

    /// Records a failed attempt that another rule prevents from being retried.
    ///
    /// Not called for calls that must never be retried.
    fn on_failure(&self, destination: &str, evidence: &Evidence, now: Duration) {}

    /// Records an attempt that provably was not processed. Returns `true` if it may be replaced at once, without a
    /// permit.
    ///
    /// Called if the server [refused](crate::Undone::Refused) the request before processing it, and if an endpoint
    /// accepted no connection while another one is left. If it returns `false`, the attempt is decided like any other
    /// failure. A budget limits here what a server can cause that refuses everything. Default: `true`, with which such
    /// a server gets twice its load.
    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        true
    }

    /// Records a successful call. `retries` is the number of its paid retries and hedges.
    fn on_success(&self, destination: &str, retries: u32) {}

    /// Records a call whose response was a permanent failure.
    ///
    /// `hint` is [`Stop`](ServerHint::Stop) only if the call could have been retried. The default implementation
    /// records a success, because a server that responds is working.
    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        self.on_success(destination, retries);
    }

    /// Returns `true` if recording a success would have no effect for any destination. Callers may then
    /// skip computing the destination.
    ///
    /// [`on_permanent_failure`](Budget::on_permanent_failure) without a hint must then have no effect either. Default:
    /// `false`, which is always safe.
    #[inline]
    fn is_full(&self) -> bool {
        false
    }

    /// Returns `true` if no event ever has an effect. Default: `false`, which is always safe.
    #[inline]
    fn is_noop(&self) -> bool {
        false
    }

    /// Returns `true` if the budget keeps separate state for each destination. Otherwise callers may pass an empty
    /// destination and skip computing it.
    ///
    /// The value must be constant. Default: `true`, which is always safe.
    #[inline]
    fn is_keyed(&self) -> bool {
        true
    }

    /// Returns the most retries that a call gets within this time while no call succeeds, starting with a full budget.
    /// Default: `None`, if that is not known or not limited.
    ///
    /// `validate` of a policy compares it with the maximum number of attempts.
    fn most_retries(&self, within: Duration) -> Option<u32> {
        None
    }

    /// Returns a warning for each setting outside its recommended range. Default: no warnings.
    fn validate(&self) -> Vec<Warning> {
        Vec::new()
    }
}

impl<B: Budget + ?Sized> Budget for Arc<B> {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        (**self).acquire(destination, failure, now)
    }

    fn acquire_after_failure(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        (**self).acquire_after_failure(destination, evidence, now)
    }

    fn on_failure(&self, destination: &str, evidence: &Evidence, now: Duration) {
        (**self).on_failure(destination, evidence, now);
    }

    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        (**self).on_unprocessed(destination, evidence, now)
    }

    fn on_success(&self, destination: &str, retries: u32) {
        (**self).on_success(destination, retries);
    }

    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        (**self).on_permanent_failure(destination, hint, retries);
    }

    fn is_full(&self) -> bool {
        (**self).is_full()
    }

    fn is_noop(&self) -> bool {
        (**self).is_noop()
    }

    fn is_keyed(&self) -> bool {
        (**self).is_keyed()
    }

    fn most_retries(&self, within: Duration) -> Option<u32> {
        (**self).most_retries(within)
    }

    fn validate(&self) -> Vec<Warning> {
        (**self).validate()
    }
}

/// A budget that grants every retry.
///
/// Use it only if retries are limited elsewhere.
#[doc(alias("no_budget", "disabled"))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn is_full(&self) -> bool {
        true
    }

    fn is_noop(&self) -> bool {
        true
    }

    fn is_keyed(&self) -> bool {
        false
    }
}
