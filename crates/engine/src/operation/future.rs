//! The future of an asynchronous operation.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_core::{Budget, Schedule, StopReason};

use super::rules::Rules;
use super::timer::{Timer, TokioTimer};
use super::tries::{FailedResult, Tries};
use super::{RetryError, Retrying};
use crate::call::progress::Granted;

/// The maximum number of attempts that complete in one poll, before other tasks may run.
const ATTEMPTS_AT_ONCE: usize = 128;

pin_project! {
    /// The future of a retried operation, created when [`retry`](crate::retry()) is awaited.
    ///
    /// If it is polled again after completion, it stays pending, like every future in this crate.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the attempt in flight or the wait, and returns an unspent token to the budget.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryingFuture<F, Fut, T, E, Backoff: Schedule, B, R, Clock: Timer = TokioTimer> {
        // `None` once the future has completed.
        running: Option<RunningOperation<F, Backoff, B, R, Clock>>,
        #[pin]
        attempt: Option<Fut>,
        // `None` while an attempt is due or in flight. Boxed, because few operations ever wait.
        wait: Option<Box<Wait<T, E, Clock::Sleep>>>,
    }
}

/// The operation, and the state of its attempts.
struct RunningOperation<F, Backoff: Schedule, B, R, Clock> {
    operation: F,
    tries: Tries<Backoff, B, R, Clock>,
}

/// The wait before a granted retry.
struct Wait<T, E, Sleep> {
    /// The last attempt's result, which is returned if the retry is withdrawn.
    failed: FailedResult<T, E>,
    granted: Granted,
    /// `None` until the budget has confirmed the retry.
    delay: Option<Pin<Box<Sleep>>>,
}

impl<T, E, Sleep: Future> Wait<T, E, Sleep> {
    /// Polls until the next attempt is due, or the retry is withdrawn.
    // Not inlined, because that would cost every operation 17 instructions, even if it never waits.
    #[inline(never)]
    fn poll_due<Backoff, B, R, Clock>(
        &mut self,
        tries: &mut Tries<Backoff, B, R, Clock>,
        cx: &mut Context<'_>,
        is_later: bool,
    ) -> Poll<Result<(), StopReason>>
    where
        Backoff: Schedule,
        R: Rules<T, E>,
        Clock: Timer<Sleep = Sleep>,
    {
        if self.delay.is_none() {
            ready!(tries.poll_confirmed(cx))?;
            if is_later {
                tries.check_in_time()?;
            }
            self.delay = tries.resume(&self.failed, &self.granted).map(Box::pin);
        }
        if let Some(delay) = &mut self.delay {
            drop(ready!(delay.as_mut().poll(cx)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<F, Fut, T, E, Backoff, B, R, Clock> IntoFuture for Retrying<F, T, E, Backoff, B, R, Clock>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    Backoff: Schedule,
    B: Budget,
    R: Rules<T, E>,
    Clock: Timer,
{
    type Output = Result<T, RetryError<E>>;
    type IntoFuture = RetryingFuture<F, Fut, T, E, Backoff, B, R, Clock>;

    fn into_future(self) -> Self::IntoFuture {
        let (operation, tries) = self.begin(false);
        RetryingFuture { running: Some(RunningOperation { operation, tries }), attempt: None, wait: None }
    }
}

impl<F, Fut, T, E, Backoff, B, R, Clock> Future for RetryingFuture<F, Fut, T, E, Backoff, B, R, Clock>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    Backoff: Schedule,
    B: Budget,
    R: Rules<T, E>,
    Clock: Timer,
{
    type Output = Result<T, RetryError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        for _ in 0..ATTEMPTS_AT_ONCE {
            let Some(RunningOperation { operation, tries }) = this.running else { return Poll::Pending };
            let (failed, due) = if let Some(mut wait) = this.wait.take() {
                let Poll::Ready(due) = wait.poll_due(tries, cx, true) else {
                    *this.wait = Some(wait);
                    return Poll::Pending;
                };
                // A confirmation or a timer can be late, for example after the computer was suspended.
                (wait.failed, due.and_then(|()| tries.check_in_time()))
            } else {
                if this.attempt.is_none() {
                    tries.attempt();
                    this.attempt.set(Some(operation()));
                }
                let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
                let Poll::Ready(result) = attempt.poll(cx) else {
                    tries.takes_time();
                    return Poll::Pending;
                };
                // Dropped first, because the next attempt may need its resources.
                this.attempt.set(None);
                let failed = match result {
                    Ok(value) => match tries.refuses(&value) {
                        None => {
                            tries.succeed();
                            *this.running = None;
                            return Poll::Ready(Ok(value));
                        }
                        Some(judged) => FailedResult::Value(value, judged),
                    },
                    Err(error) => FailedResult::Error(error),
                };
                match tries.fail(&failed) {
                    Ok(granted) => {
                        let mut wait = Wait { failed, granted, delay: None };
                        let Poll::Ready(due) = wait.poll_due(tries, cx, false) else {
                            *this.wait = Some(Box::new(wait));
                            return Poll::Pending;
                        };
                        (wait.failed, due)
                    }
                    Err(stop) => (failed, Err(stop)),
                }
            };
            if let Err(stop) = due {
                let result = tries.give_up(failed, stop);
                *this.running = None;
                return Poll::Ready(result);
            }
        }
        // An operation that always fails immediately must not starve other tasks.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<F, Fut, T, E, Backoff: Schedule, B, R, Clock: Timer> fmt::Debug
    for RetryingFuture<F, Fut, T, E, Backoff, B, R, Clock>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingFuture")
            .field("attempt", &self.running.as_ref().map(|running| running.tries.number()))
            .field("under_way", &self.attempt.is_some())
            .finish_non_exhaustive()
    }
}
