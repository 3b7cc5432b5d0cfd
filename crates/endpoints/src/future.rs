//! The future of a call, which waits for the first endpoints if necessary and then sends an attempt.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use reattempt_core::guard::{GuardKind, Reason, Refused};
use reattempt_engine::Deadline;
use reattempt_engine::error::ErrorMode;
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::clock::{Instant, sleep_until};
use reattempt_engine::wall::frame::{Frame, Late};
use reattempt_engine::wall::{Impatient, Testimony, attempt_terms, clock};
use reattempt_guard::contract::GuardOutcome;
use reattempt_guard::handle::now;
use reattempt_guard::wall::Shared;
use reattempt_guard::{OwnEnd, Pass};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Sleep;
use tower_service::Service;

use super::guard::{EMPTY, EndpointGuard, Picked};
use super::race::{Contender, Race};
use super::send::{Admitted, Sent, admit};

/// The maximum wait for the first endpoints. A system's resolver asks again 5 s after its question was lost.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

pin_project! {
    /// The future of a call to one of several endpoints.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the attempt. Nothing is then recorded for the endpoint, unless a layer's time limit
    /// dropped the attempt.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<C, Req, F, E, P, Mode>
    where
        C: Send,
        C: Sync,
        C: 'static,
    {
        #[pin]
        state: State<C, Req, F, E, P, Mode>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<C, Req, F, E, P, Mode>
    where
        C: Send,
        C: Sync,
        C: 'static,
    {
        // Taken when the wait ends.
        Waiting { waiting: Option<Box<Waiting<C, Req, P>>> },
        Racing { race: Box<Race<C, Req, E, P>> },
        Sent { #[pin] attempt: Sent<C, Req, F, P, Mode> },
    }
}

/// A call that waits for the first endpoints.
struct Waiting<C, Req, P> {
    shared: Arc<Shared<EndpointGuard<C>, P>>,
    request: Req,
    frame: Late,
    began: Duration,
    answer: Pin<Box<OwnedNotified>>,
    /// Created at the first poll, if there is a runtime.
    sleep: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

/// The refusal of a call if too many wait for the first endpoints.
const FULL: Refused = Refused::new(GuardKind::ENDPOINTS, Reason::Full);

/// Returns the future of a call that is not sent.
fn not_sent<C, Req, F, P, Mode>(request: &Req, end: OwnEnd) -> Sent<C, Req, F, P, Mode>
where
    C: Send + Sync + 'static,
    P: ReadRequest<Req>,
{
    Testimony::of(P::view(request)).iter().for_each(Testimony::refuse);
    Sent::not_sent(end)
}

/// Picks an endpoint, and sends a request through a clone of its client if that is ready. Otherwise, another endpoint
/// is asked too.
#[inline]
pub(super) fn send_to_client<C, Req, P, Mode>(
    shared: &Arc<Shared<EndpointGuard<C>, P>>,
    request: Req,
) -> ResponseFuture<C, Req, C::Future, C::Error, P, Mode>
where
    C: Service<Req> + Clone + Send + Sync + 'static,
    P: ReadRequest<Req>,
{
    let Admitted { picked: Picked { ticket, pick }, arrival, terms } = match admit(shared, &request) {
        Ok(admitted) => admitted,
        Err(end) => return ResponseFuture::sent(Sent::not_sent(end)),
    };
    let mut client = ticket.service().clone();
    let readiness = client.poll_ready(&mut Context::from_waker(Waker::noop()));
    let pass = Pass::new(Arc::clone(shared), ticket, &arrival, terms);
    let error = match readiness {
        Poll::Ready(Ok(())) => {
            Frame::picked(pick);
            return ResponseFuture::sent(Sent::sent(pass, client.call(request)));
        }
        Poll::Ready(Err(error)) => Some(error),
        Poll::Pending => None,
    };
    let race = Race::begin(shared, request, &arrival, Contender::new(pass, pick, client, error));
    ResponseFuture { state: State::Racing { race: Box::new(race) } }
}

impl<C: Send + Sync + 'static, Req, F, E, P, Mode> ResponseFuture<C, Req, F, E, P, Mode> {
    #[inline]
    fn sent(attempt: Sent<C, Req, F, P, Mode>) -> Self {
        Self { state: State::Sent { attempt } }
    }

    /// Creates the future of a call that waits for the first endpoints. If too many calls do, it is refused.
    #[cold]
    pub(super) fn waiting(shared: Arc<Shared<EndpointGuard<C>, P>>, request: Req) -> Self
    where
        P: ReadRequest<Req>,
    {
        let discovery = &shared.guard.discovery;
        let Some(place) = discovery.place() else {
            return Self::sent(not_sent::<C, _, _, _, _>(&request, OwnEnd::Refused(FULL)));
        };
        let answer = Box::pin(Arc::clone(&discovery.answer).notified_owned());
        let (frame, began, sleep) = (Late::take(), now(), None);
        let waiting = Waiting { shared, request, frame, began, answer, sleep, _place: place };
        Self { state: State::Waiting { waiting: Some(Box::new(waiting)) } }
    }
}

impl<C, Req, P> Waiting<C, Req, P>
where
    C: Send + Sync + 'static,
    P: ReadRequest<Req>,
{
    /// Polls until the set has endpoints. Returns an error if the call has waited too long.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), OwnEnd>> {
        let discovery = &self.shared.guard.discovery;
        if discovery.is_awaited() && self.answer.as_mut().poll(cx).is_ready() && discovery.is_awaited() {
            // The task's runtime has shut down, so the task continues in the current one.
            self.answer = Box::pin(Arc::clone(&discovery.answer).notified_owned());
            discovery.start();
            if self.answer.as_mut().poll(cx).is_ready() && discovery.is_awaited() {
                // The current runtime has shut down too.
                return Poll::Ready(Err(OwnEnd::Refused(EMPTY)));
            }
        }
        if !discovery.is_awaited() {
            return Poll::Ready(Ok(()));
        }
        // A hedge must not wait.
        if !clock::has_timer() || P::view(&self.request).extension::<Impatient>().is_some() {
            return Poll::Ready(Err(OwnEnd::Refused(EMPTY)));
        }
        let (deadline, _) = attempt_terms(&self.shared.protocol, P::view(&self.request));
        let deadline = deadline.map(Deadline::instant).into_iter().chain(self.frame.deadline()).min();
        let due = || Instant::now().later(LONGEST_WAIT);
        let sleep = self.sleep.get_or_insert_with(|| {
            Box::pin(sleep_until(deadline.into_iter().chain([due()]).min().unwrap_or_else(due)))
        });
        sleep.as_mut().poll(cx).map(|()| {
            let is_late = deadline.is_some_and(|deadline| deadline <= Instant::now());
            let waited = now().saturating_sub(self.began);
            Err(if is_late { OwnEnd::Late(waited) } else { OwnEnd::Refused(EMPTY) })
        })
    }
}

impl<C, Req, P, Mode> Future for ResponseFuture<C, Req, C::Future, C::Error, P, Mode>
where
    C: Service<Req> + Clone + Send + Sync + 'static,
    P: ReadRequest<Req> + GuardOutcome<C::Response, C::Error, Mode>,
    Mode: ErrorMode<C::Error>,
{
    type Output = Result<P::Guarded<EndpointGuard<C>>, Mode::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProjection::Sent { attempt } => return attempt.poll(cx),
                StateProjection::Waiting { waiting: place } => {
                    let Some(waiting) = place else { return Poll::Pending };
                    let Poll::Ready(found) = waiting.poll_answer(cx) else { return Poll::Pending };
                    let Some(waiting) = place.take() else { return Poll::Pending };
                    let Waiting { shared, request, frame, .. } = *waiting;
                    let sent = match found {
                        Ok(()) => frame.send(|| send_to_client(&shared, request)),
                        Err(end) => Self::sent(not_sent(&request, end)),
                    };
                    this.state.set(sent.state);
                }
                StateProjection::Racing { race } => match ready!(race.poll_sent(cx)) {
                    Ok(attempt) => this.state.set(State::Sent { attempt }),
                    Err(over) => return Poll::Ready(over),
                },
            }
        }
    }
}

impl<C: Send + Sync + 'static, Req, F, E, P, Mode> fmt::Debug for ResponseFuture<C, Req, F, E, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = !matches!(self.state, State::Sent { .. });
        f.debug_struct("ResponseFuture").field("waits", &waits).finish_non_exhaustive()
    }
}
