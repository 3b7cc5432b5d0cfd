//! The outcome of a call, as reported to its budget.

use core::time::Duration;

use crate::{Budget, Evidence, PaidRetry, Permit, ServerHint};

/// The outcome of a call, as reported to its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd {
    /// The call succeeded.
    Succeeded,
    /// The call ended with a permanent-failure response that carried this hint.
    Permanent(ServerHint),
    /// The call ended with an error or a retryable failure, or it was dropped. Such a call earns no tokens.
    Failed,
    /// The response ended with a retryable failure after it had begun, too late for a retry.
    FailedLate {
        /// The evidence of the failure.
        evidence: Evidence,
        /// The monotonic time at which the response ended.
        now: Duration,
    },
}

/// The payments that a call reports to its budget when it ends: the current retry and the number of paid retries.
///
/// An account is created at the first failure. A gRPC call ends after its response has begun, so an account may outlive
/// the call's state. A dropped account reports only the end of the current retry. The account of a call without retries
/// is the default value.
#[derive(Debug, Default)]
pub struct Account {
    pub(super) last: PaidRetry,
    retries: u32,
}

impl Account {
    /// Creates the account of a call that paid for `retries` retries in total, including `last` if it ends the call.
    pub(crate) fn new(last: PaidRetry, retries: u32) -> Self {
        Self { last, retries }
    }

    /// Refunds the payment for the current retry, which was not sent.
    pub(super) fn take_back(&mut self) -> Permit {
        self.retries = self.retries.saturating_sub(1);
        core::mem::take(&mut self.last).unsent()
    }

    pub(super) fn paid(&mut self, retry: PaidRetry) {
        self.last = retry;
        self.retries = self.retries.saturating_add(1);
    }

    /// Returns `true` if the call has paid for a retry. The end of such a call must be reported even to a full budget.
    pub fn has_paid(&self) -> bool {
        self.retries > 0
    }

    /// Reports the end of the call to `budget`.
    #[inline]
    pub fn settle<B: Budget + ?Sized>(self, end: CallEnd, destination: &str, budget: &B) {
        let Self { last, retries } = self;
        match end {
            CallEnd::Succeeded => {
                last.succeed();
                budget.on_success(destination, retries);
            }
            CallEnd::Permanent(hint) => {
                drop(last);
                budget.on_permanent_failure(destination, hint, retries);
            }
            CallEnd::Failed => drop(last),
            CallEnd::FailedLate { evidence, now } => {
                budget.on_failure(destination, &evidence, now);
                drop(last);
            }
        }
    }

    /// Reports the success of a call without paid retries, to a budget. Equivalent to
    /// [`settle`](Self::settle) on the default account, but cheaper.
    #[inline]
    pub fn settle_unpaid<B: Budget + ?Sized>(destination: &str, budget: &B) {
        budget.on_success(destination, 0);
    }
}
