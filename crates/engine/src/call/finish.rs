//! The end of a call whose response body, and not its head, shows whether the call succeeded.
//!
//! A protocol whose responses can fail after the head stores a [`Finish`] in the caller's response body. When the body
//! ends, it calls one of the methods of the `Finish`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use reattempt_core::{Account, Budget, CallEnd, Evidence, Failure, FailureKind, ServerHint, Verdict};
use tokio::time::Sleep;

use crate::call::clock::{Instant, sleep_until};

use super::clock;
use super::observe::{Event, Observer, notify};
use super::options::CallOptions;

/// The data that is needed to record the end of a call, stored in the response body.
pub struct Finish {
    pub(crate) client: Arc<dyn Client>,
    /// The key in the budget. It is stored separately so that the request head, which may contain credentials, can be
    /// dropped.
    pub(crate) destination: String,
    pub(crate) options: Option<CallOptions>,
    /// `true` if the call could be retried when it started.
    pub(crate) retryable: bool,
    /// The account, which is passed to the budget at the end.
    pub(crate) account: Account,
    /// The number of the last attempt.
    pub(crate) attempts: u32,
    /// The time at which the last attempt was sent, or the maximum if it is unknown.
    pub(crate) sent: Duration,
    pub(crate) deadline: Option<Instant>,
    /// `true` if the response head contained the status, so that nothing is recorded at the end. The deadline still
    /// ends the body.
    pub(crate) has_status: bool,
    /// The deadline's timer, created when the body first returns `Pending`.
    pub(crate) sleep: Option<Pin<Box<Sleep>>>,
}

/// The parts of a policy that are needed at the end of a call, without the policy's type parameters.
pub(crate) trait Client: Send + Sync {
    /// Returns the budget for the client's retries.
    fn budget(&self) -> &dyn Budget;
    /// Returns the observer, if one is set.
    fn observer(&self) -> Option<&dyn Observer>;
    /// Returns the verdict for a response that ended with these trailers.
    fn classify_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict;
}

impl Finish {
    /// Polls until the deadline has passed.
    pub(crate) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        match &mut self.sleep {
            // Timers need a runtime.
            None if !clock::has_timer() => Poll::Pending,
            sleep => {
                let sleep = sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
                clock::poll_interrupt(sleep.as_mut(), cx)
            }
        }
    }

    /// Returns `true` if the deadline has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Credits the budget with a success, if that has an effect.
    #[inline]
    pub(crate) fn succeeded(self) {
        if self.account.has_paid() || !self.client.budget().is_full() {
            self.account.settle(CallEnd::Succeeded, &self.destination, self.client.budget());
        }
    }

    /// Records a failure that is too late to retry, with the code for the observer.
    ///
    /// If its code is retryable, the budget counts it. Its server hint is ignored. If the server did
    /// not send the failure (`responded` is `false`), the call earns no credit.
    // THR-3, PB-11
    #[cold]
    pub(crate) fn broken(self, code: u16, trailers: &HeaderMap, responded: bool) {
        self.notify_broke_off(code);
        let (budget, destination) = (self.client.budget(), self.destination.as_str());
        let end = match self.client.classify_trailers(trailers, self.options.as_ref()) {
            Verdict::Transient(failure) | Verdict::NotProcessed(failure) => {
                let now = Instant::now().since_epoch();
                // A server failure that no server sent is a lost connection, with every other response on it.
                let lost = !responded && failure.kind() == FailureKind::Server;
                let failure = if lost { Failure::new(FailureKind::Network) } else { failure };
                let evidence = Evidence::from(failure).sent_at(self.sent);
                if self.retryable { CallEnd::FailedLate { evidence, now } } else { CallEnd::Failed }
            }
            _ if !responded => CallEnd::Failed,
            Verdict::Success => CallEnd::Succeeded,
            _ => CallEnd::Permanent(ServerHint::None),
        };
        self.account.settle(end, destination, budget);
    }

    /// Notifies the observer that the response failed with this code after its head.
    pub(crate) fn notify_broke_off(&self, code: u16) {
        if let Some(observer) = self.client.observer() {
            let event = Event::BrokeOff { attempts: self.attempts, code };
            notify(observer, &self.destination, &event);
        }
    }
}

impl fmt::Debug for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finish").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
