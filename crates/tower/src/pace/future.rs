//! The future of a call: it waits, sends, and tells the pace how the call ended.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use super::settings::{Sent, Settings};
use crate::clock;
use crate::error_mode::ErrorMode;
use crate::protocol::Judge;

pin_project! {
    /// A call that is paced.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it lets go of the inner service, and nothing was sent or counted.
    /// Dropped afterwards, it cancels the call, whose outcome nobody then knows: it moves nothing.
    #[must_use = "futures do nothing unless polled"]
    pub struct PaceFuture<S, Req, K, M>
    where
        S: Service<Req>,
    {
        settings: Arc<Settings<K>>,
        sent: Sent,
        #[pin]
        state: State<S, Req, S::Future>,
        mode: PhantomData<fn() -> M>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, Req, F> {
        Waiting {
            interval: Duration,
            // The service is the one that was readied.
            call: Option<(S, Req)>,
            // Made at the first poll.
            #[pin]
            sleep: Option<Sleep>,
        },
        Sent {
            #[pin]
            attempt: F,
        },
        Over,
    }
}

impl<S, Req, K, M> PaceFuture<S, Req, K, M>
where
    S: Service<Req>,
{
    /// A call that need not wait.
    #[inline]
    pub(super) fn sent(settings: Arc<Settings<K>>, sent: Sent, attempt: S::Future) -> Self {
        Self { settings, sent, state: State::Sent { attempt }, mode: PhantomData }
    }

    /// A call that `readied` is to send after `interval`.
    pub(super) fn waiting(
        settings: Arc<Settings<K>>,
        interval: Duration,
        readied: S,
        request: Req,
    ) -> Self {
        let state = State::Waiting { interval, call: Some((readied, request)), sleep: None };
        Self { settings, sent: Sent::default(), state, mode: PhantomData }
    }
}

impl<S, Req, K, M> Future for PaceFuture<S, Req, K, M>
where
    S: Service<Req>,
    K: Judge<S::Response>,
    M: ErrorMode<S::Error>,
{
    type Output = Result<S::Response, M::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProjection::Waiting { interval, call, mut sleep } => {
                    if sleep.is_none() && clock::has_timer() {
                        let until = clock::later(Instant::now(), *interval);
                        sleep.set(Some(sleep_until(until)));
                    }
                    if let Some(sleep) = sleep.as_mut().as_pin_mut() {
                        ready!(sleep.poll(cx));
                        this.settings.pace.slept(*interval);
                    }
                    let Some((mut service, request)) = call.take() else { return Poll::Pending };
                    *this.sent = this.settings.admit();
                    let attempt = service.call(request);
                    this.state.set(State::Sent { attempt });
                }
                StateProjection::Sent { attempt } => {
                    let result = ready!(attempt.poll(cx)).map_err(M::own);
                    this.state.set(State::Over);
                    this.settings.tell(*this.sent, result.as_ref().map_err(M::view));
                    return Poll::Ready(result);
                }
                StateProjection::Over => return Poll::Pending,
            }
        }
    }
}

impl<S, Req, K, M> fmt::Debug for PaceFuture<S, Req, K, M>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = match &self.state {
            State::Waiting { interval, .. } => Some(interval),
            State::Sent { .. } | State::Over => None,
        };
        f.debug_struct("PaceFuture").field("waiting", &waiting).finish_non_exhaustive()
    }
}
