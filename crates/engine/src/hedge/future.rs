//! The future of a hedged call, which polls the attempts and the timers.

use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_core::Budget;
use tokio::time::Sleep;
use tower_service::Service;

use super::call::{HedgeDriver, HedgedOutcome, Hedging, Over, OverOf, dismiss};
use crate::call::clock;
use crate::call::clock::{Instant, sleep_until};
use crate::error_mode::{AttemptTimer, ErrorMode};
use crate::protocol::{ClassifyOutcome, Replay, Types, unanswered};

type CallOf<S, Req, P, B, Mode> = HedgeDriver<Types<S, Req, P, (), B, Mode>>;
type End<S, Req, P, B, Mode> = OverOf<Types<S, Req, P, (), B, Mode>>;

pin_project! {
    /// The future of a call that is hedged.
    ///
    /// The future contains the first attempt. If the attempt's first poll returns `Pending`, a timer is created. The
    /// first hedge allocates the rest of the state.
    ///
    /// # Cancel safety
    /// Dropping the future cancels all attempts and the wait. The token of a granted hedge that was not sent is
    /// returned to the budget.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, P, B, Mode>
    where
        P: Replay<Req>,
        P: ClassifyOutcome<S::Response>,
        S: Service<P::Attempt>,
        S: Clone,
        B: Budget,
        Mode: ErrorMode<S::Error>,
    {
        // `None` if the attempt's outcome is returned unchanged.
        call: Option<CallOf<S, Req, P, B, Mode>>,
        #[pin]
        first: Option<S::Future>,
        // The time at which `sleep` ends.
        sleeping_until: Option<Instant>,
        #[pin]
        sleep: Option<Sleep>,
        #[pin]
        limit: Mode::Timer,
        // The result of a call that is not sent because its deadline has passed.
        late: Option<Box<Result<P::Answer, Mode::Error>>>,
    }
}

impl<S, Req, P, B, Mode> ResponseFuture<S, Req, P, B, Mode>
where
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<P::Attempt> + Clone,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    /// Creates the future of a call with one attempt, whose outcome is returned unchanged.
    pub(super) fn passing(attempt: S::Future) -> Self {
        Self::of(None, Some(attempt))
    }

    /// Creates the future of a call that is not sent, because its deadline has passed.
    #[cold]
    pub(super) fn late(answer: Result<P::Answer, Mode::Error>) -> Self {
        Self { late: Some(Box::new(answer)), ..Self::of(None, None) }
    }

    /// Creates the future of a call with its first attempt.
    pub(super) fn new(call: CallOf<S, Req, P, B, Mode>, attempt: S::Future) -> Self {
        Self::of(Some(call), Some(attempt))
    }

    fn of(call: Option<CallOf<S, Req, P, B, Mode>>, first: Option<S::Future>) -> Self {
        let limit = Mode::Timer::default();
        Self { call, first, sleeping_until: None, sleep: None, limit, late: None }
    }

    /// Polls until the call ends.
    fn poll_over(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End<S, Req, P, B, Mode>> {
        let mut this = self.project();
        loop {
            // Checked first, so that errors of attempts whose body was cut off are ignored.
            if let Some(call) = this.call
                && let Some(over) = call.drop_cut_off(this.first.as_mut(), cx)
            {
                return Poll::Ready(over);
            }
            if let Some(call) = this.call
                && let Some((number, result)) = call.poll_replacing(cx)
            {
                match call.ended(number, result, true, cx) {
                    ControlFlow::Break(over) => return Poll::Ready(over),
                    ControlFlow::Continue(()) => continue,
                }
            }
            let mut ended = poll_first(this.first.as_mut(), cx);
            let Some(call) = this.call else {
                let (number, result) = ready!(ended);
                let stop = reattempt_core::StopReason::Forbidden;
                let outcome = HedgedOutcome::Of(number, result.map_err(Mode::own));
                return Poll::Ready(Over { outcome, stop });
            };
            if ended.is_pending() {
                call.takes_time();
                ended = call.poll_hedges(cx);
            }
            let progress = ended.is_ready();
            if let Poll::Ready((number, result)) = ended
                && let ControlFlow::Break(over) = call.ended(number, result.map_err(Mode::own), false, cx)
            {
                return Poll::Ready(over);
            }
            // Hedges are polled one at a time, so that each failure advances one hedge.
            let until = match call.poll_hedge(cx) {
                ControlFlow::Continue(Hedging::Sent) => continue,
                ControlFlow::Continue(Hedging::Until(until)) => until,
                ControlFlow::Break(over) => return Poll::Ready(over),
            };
            if progress {
                continue;
            }
            if let Some(until) = until {
                if *this.sleeping_until != Some(until) && clock::has_timer() {
                    *this.sleeping_until = Some(until);
                    this.sleep.set(Some(sleep_until(until)));
                }
                if *this.sleeping_until == Some(until)
                    && let Some(sleep) = this.sleep.as_mut().as_pin_mut()
                    && sleep.poll(cx).is_ready()
                {
                    *this.sleeping_until = None;
                    if let Some(over) = call.time_passed() {
                        return Poll::Ready(over);
                    }
                    continue;
                }
            }
            if let Some(over) = call.release(cx) {
                return Poll::Ready(over);
            }
            let due = call.interrupt_due();
            let Some(limit) = Mode::timer(this.limit.as_mut()) else { return Poll::Pending };
            let since = ready!(limit.poll(cx, |_| due));
            // If there is neither an error nor a response to return at the deadline, the attempts continue. They were
            // polled above.
            let over = call.interrupted(since);
            return over.map_or(Poll::Pending, Poll::Ready);
        }
    }
}

impl<S, Req, P, B, Mode> Future for ResponseFuture<S, Req, P, B, Mode>
where
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<P::Attempt> + Clone,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Output = Result<P::Answer, Mode::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(late) = self.as_mut().project().late.take() {
            return Poll::Ready(*late);
        }
        let over = ready!(self.as_mut().poll_over(cx));
        let mut this = self.project();
        let first = this.first.is_some();
        // The losing attempts are dropped before the winner's outcome is returned.
        if first {
            let lingers = this.call.as_ref().is_none_or(HedgeDriver::lingers);
            dismiss(lingers, || this.first.set(None));
        }
        this.sleep.set(None);
        Mode::timer(this.limit.as_mut()).map(AttemptTimer::reset);
        let result = match this.call {
            Some(call) => call.end_call(over, first, cx),
            None => match over.outcome {
                HedgedOutcome::Of(_, Ok(response)) => Ok(P::answer(response, false)),
                HedgedOutcome::Of(_, Err(error)) => unanswered::<P, _, _, Mode>(error, None),
                HedgedOutcome::Made(made) => made,
            },
        };
        // If the future is polled again after completion, it stays pending.
        *this.call = None;
        Poll::Ready(result)
    }
}

/// Polls the first attempt, and drops it once it has completed.
fn poll_first<F: Future>(mut first: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<(u32, F::Output)> {
    let Some(attempt) = first.as_mut().as_pin_mut() else { return Poll::Pending };
    let output = ready!(attempt.poll(cx));
    first.set(None);
    Poll::Ready((1, output))
}

impl<S, Req, P, B, Mode> fmt::Debug for ResponseFuture<S, Req, P, B, Mode>
where
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<P::Attempt> + Clone,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("first_under_way", &self.first.is_some())
            .field("sleeping_until", &self.sleeping_until)
            .finish_non_exhaustive()
    }
}
