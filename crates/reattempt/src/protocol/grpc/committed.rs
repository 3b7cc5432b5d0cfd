//! What is still to be told of a call whose answer has begun: how it ends.
//!
//! What flows in: its trailers, or what came in their place. What flows out: the credit or the debit of
//! the budget, and an event. **This is the one place where the end of a committed call is known.**

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::HeaderMap;
use reattempt_core::{Account, Budget, CallEnd, Schedule, ServerHint, Verdict};
use reattempt_grpc::{Code, GRPC_STATUS};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::hedge::HedgeSettings;
use crate::policy::Settings;
use crate::protocol::Protocol;
use crate::{CallOptions, Event, Observer, clock};

/// A call that is tied to the answer it has.
pub struct Committed {
    pub(crate) client: Arc<dyn Client>,
    /// Whom it is for: the key of the budget. The head of the request, which may have credentials, is
    /// not kept for it.
    pub(crate) destination: String,
    pub(crate) options: Option<CallOptions>,
    /// Whether the call's retries were not ruled out from the beginning.
    pub(crate) retryable: bool,
    /// What the budget must be given at its end.
    pub(crate) account: Account,
    /// The number of its last attempt.
    pub(crate) attempts: u32,
    pub(crate) deadline: Option<Instant>,
    /// Made when the answer is first not there at once, if there is a deadline.
    pub(crate) sleep: Option<Pin<Box<Sleep>>>,
}

/// What all calls of a client share, of whatever type it is.
pub(crate) trait Client: Send + Sync {
    fn budget(&self) -> &dyn Budget;
    fn observer(&self) -> Option<&dyn Observer>;
    /// The verdict on an answer that has ended with these trailers.
    fn judge_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict;
}

impl<K: Protocol, D: Schedule, B: Budget> Client for Settings<K, D, B> {
    fn budget(&self) -> &dyn Budget {
        &self.budget
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    fn judge_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        self.protocol.judge_trailers(trailers, options)
    }
}

impl<K: Protocol, B: Budget> Client for HedgeSettings<K, B> {
    fn budget(&self) -> &dyn Budget {
        &self.budget
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    fn judge_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        self.protocol.judge_trailers(trailers, options)
    }
}

impl Committed {
    /// Ready when the deadline has passed.
    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(cx),
            // Without a runtime nothing can wait.
            None if !clock::has_timer() => Poll::Pending,
            None => self.sleep.insert(Box::pin(sleep_until(deadline))).as_mut().poll(cx),
        }
    }

    /// Whether the deadline has passed.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// The deadline has ended the answer. No server has said anything that the budget should hear.
    pub(super) fn late(self) {
        self.tell(Code::DeadlineExceeded);
    }

    /// The answer has ended with these trailers.
    #[inline]
    pub(super) fn ended(self, trailers: &HeaderMap) {
        match trailers.get(GRPC_STATUS) {
            Some(status) if status == "0" => self.succeeded(),
            Some(status) => self.broken(Code::from_bytes(status.as_bytes()), trailers, true),
            None => self.broken_by(Code::Unknown, true),
        }
    }

    /// The answer has broken off with this error.
    pub(super) fn failed(self, error: &(dyn Error + 'static)) {
        self.broken_by(super::errors::code_of_error(error), false);
    }

    /// It is credited, if that would change anything.
    fn succeeded(self) {
        if self.account.has_paid() || !self.client.budget().is_full() {
            self.account.settle(CallEnd::Succeeded, &self.destination, self.client.budget());
        }
    }

    #[cold]
    fn broken_by(self, code: Code, responded: bool) {
        let status = HeaderMap::from_iter([(GRPC_STATUS, code.number().into())]);
        self.broken(code, &status, responded);
    }

    /// A failure that comes too late for a retry. If it is one that is retried, it is one of those
    /// that budgets count (rule THR-3); what the server asks for beside it is not looked at (PB-11). Only
    /// what the server has `responded` earns credit.
    #[cold]
    fn broken(self, code: Code, trailers: &HeaderMap, responded: bool) {
        self.tell(code);
        let (budget, destination) = (self.client.budget(), self.destination.as_str());
        let end = match self.client.judge_trailers(trailers, self.options.as_ref()) {
            Verdict::Transient(failure) | Verdict::Unprocessed(failure) => {
                if self.retryable {
                    budget.on_failure(destination, &failure, clock::since_epoch(Instant::now()));
                }
                CallEnd::Failed
            }
            _ if !responded => CallEnd::Failed,
            Verdict::Success => CallEnd::Succeeded,
            _ => CallEnd::Permanent(ServerHint::None),
        };
        self.account.settle(end, destination, budget);
    }

    fn tell(&self, code: Code) {
        if let Some(observer) = self.client.observer() {
            let event = Event::BrokeOff { attempts: self.attempts, code: code.number() };
            observer.on_event(&self.destination, &event);
        }
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
