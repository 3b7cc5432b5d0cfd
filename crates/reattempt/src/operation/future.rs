//! The future of an asynchronous operation.

use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use reattempt_core::{Budget, Classification, Schedule};
use tokio::time::{Sleep, sleep_until};

use super::tries::{GrantedRetry, Tries};
use super::{RetryError, Retrying};
use tokio::task::coop::poll_proceed;

pin_project! {
    /// The future of a retried operation, created when [`retry`](crate::retry()) is awaited.
    ///
    /// If it is polled again after its end, it stays pending and does nothing, like every future of this crate.
    ///
    /// # Cancel safety
    /// Dropping it drops the attempt in flight or the wait, and returns an unspent token to the budget.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryingFuture<F, Fut, D, B, J, N>
    where
        Fut: Future,
        D: Schedule,
    {
        // `None` once it has ended.
        running: Option<Running<F, D, B, J, N>>,
        #[pin]
        attempt: Option<Fut>,
        // Boxed, because few operations ever wait.
        sleep: Option<Pin<Box<Sleep>>>,
        // A retry that the budget has not confirmed yet. Boxed, because few budgets are remote.
        confirming: Option<Box<HeldOf<Fut>>>,
    }
}

/// The result of the last attempt, held until its retry is confirmed.
type HeldOf<Fut> = GrantedRetry<<Fut as Future>::Output>;

/// The operation and the course of its attempts.
struct Running<F, D: Schedule, B, J, N> {
    operation: F,
    tries: Tries<D, B, J, N>,
}

impl<F, Fut, T, E, D, B, J, N> IntoFuture for Retrying<F, E, D, B, J, N>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    D: Schedule,
    B: Budget,
    J: Fn(&E) -> Classification,
    N: FnMut(&E, Duration),
{
    type Output = Result<T, RetryError<E>>;
    type IntoFuture = RetryingFuture<F, Fut, D, B, J, N>;

    fn into_future(self) -> Self::IntoFuture {
        let (operation, tries) = self.begin(false);
        let running = Some(Running { operation, tries });
        RetryingFuture { running, attempt: None, sleep: None, confirming: None }
    }
}

impl<F, Fut, T, E, D, B, J, N> Future for RetryingFuture<F, Fut, D, B, J, N>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    D: Schedule,
    B: Budget,
    J: Fn(&E) -> Classification,
    N: FnMut(&E, Duration),
{
    type Output = Result<T, RetryError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let Some(Running { operation, tries }) = this.running else { return Poll::Pending };
            let next = if this.confirming.is_some() {
                let confirmed = ready!(tries.poll_confirmed(cx)).and_then(|()| tries.check_in_time());
                let Some(held) = this.confirming.take() else { return Poll::Pending };
                match held.error {
                    Err(error) => {
                        let retry = GrantedRetry { error, granted: held.granted };
                        tries.resume(retry, confirmed).map_break(Err)
                    }
                    // Only an error is held.
                    Ok(value) => ControlFlow::Break(Ok(value)),
                }
            } else {
                if let Some(sleep) = this.sleep {
                    ready!(sleep.as_mut().poll(cx));
                    *this.sleep = None;
                }
                if this.attempt.is_none() {
                    // An operation that always fails at once must not starve other tasks.
                    if tries.number() > 0 {
                        ready!(poll_proceed(cx)).made_progress();
                    }
                    tries.attempt();
                    this.attempt.set(Some(operation()));
                }
                let Some(attempt) = this.attempt.as_mut().as_pin_mut() else {
                    return Poll::Pending;
                };
                let Poll::Ready(result) = attempt.poll(cx) else {
                    tries.takes_time();
                    return Poll::Pending;
                };
                // Dropped before anything else happens, because the next attempt may need its resources.
                this.attempt.set(None);
                match tries.settle(result) {
                    ControlFlow::Break(result) => ControlFlow::Break(result),
                    ControlFlow::Continue(retry) => match tries.poll_confirmed(cx) {
                        Poll::Ready(confirmed) => tries.resume(retry, confirmed).map_break(Err),
                        Poll::Pending => {
                            let GrantedRetry { error, granted } = retry;
                            let held = GrantedRetry { error: Err(error), granted };
                            *this.confirming = Some(Box::new(held));
                            return Poll::Pending;
                        }
                    },
                }
            };
            match next {
                ControlFlow::Break(result) => {
                    *this.running = None;
                    return Poll::Ready(result);
                }
                ControlFlow::Continue(due) => {
                    *this.sleep = due.map(|due| Box::pin(sleep_until(due)));
                }
            }
        }
    }
}

impl<F, Fut, D, B, J, N> fmt::Debug for RetryingFuture<F, Fut, D, B, J, N>
where
    Fut: Future,
    D: Schedule,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingFuture")
            .field("attempt", &self.running.as_ref().map(|running| running.tries.number()))
            .field("under_way", &self.attempt.is_some())
            .finish_non_exhaustive()
    }
}
