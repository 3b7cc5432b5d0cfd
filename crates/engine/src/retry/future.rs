//! The future of a call, which carries out the retry decisions.
//!
//! It has two states: an attempt is in flight, or the call is between attempts. [`RetryDriver`] contains the
//! state of the call itself.

use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_core::{Budget, Schedule, StopReason};
use tower_service::Service;

use super::call::RetryDriver;
use crate::call::cut_off::CutOff;
use crate::call::deadline::PASSED;
use crate::call::late_answers::leave;
use crate::error_mode::{AttemptTimer, ErrorMode};
use crate::protocol::{AnswerOf, CallTypes, ClassifyOutcome, Replay, Types, unanswered};

type CallOf<S, Req, P, Backoff, B, Mode> = RetryDriver<Types<S, Req, P, Backoff, B, Mode>>;

pin_project! {
    /// The future of a call that is retried.
    ///
    /// If it is polled again after completion, it stays pending.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the attempt in flight, the delay or the hook. The tokens of a granted retry that was
    /// not sent are returned to the budget.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, P, Backoff, B, Mode>
    where
        P: Replay<Req>,
        P: ClassifyOutcome<S::Response>,
        S: Service<P::Attempt>,
        S: Clone,
        Backoff: Schedule,
        B: Budget,
        Mode: ErrorMode<S::Error>,
    {
        // `None` if the attempt's outcome is returned unchanged.
        call: Option<CallOf<S, Req, P, Backoff, B, Mode>>,
        #[pin]
        attempt: Option<S::Future>,
        #[pin]
        timer: Mode::Timer,
    }
}

impl<S, Req, P, Backoff, B, Mode> Future for ResponseFuture<S, Req, P, Backoff, B, Mode>
where
    S: Service<P::Attempt> + Clone,
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    Backoff: Schedule,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Output = Result<P::Answer, Mode::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(call) = this.call {
            return poll_call(call, this.attempt, this.timer, cx);
        }
        let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
        let result = ready!(attempt.poll(cx));
        this.attempt.set(None);
        Poll::Ready(match result {
            Ok(response) => Ok(P::answer(response, false)),
            Err(error) => unanswered::<P, _, _, Mode>(Mode::own(error), None),
        })
    }
}

impl<S, Req, P, Backoff, B, Mode> ResponseFuture<S, Req, P, Backoff, B, Mode>
where
    S: Service<P::Attempt> + Clone,
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    Backoff: Schedule,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    /// Creates the future of `call`. If `call` is `None`, the attempt's outcome is returned unchanged.
    #[inline]
    pub(super) fn new(attempt: Option<S::Future>, call: Option<CallOf<S, Req, P, Backoff, B, Mode>>) -> Self {
        Self { call, attempt, timer: Mode::Timer::default() }
    }
}

/// Polls a call whose outcome may be retried or recorded.
// Not inlined, so that a call without this state does not reserve stack space for it.
#[inline(never)]
fn poll_call<T: CallTypes<Strategy: Schedule>>(
    call: &mut RetryDriver<T>,
    mut attempt: Pin<&mut Option<T::Future>>,
    mut timer: Pin<&mut T::Timer>,
    cx: &mut Context<'_>,
) -> Poll<AnswerOf<T>> {
    loop {
        if let Some(current) = attempt.as_mut().as_pin_mut() {
            let mut interrupted = None;
            let result = match call.poll_attempt(current, cx) {
                Poll::Ready(result) => result.map_err(T::Mode::own),
                Poll::Pending => {
                    call.stays_in_flight();
                    let due = |now| call.interrupt_due(now);
                    let Some(running) = T::Mode::timer(timer.as_mut()) else { return Poll::Pending };
                    let since = ready!(running.poll(cx, due));
                    let (error, limit) = call.interrupted(since);
                    let Some(error) = error else {
                        // If the protocol has no response for a deadline, the attempt continues.
                        let late = call.end_late(PASSED, StopReason::DeadlineExceeded);
                        let Some(late) = late else { return Poll::Pending };
                        leave(|| attempt.set(None));
                        T::Mode::timer(timer).map(AttemptTimer::reset);
                        return Poll::Ready(late);
                    };
                    interrupted = Some(limit);
                    Err(error)
                }
            };
            // Dropped first, which cancels an interrupted attempt.
            CutOff::drop_attempt(interrupted.map(|limit| call.whose_time(limit)), || attempt.set(None));
            let since = T::Mode::timer(timer.as_mut()).and_then(AttemptTimer::reset);
            if let Some(ended) = call.overdue(&result, since) {
                return Poll::Ready(ended);
            }
            match call.classify_attempt(&result, interrupted) {
                ControlFlow::Break(stop) => {
                    return Poll::Ready(call.end_call(result, stop));
                }
                ControlFlow::Continue(failed) => {
                    if let ControlFlow::Break(result) = call.failed(result, failed, cx) {
                        return Poll::Ready(result);
                    }
                }
            }
        }
        match ready!(call.poll_between(cx, timer.as_mut())) {
            ControlFlow::Break(result) => return Poll::Ready(result),
            ControlFlow::Continue(next) => attempt.set(Some(next)),
        }
    }
}

impl<S, Req, P, Backoff, B, Mode> fmt::Debug for ResponseFuture<S, Req, P, Backoff, B, Mode>
where
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<P::Attempt> + Clone,
    Backoff: Schedule,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("attempt", &self.call.as_ref().map_or(1, |call| call.number))
            .field("under_way", &self.attempt.is_some())
            .finish_non_exhaustive()
    }
}
