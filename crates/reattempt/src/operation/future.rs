//! The future of an asynchronous operation.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use reattempt_core::{Budget, Classification, Schedule, StopReason};
use tokio::task::coop::poll_proceed;

use super::timer::{Timer, TokioTimer};
use super::tries::Tries;
use super::{RetryError, Retrying};
use crate::call::progress::Granted;

pin_project! {
    /// The future of a retried operation, created when [`retry`](crate::retry()) is awaited.
    ///
    /// If the future is polled again after its end, it stays pending, like every future of this crate.
    ///
    /// # Cancel safety
    /// Dropping the future drops the attempt in flight or the wait, and returns an unspent token to the budget.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryingFuture<F, Fut, E, Backoff: Schedule, B, J, N, Clock: Timer = TokioTimer> {
        // `None` once it has ended.
        running: Option<Running<F, Backoff, B, J, N, Clock>>,
        #[pin]
        attempt: Option<Fut>,
        // `None` if an attempt is due or in flight.
        wait: Option<Wait<E, Clock::Sleep>>,
    }
}

/// The operation, and the state of its attempts.
struct Running<F, Backoff: Schedule, B, J, N, Clock> {
    operation: F,
    tries: Tries<Backoff, B, J, N, Clock>,
}

/// A wait before the next attempt. Its content is boxed, because few operations ever wait.
enum Wait<E, Sleep> {
    Delay(Pin<Box<Sleep>>),
    /// The budget has yet to confirm the retry after this error.
    Confirmation(Box<(E, Granted)>),
}

/// The error of an attempt, and the retry that follows or the reason why there is none.
type Decided<E> = (E, Result<Granted, StopReason>);

impl<E, Sleep: Future> Wait<E, Sleep> {
    /// Polls a wait until it ends. Returns the decision, if the wait was for the budget's confirmation.
    // Not inlined, because it would cost operations that never wait 17 instructions.
    #[inline(never)]
    fn poll_end<Backoff: Schedule, B, J, N, Clock: Timer>(
        this: &mut Option<Self>,
        tries: &mut Tries<Backoff, B, J, N, Clock>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Decided<E>>> {
        let longer = match this.take() {
            None => return Poll::Ready(None),
            Some(Wait::Delay(mut sleep)) => match sleep.as_mut().poll(cx) {
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => Wait::Delay(sleep),
            },
            Some(Wait::Confirmation(retry)) => match tries.poll_confirmed(cx) {
                Poll::Ready(confirmed) => {
                    let (error, granted) = *retry;
                    let in_time = confirmed.and_then(|()| tries.check_in_time());
                    return Poll::Ready(Some((error, in_time.map(|()| granted))));
                }
                Poll::Pending => Wait::Confirmation(retry),
            },
        };
        *this = Some(longer);
        Poll::Pending
    }
}

impl<F, Fut, T, E, Backoff, B, J, N, Clock> IntoFuture for Retrying<F, E, Backoff, B, J, N, Clock>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    Backoff: Schedule,
    B: Budget,
    J: Fn(&E) -> Classification,
    N: FnMut(&E, Duration),
    Clock: Timer,
{
    type Output = Result<T, RetryError<E>>;
    type IntoFuture = RetryingFuture<F, Fut, E, Backoff, B, J, N, Clock>;

    fn into_future(self) -> Self::IntoFuture {
        let (operation, tries) = self.begin(false);
        RetryingFuture { running: Some(Running { operation, tries }), attempt: None, wait: None }
    }
}

impl<F, Fut, T, E, Backoff, B, J, N, Clock> Future for RetryingFuture<F, Fut, E, Backoff, B, J, N, Clock>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    Backoff: Schedule,
    B: Budget,
    J: Fn(&E) -> Classification,
    N: FnMut(&E, Duration),
    Clock: Timer,
{
    type Output = Result<T, RetryError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let Some(Running { operation, tries }) = this.running else { return Poll::Pending };
            let decided = match this.wait {
                None => None,
                Some(_) => ready!(Wait::poll_end(this.wait, tries, cx)),
            };
            let (error, granted) = if let Some(decided) = decided {
                decided
            } else {
                if this.attempt.is_none() {
                    // An operation that always fails at once must not starve other tasks.
                    if tries.number() > 0 {
                        ready!(poll_proceed(cx)).made_progress();
                    }
                    tries.attempt();
                    this.attempt.set(Some(operation()));
                }
                let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
                let Poll::Ready(result) = attempt.poll(cx) else {
                    tries.takes_time();
                    return Poll::Pending;
                };
                // Dropped before anything else happens, because the next attempt may need its resources.
                this.attempt.set(None);
                let error = match result {
                    Ok(value) => {
                        tries.succeed();
                        *this.running = None;
                        return Poll::Ready(Ok(value));
                    }
                    Err(error) => error,
                };
                match tries.fail(&error) {
                    Ok(granted) => match tries.poll_confirmed(cx) {
                        Poll::Ready(confirmed) => (error, confirmed.map(|()| granted)),
                        Poll::Pending => {
                            *this.wait = Some(Wait::Confirmation(Box::new((error, granted))));
                            return Poll::Pending;
                        }
                    },
                    Err(stop) => (error, Err(stop)),
                }
            };
            match granted {
                Ok(granted) => {
                    *this.wait = tries.resume(&error, &granted).map(|sleep| Wait::Delay(Box::pin(sleep)));
                }
                Err(stop) => {
                    let error = tries.give_up(error, stop);
                    *this.running = None;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl<F, Fut, E, Backoff: Schedule, B, J, N, Clock: Timer> fmt::Debug
    for RetryingFuture<F, Fut, E, Backoff, B, J, N, Clock>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingFuture")
            .field("attempt", &self.running.as_ref().map(|running| running.tries.number()))
            .field("under_way", &self.attempt.is_some())
            .finish_non_exhaustive()
    }
}
