//! The future of a call: it waits for its turn, sends, and reports to the pace how the call ended.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use super::queue::{Place, Step};
use super::settings::{Sent, Settings};
use crate::call::clock;
use crate::call::deadline::Deadline;
use crate::call::pace_refused::PaceRefused;
use crate::error_mode::ErrorMode;
use crate::protocol::ClassifyOutcome;

pin_project! {
    /// The future of a call that is paced.
    ///
    /// # Cancel safety
    /// If it is dropped while it waits, its turn returns to the calls behind it and the inner service is released.
    /// Nothing was sent or counted. If it is dropped later, the call is cancelled and does not move the interval.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, K, M>
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
            deadline: Option<Deadline>,
            // Taken at the first poll.
            place: Option<Place>,
            // The service is the one that was readied.
            call: Option<(S, Req)>,
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

impl<S, Req, K, M> ResponseFuture<S, Req, K, M>
where
    S: Service<Req>,
{
    /// A call that need not wait.
    #[inline]
    pub(super) fn sent(settings: Arc<Settings<K>>, sent: Sent, attempt: S::Future) -> Self {
        Self { settings, sent, state: State::Sent { attempt }, mode: PhantomData }
    }

    /// A call that `readied` is to send when its turn has come.
    pub(super) fn waiting(
        settings: Arc<Settings<K>>,
        deadline: Option<Deadline>,
        readied: S,
        request: Req,
    ) -> Self {
        let call = Some((readied, request));
        let state = State::Waiting { deadline, place: None, call, sleep: None };
        Self { settings, sent: Sent::default(), state, mode: PhantomData }
    }
}

impl<S, Req, K, M> Future for ResponseFuture<S, Req, K, M>
where
    S: Service<Req>,
    K: ClassifyOutcome<S::Response>,
    M: ErrorMode<S::Error>,
{
    type Output = Result<K::Answer, M::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProjection::Waiting { deadline, place, call, mut sleep } => {
                    let now = Instant::now();
                    match this.settings.turn(
                        place,
                        *deadline,
                        can_refuse::<M, _>(),
                        now,
                        cx.waker(),
                    ) {
                        Step::Waiting(due) => {
                            let until =
                                clock::later(now, due.saturating_sub(clock::since_epoch(now)));
                            sleep.set(Some(sleep_until(until)));
                            if let Some(sleep) = sleep.as_pin_mut() {
                                ready!(sleep.poll(cx));
                            }
                            continue;
                        }
                        Step::Admitted(waited) => {
                            if !waited.is_zero() {
                                this.settings.pace.slept(waited);
                            }
                        }
                        Step::Refused(refused) => {
                            if let Some(answer) =
                                refusal::<K, M, _, _>(&this.settings.protocol, refused)
                            {
                                this.state.set(State::Over);
                                return Poll::Ready(answer);
                            }
                        }
                    }
                    let Some((mut service, request)) = call.take() else { return Poll::Pending };
                    *this.sent = this.settings.on_send();
                    let attempt = service.call(request);
                    this.state.set(State::Sent { attempt });
                }
                StateProjection::Sent { attempt } => {
                    let result = ready!(attempt.poll(cx)).map_err(M::own);
                    this.state.set(State::Over);
                    this.settings.record(*this.sent, result.as_ref().map_err(M::view));
                    return Poll::Ready(result.map(|response| K::answer(response, true)));
                }
                StateProjection::Over => return Poll::Pending,
            }
        }
    }
}

/// Returns `true` if a call can be turned away in the types of its layer.
pub(super) const fn can_refuse<M: ErrorMode<E>, E>() -> bool {
    M::INTERRUPTS || M::ANSWERS
}

/// Makes the outcome of a call that was turned away.
fn refusal<K, M, T, E>(protocol: &K, refused: PaceRefused) -> Option<Result<K::Answer, M::Error>>
where
    K: ClassifyOutcome<T>,
    M: ErrorMode<E>,
{
    match M::ANSWERS {
        true => protocol.not_admitted(refused).map(Ok),
        false => M::refused(refused).map(Err),
    }
}

impl<S, Req, K, M> fmt::Debug for ResponseFuture<S, Req, K, M>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = matches!(self.state, State::Waiting { .. });
        f.debug_struct("ResponseFuture").field("waiting", &waiting).finish_non_exhaustive()
    }
}
