//! The future of a call: it carries out what the engine decides.
//!
//! Two states only: an attempt is under way, or the call is between attempts. What happens to the
//! call itself is in [`Call`].

use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_core::{Budget, Schedule, StopReason};
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;
use tower_service::Service;

use super::call::Call;
use crate::call::deadline::PASSED;
use crate::error_mode::ErrorMode;
use crate::protocol::{ClassifyOutcome, Replay, unanswered};

pin_project! {
    /// The future of a call that is retried.
    ///
    /// If it is polled again after its end, it stays pending and does nothing.
    ///
    /// # Cancel safety
    /// Dropping it cancels the attempt under way, the wait and the hook. Tokens that were taken for
    /// a retry not yet sent return to the budget.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, K, D, B, M>
    where
        K: Replay<Req>,
        K: ClassifyOutcome<S::Response>,
        S: Service<K::Attempt>,
        D: Schedule,
        M: ErrorMode<S::Error>,
    {
        // None if the attempt's outcome is passed on.
        call: Option<Call<S, Req, K, D, B, M>>,
        #[pin]
        attempt: Option<S::Future>,
        #[pin]
        timer: M::Timer,
    }
}

impl<S, Req, K, D, B, M> ResponseFuture<S, Req, K, D, B, M>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    /// Creates the future of `call`; without one the attempt's outcome is passed on.
    #[inline]
    pub(super) fn new(attempt: Option<S::Future>, call: Option<Call<S, Req, K, D, B, M>>) -> Self {
        Self { call, attempt, timer: M::Timer::default() }
    }
}

impl<S, Req, K, D, B, M> Future for ResponseFuture<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    type Output = Result<K::Answer, M::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(call) = this.call else {
            let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
            let result = ready!(attempt.poll(cx));
            this.attempt.set(None);
            return Poll::Ready(match result {
                Ok(response) => Ok(K::answer(response, false)),
                Err(error) => unanswered::<K, _, _, M>(M::own(error), None),
            });
        };
        loop {
            if let Some(attempt) = this.attempt.as_mut().as_pin_mut() {
                let mut interrupted = None;
                let result = match attempt.poll(cx) {
                    Poll::Ready(result) => result.map_err(M::own),
                    Poll::Pending => {
                        call.takes_time(Instant::now);
                        let due = |now| call.interrupt_due(now);
                        let (interrupt, since) =
                            ready!(M::poll_interrupt(this.timer.as_mut(), cx, due));
                        let (error, limit) = call.interrupted(interrupt, since);
                        let Some(error) = error else {
                            // A protocol without an answer for it lets the attempt go on.
                            let late = call.end_late(PASSED, StopReason::DeadlineExceeded);
                            let Some(late) = late else { return Poll::Pending };
                            this.attempt.set(None);
                            M::reset(this.timer.as_mut());
                            return Poll::Ready(late);
                        };
                        interrupted = Some(limit);
                        Err(error)
                    }
                };
                // Gone before anything else happens: an interrupted attempt is cancelled by this.
                this.attempt.set(None);
                let since = M::since(&this.timer);
                M::reset(this.timer.as_mut());
                if let Some(ended) = call.overdue(&result, since) {
                    return Poll::Ready(ended);
                }
                match call.settle(&result, interrupted) {
                    ControlFlow::Break(stop) => {
                        return Poll::Ready(call.end(result, stop));
                    }
                    ControlFlow::Continue((classification, failure)) => {
                        let settled = call.failed(result, classification, failure);
                        if let ControlFlow::Break(result) = settled {
                            return Poll::Ready(result);
                        }
                    }
                }
            }
            // A service that is always ready and always refuses must not keep others from their turn.
            let turn = ready!(poll_proceed(cx));
            let between = ready!(call.poll_between(cx, this.timer.as_mut()));
            turn.made_progress();
            match between {
                ControlFlow::Break(result) => return Poll::Ready(result),
                ControlFlow::Continue(attempt) => this.attempt.set(Some(attempt)),
            }
        }
    }
}

impl<S, Req, K, D, B, M> fmt::Debug for ResponseFuture<S, Req, K, D, B, M>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("attempt", &self.call.as_ref().map_or(1, Call::number))
            .field("under_way", &self.attempt.is_some())
            .finish_non_exhaustive()
    }
}
