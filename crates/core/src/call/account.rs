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

/// The payments of a call, reported to its budget at the end: the retry under way and the number of paid retries.
///
/// A gRPC call ends after its response began, so this value may outlive the state of the call. If it is dropped,
/// it reports the end of the retry under way and nothing else. A call that was never retried has the default.
#[derive(Debug, Default)]
pub struct Account {
    call: Permit,
    last: PaidRetry,
    retries: u32,
}

impl Account {
    /// Creates the account of a call that paid for `retries` in all, `last` included if it ends the call.
    pub(crate) fn new(last: PaidRetry, retries: u32) -> Self {
        Self { call: Permit::default(), last, retries }
    }

    /// Sets the permit that the budget issued at the beginning of the call. It is dropped at the end.
    pub fn on_start(&mut self, permit: Permit) {
        self.call = permit;
    }

    /// Records that the retry under way has failed, before the next one is paid.
    pub(super) fn retry_failed(&mut self) {
        self.last = PaidRetry::default();
    }

    /// Takes the payment for the retry under way back, because it was not sent.
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

    /// Reports the end of the call to `budget`. Nothing else reports it.
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
