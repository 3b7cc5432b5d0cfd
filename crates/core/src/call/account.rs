//! The end of a call, as its budget sees it.

use crate::{Budget, PaidRetry, Permit, ServerHint};

/// The end of a call, as far as a budget is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd {
    /// With a success.
    Succeeded,
    /// With a response that another attempt would not mend, and the server's hint beside it.
    Permanent(ServerHint),
    /// With an error, a failure that a retry may mend, or not at all. It earns nothing.
    Failed,
}

/// The payments of a call that its budget is given at the end: the retry under way and the number of paid
/// retries.
///
/// It outlives the state of the call where the call ends after its response began, as in gRPC. Dropped,
/// it reports the end of the retry under way and nothing else. A call that was never retried has the
/// default.
#[derive(Debug, Default)]
pub struct Account {
    call: Permit,
    last: PaidRetry,
    retries: u32,
}

impl Account {
    /// Creates the account of a call that paid for `retries` in all, `last` among them if it ends the call.
    pub(crate) fn new(last: PaidRetry, retries: u32) -> Self {
        Self { call: Permit::default(), last, retries }
    }

    /// Sets the permit that a budget issued at the beginning of the call: it is dropped at the end.
    pub fn on_start(&mut self, permit: Permit) {
        self.call = permit;
    }

    /// The retry under way has ended, so that it makes room for the next one.
    pub(super) fn retry_failed(&mut self) {
        self.last = PaidRetry::default();
    }

    pub(super) fn paid(&mut self, retry: PaidRetry) {
        self.last = retry;
        self.retries = self.retries.saturating_add(1);
    }

    /// Returns `true` if the call has paid for a retry, so that its end concerns the budget also where a
    /// success earns nothing.
    pub fn has_paid(&self) -> bool {
        self.retries > 0
    }

    /// Reports the end of the call to `budget`: the only place where it is reported.
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
