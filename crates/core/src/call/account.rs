//! The end of a call, as its budget sees it.

use crate::{Budget, PaidRetry, Permit, ServerHint};

/// The end of a call, as its budget sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd {
    /// The call succeeded.
    Succeeded,
    /// The call ended with a permanent failure in a response, which had this hint.
    Permanent(ServerHint),
    /// The call ended with an error or a retryable failure, or it was dropped. It earns nothing.
    Failed,
}

/// The payments that a call reports to its budget when it ends: the retry under way and the number of paid retries.
///
/// A gRPC call ends after its response has begun, so this value may outlive the call's state. If it is dropped, it
/// reports only that the retry under way has ended. A call without retries has the default value.
#[derive(Debug, Default)]
pub struct Account {
    call: Permit,
    last: PaidRetry,
    retries: u32,
}

impl Account {
    /// Creates the account of a call that paid for `retries` in total, including `last` if it ends the call.
    pub(crate) fn new(last: PaidRetry, retries: u32) -> Self {
        Self { call: Permit::default(), last, retries }
    }

    /// Sets the permit that the budget issued when the call started. It is dropped when the call ends.
    pub fn on_start(&mut self, permit: Permit) {
        self.call = permit;
    }

    /// Records that the retry under way has failed, before the next one is paid.
    pub(super) fn retry_failed(&mut self) {
        self.last = PaidRetry::default();
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

    /// Returns `true` if the call has paid for a retry. Its end must then be reported, even to a full budget.
    pub fn has_paid(&self) -> bool {
        self.retries > 0
    }

    /// Reports the end of the call to `budget`.
    #[inline]
    pub fn settle<B: Budget + ?Sized>(self, end: CallEnd, destination: &str, budget: &B) {
        let Self { call, last, retries } = self;
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
        }
        drop(call);
    }
}
