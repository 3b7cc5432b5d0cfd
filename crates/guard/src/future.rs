//! The future of a guarded call, which waits for the guard if necessary, sends the attempt, and ends the pass.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use reattempt_core::guard::{BodyEnd, Guard, GuardKind, Reason, Refused, Resume};
use reattempt_engine::Deadline;
use reattempt_engine::error::ErrorMode;
use reattempt_engine::observe::Event;
use reattempt_engine::wall::clock::{Instant, sleep_until};
use reattempt_engine::wall::frame::Late;
use reattempt_engine::wall::{CutOff, Testimony, clock};
use tokio::time::Sleep;
use tower_service::Service;

use super::judge::{judge, judge_error};
use super::pass::Pass;
use super::protocol::{GuardOutcome, OwnEnd};
use super::shared::now;

pin_project! {
    /// The future of a guarded call.
    ///
    /// # Cancel safety
    /// Dropping the future while the call waits removes the call from the queue, and nothing is sent. Dropping it later
    /// cancels the attempt. The guard then records a timeout if the deadline has passed or a layer's time limit dropped
    /// the attempt, and an abandoned attempt otherwise.
    ///
    /// `F` is the future of the inner service `S`. There is no trait bound between them, because the compiler could not
    /// prove it for boxed types in spawned tasks.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, F, G: Guard, P, Mode> {
        #[pin]
        state: GuardedState<S, Req, G, P, F>,
        mode: PhantomData<fn() -> Mode>,
    }
}

pin_project! {
    #[project = GuardedStateProjection]
    enum GuardedState<S, Req, G: Guard, P, F> {
        // Taken by its first poll.
        OwnEnd { reason: Option<OwnEnd> },
        // Taken when the wait is over.
        Waiting { waiting: Option<Box<Waiting<S, Req, G, P>>> },
        Sent {
            // Declared before the pass, so that inner guards end first and this one learns what they know. The pass
            // ends even if the attempt's destructor panics.
            #[pin]
            attempt: F,
            pass: Option<Pass<G, P>>,
            // Created when the attempt first returns `Pending`, if it has a time limit.
            timer: Option<Pin<Box<Sleep>>>,
        },
        Over,
    }
}

/// A call that waits first for the guard, then for the inner service.
pub(super) struct Waiting<S, Req, G: Guard, P> {
    pass: Pass<G, P>,
    destination: Box<str>,
    began: Duration,
    latest: Option<Duration>,
    renewal: Option<Renewal<P, Req>>,
    service: S,
    request: Req,
    testimony: Option<Testimony>,
    frame: Late,
    sleep: Option<Pin<Box<Sleep>>>,
    wait: Wait,
}

/// The call's deadline, and the protocol's function that writes the time left to the request anew.
pub(super) type Renewal<P, Req> = (Deadline, fn(&P, &mut Req, Deadline));

/// The reason why a call is waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Guard,
    Service,
    /// The inner service was not ready immediately, so the guards must decide again before the attempt is sent.
    SlowService,
}

impl<S, Req, G: Guard, P> Waiting<S, Req, G, P> {
    pub(super) fn new(
        pass: Pass<G, P>,
        destination: Box<str>,
        began: Duration,
        renewal: Option<Renewal<P, Req>>,
        service: S,
        request: Req,
        testimony: Option<Testimony>,
    ) -> Self {
        let latest = renewal.map(|(deadline, _)| deadline.instant().since_epoch());
        let (frame, sleep, wait) = (Late::take(), None, Wait::Guard);
        Self { pass, destination, began, latest, renewal, service, request, testimony, frame, sleep, wait }
    }

    /// Returns `Ready` once the guard has decided.
    fn poll_admitted(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), OwnEnd>> {
        loop {
            let now = now();
            let until = match self.pass.resume(&self.destination, now, cx.waker()) {
                Resume::Admitted => return Poll::Ready(Ok(())),
                Resume::Refused(refused) => return Poll::Ready(Err(OwnEnd::Refused(refused))),
                Resume::Waiting { until } => until,
            };
            if self.is_late(now) {
                // Guards need not check the deadline.
                return Poll::Ready(Err(self.late()));
            }
            let Some(until) = until.into_iter().chain(self.latest).min() else {
                self.sleep = None;
                return Poll::Pending;
            };
            if self.sleep.is_none() && !clock::has_timer() {
                // The call was created inside a runtime but is polled outside one, where no timer can end its wait.
                let refused = Refused::new(GuardKind::UNNAMED, Reason::WaitTooLong);
                return Poll::Ready(Err(OwnEnd::Refused(refused)));
            }
            ready!(self.poll_sleep(until, now, cx));
        }
    }

    /// Returns `Ready` at `until`, or after 1 ms if `until` is in the past, to prevent a busy loop.
    fn poll_sleep(&mut self, until: Duration, now: Duration, cx: &mut Context<'_>) -> Poll<()> {
        const TICK: Duration = Duration::from_millis(1);
        let at = Instant::now().later(until.saturating_sub(now).max(TICK));
        match &mut self.sleep {
            Some(sleep) if sleep.deadline() == at.on_tokio() && !sleep.is_elapsed() => {}
            Some(sleep) => sleep.as_mut().reset(at.on_tokio()),
            None => self.sleep = Some(Box::pin(sleep_until(at))),
        }
        self.sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(cx))
    }

    fn late(&self) -> OwnEnd {
        OwnEnd::Late(now().saturating_sub(self.began))
    }

    fn is_late(&self, now: Duration) -> bool {
        self.latest.is_some_and(|latest| latest <= now)
    }

    /// Returns `Ready` once the request can be sent. If the service was not ready immediately, the guards have decided
    /// again.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed<S::Error>>>
    where
        S: Service<Req>,
    {
        if self.wait == Wait::Guard {
            ready!(self.poll_admitted(cx)).map_err(Failed::OwnEnd)?;
            self.wait = Wait::Service;
        }
        match self.service.poll_ready(cx) {
            Poll::Ready(ready) => ready.map_err(Failed::Service)?,
            Poll::Pending => {
                self.wait = Wait::SlowService;
                let Some(latest) = self.latest else { return Poll::Pending };
                let now = now();
                if !self.is_late(now) {
                    if self.sleep.is_none() && !clock::has_timer() {
                        // The inner service wakes the call. Without a runtime, no timer wakes it at the deadline.
                        return Poll::Pending;
                    }
                    ready!(self.poll_sleep(latest, now, cx));
                }
                return Poll::Ready(Err(Failed::OwnEnd(self.late())));
            }
        }
        let now = now();
        if self.is_late(now) {
            return Poll::Ready(Err(Failed::OwnEnd(self.late())));
        }
        if self.wait == Wait::SlowService {
            let renewed = self.pass.renew(&self.destination, now);
            renewed.map_err(|refused| Failed::OwnEnd(OwnEnd::Refused(refused)))?;
        }
        self.pass.sending(now);
        Poll::Ready(Ok(()))
    }
}

/// The reason why a waiting call is not sent.
enum Failed<E> {
    OwnEnd(OwnEnd),
    /// The inner service's `poll_ready` failed.
    Service(E),
}

impl<S, Req, F, G: Guard, P, Mode> ResponseFuture<S, Req, F, G, P, Mode> {
    fn of(state: GuardedState<S, Req, G, P, F>) -> Self {
        Self { state, mode: PhantomData }
    }

    /// Creates the future of a call that is not sent.
    #[doc(hidden)]
    #[cold]
    pub fn not_sent(reason: OwnEnd) -> Self {
        Self::of(GuardedState::OwnEnd { reason: Some(reason) })
    }

    /// Creates the future of a call that waits.
    #[cold]
    pub(super) fn waiting(waiting: Waiting<S, Req, G, P>) -> Self {
        Self::of(GuardedState::Waiting { waiting: Some(Box::new(waiting)) })
    }

    /// Creates the future of a call that was admitted immediately.
    #[doc(hidden)]
    #[inline]
    pub fn sent(pass: Pass<G, P>, attempt: F) -> Self {
        Self::of(GuardedState::Sent { pass: Some(pass), attempt, timer: None })
    }

    /// Creates the future of a call that was sent later, with the timer of its time limit.
    #[doc(hidden)]
    #[cold]
    pub fn sent_late(pass: Pass<G, P>, attempt: F, timer: Option<Pin<Box<Sleep>>>) -> Self {
        Self::of(GuardedState::Sent { pass: Some(pass), attempt, timer })
    }

    /// Creates the future of a call without a guard's decision.
    #[doc(hidden)]
    pub fn passing(attempt: F) -> Self {
        Self::of(GuardedState::Sent { pass: None, attempt, timer: None })
    }
}

impl<S, Req, G, P, Mode> Future for ResponseFuture<S, Req, S::Future, G, P, Mode>
where
    S: Service<Req>,
    G: Guard,
    P: GuardOutcome<S::Response, S::Error, Mode>,
    Mode: ErrorMode<S::Error>,
{
    type Output = Result<P::Guarded<G>, Mode::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                GuardedStateProjection::OwnEnd { reason } => {
                    let Some(reason) = reason.take() else { return Poll::Pending };
                    this.state.set(GuardedState::Over);
                    return Poll::Ready(P::own_end(reason));
                }
                GuardedStateProjection::Waiting { waiting: place } => {
                    let Some(waiting) = place else { return Poll::Pending };
                    let ready = ready!(waiting.poll_ready(cx));
                    let Some(waiting) = place.take() else { return Poll::Pending };
                    let Waiting { pass, destination, renewal, mut service, mut request, testimony, frame, .. } =
                        *waiting;
                    match ready {
                        Ok(()) => {
                            if let Some((deadline, renew)) = renewal {
                                renew(&pass.shared.protocol, &mut request, deadline);
                            }
                            let attempt = frame.send(|| service.call(request));
                            this.state.set(GuardedState::Sent { pass: Some(pass), attempt, timer: None });
                        }
                        Err(Failed::Service(error)) => {
                            return Poll::Ready(Err(Mode::own(error)));
                        }
                        Err(Failed::OwnEnd(reason)) => {
                            if let OwnEnd::Refused(refused) = &reason {
                                pass.shared.notify(&destination, &Event::Refused { refused });
                                testimony.iter().for_each(Testimony::refuse);
                            }
                            return Poll::Ready(P::own_end(reason));
                        }
                    }
                }
                GuardedStateProjection::Sent { pass, attempt, timer } => {
                    if let Some(pass) = pass {
                        pass.polled();
                    }
                    let followed = |pass: Option<&mut Pass<G, P>>, outcome: Result<_, _>| {
                        pass.map(|pass| judge::<P, _, _, Mode, G>(pass, outcome)).unwrap_or_default()
                    };
                    // The response is large, so it is moved only once.
                    return Poll::Ready(match attempt.poll(cx) {
                        Poll::Ready(Ok(response)) => {
                            let followed = followed(pass.as_mut(), Ok(&response));
                            if !followed.holds {
                                this.state.set(GuardedState::Over);
                                return Poll::Ready(Ok(P::guarded(response, followed.open, None)));
                            }
                            let held = pass.take();
                            this.state.set(GuardedState::Over);
                            Ok(P::guarded(response, followed.open, held))
                        }
                        Poll::Ready(Err(error)) => {
                            let (error, held) = judge_error::<P, _, _, Mode, G>(pass, error);
                            this.state.set(GuardedState::Over);
                            held.into_iter().for_each(|pass| pass.over(BodyEnd::Broken));
                            Err(error)
                        }
                        Poll::Pending => {
                            let after = ready!(poll_timeout(pass.as_ref(), timer, cx));
                            let pass = pass.take();
                            P::own_end(cut_off(pass, after, || this.state.set(GuardedState::Over)))
                        }
                    });
                }
                GuardedStateProjection::Over => return Poll::Pending,
            }
        }
    }
}

/// Returns `Ready` once the attempt's time limit has passed, with that limit.
pub fn poll_timeout<G: Guard, P>(
    pass: Option<&Pass<G, P>>,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Duration> {
    let timeout = pass.and_then(|pass| pass.shared.attempt_timeout);
    let Some(timeout) = timeout.filter(|_| clock::has_timer()) else { return Poll::Pending };
    let due = || Box::pin(sleep_until(Instant::now().later(timeout)));
    clock::poll_interrupt(timer.get_or_insert_with(due).as_mut(), cx).map(|()| timeout)
}

/// Ends an attempt that exceeded its time limit `after`. It is dropped by `drop_attempt` before its end is recorded.
#[cold]
pub fn cut_off<G: Guard, P>(pass: Option<Pass<G, P>>, after: Duration, drop_attempt: impl FnOnce()) -> OwnEnd {
    let server = pass.as_ref().and_then(Pass::server);
    let uploading = pass.as_ref().is_some_and(Pass::is_source_pending);
    let limit = if uploading { CutOff::Upload } else { CutOff::Attempt };
    let below = CutOff::drop_attempt(Some(limit), || {
        drop_attempt();
        let unsent = CutOff::had_no_time();
        pass.into_iter().for_each(|pass| pass.timed_out(limit, unsent));
        CutOff::take_server()
    });
    OwnEnd::TimedOut { after, server: server.or(below), uploading }
}

impl<S, Req, F, G: Guard, P, Mode> fmt::Debug for ResponseFuture<S, Req, F, G, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            GuardedState::OwnEnd { .. } => "not sent",
            GuardedState::Waiting { .. } => "waiting",
            GuardedState::Sent { .. } => "sent",
            GuardedState::Over => "over",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
