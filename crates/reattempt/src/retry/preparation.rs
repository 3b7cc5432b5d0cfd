//! The preparation of the next attempt: drain the refused response, wait, run the hook, ready the service.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use super::progress::Granted;
use crate::call::clock;

type HookFuture<H> = Pin<Box<dyn Future<Output = H> + Send>>;

/// The step of a preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Draining,
    Waiting,
    Preparing,
    Readying,
    /// The service has sent an attempt and was not readied since.
    Sent,
}

/// The time limits of a preparation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The moment until which a refused response may be drained.
    pub(super) drain: Instant,
    /// The moment by which the service must be ready for the next attempt, if there is a limit.
    pub(super) ready: Option<Instant>,
}

pin_project! {
    /// The preparation of the next attempt. It is in the box that the first failure makes.
    pub(super) struct Preparation<S, R, H, T> {
        stage: Stage,
        // The moment at which the next attempt is due; `None` for at once.
        due: Option<Instant>,
        // The moments until which a response may be drained, and by which the service must be ready.
        drain_by: Option<Instant>,
        ready_by: Option<Instant>,
        // The moment at which `sleep` ends.
        sleeping_until: Option<Instant>,
        #[pin]
        sleep: Option<Sleep>,
        #[pin]
        drain: Option<R>,
        hooked: Option<Box<Hooked<H, T>>>,
        // One instance sends all retries of a call.
        service: Option<S>,
    }
}

/// An attempt that was taken apart for a hook.
pub(super) struct Hooked<H, T> {
    /// The hook at work on the head, until it is done.
    preparing: Option<HookFuture<H>>,
    head: Option<H>,
    rest: T,
}

impl<H, T> Hooked<H, T> {
    pub(super) fn new(preparing: HookFuture<H>, rest: T) -> Box<Self> {
        Box::new(Self { preparing: Some(preparing), head: None, rest })
    }

    /// Returns the parts of the attempt, if the hook is done.
    pub(super) fn into_parts(self) -> Option<(H, T)> {
        Some((self.head?, self.rest))
    }
}

/// The result of a preparation.
pub(super) enum Arrived<S, H, T, E> {
    /// The service is ready for the attempt, whose head a hook has prepared if there is one.
    Ready(S, Option<Box<Hooked<H, T>>>),
    /// The wait is over, and a service is needed: see [`Preparation::prepare`].
    Unprepared,
    /// The service failed to become ready.
    Failed(E),
    /// The service did not become ready in time.
    Late,
}

impl<S, R, H, T> Preparation<S, R, H, T> {
    pub(super) fn new() -> Self {
        let stage = Stage::Preparing;
        Self {
            stage,
            due: None,
            drain_by: None,
            ready_by: None,
            sleeping_until: None,
            sleep: None,
            drain: None,
            hooked: None,
            service: None,
        }
    }

    /// Begins after a retry was granted.
    pub(super) fn begin(self: Pin<&mut Self>, drain: Option<R>, granted: Granted, bounds: Bounds) {
        let mut this = self.project();
        *this.stage = Stage::Draining;
        this.drain.set(drain);
        *this.due = granted.due;
        *this.drain_by = Some(bounds.drain);
        *this.ready_by = bounds.ready;
    }

    /// Sets the moment by which the service must be ready, for an attempt that is not a granted retry.
    pub(super) fn bound(self: Pin<&mut Self>, ready: Option<Instant>) {
        *self.project().ready_by = ready;
    }

    /// Keeps the service that has just sent an attempt.
    pub(super) fn sent(self: Pin<&mut Self>, service: S) {
        let this = self.project();
        *this.stage = Stage::Sent;
        *this.service = Some(service);
    }

    /// Takes the service that has sent an attempt, unless it was readied for another since.
    pub(super) fn take_sent(self: Pin<&mut Self>) -> Option<S> {
        match self.stage {
            Stage::Draining | Stage::Waiting | Stage::Sent => self.project().service.take(),
            Stage::Preparing | Stage::Readying => None,
        }
    }

    /// Runs the hook on the head of the attempt, then readies `service` for it.
    pub(super) fn prepare(self: Pin<&mut Self>, service: S, hooked: Option<Box<Hooked<H, T>>>) {
        let this = self.project();
        *this.stage = Stage::Preparing;
        *this.hooked = hooked;
        *this.service = Some(service);
    }

    /// Polls until the next attempt can be sent.
    pub(super) fn poll<A>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, H, T, S::Error>>
    where
        S: Service<A>,
        R: Future<Output = ()>,
    {
        loop {
            match self.stage {
                Stage::Draining => {
                    ready!(self.as_mut().poll_drain(cx));
                    *self.as_mut().project().stage = Stage::Waiting;
                }
                Stage::Waiting => {
                    if let Some(due) = self.due {
                        ready!(self.as_mut().poll_sleep(cx, due));
                    }
                    self.as_mut().project().sleep.set(None);
                    *self.as_mut().project().sleeping_until = None;
                    return Poll::Ready(Arrived::Unprepared);
                }
                // Nothing follows an attempt that was sent before `begin`.
                Stage::Sent => return Poll::Ready(Arrived::Unprepared),
                Stage::Preparing | Stage::Readying => return self.poll_next(cx),
            }
        }
    }

    /// Ready when the hook is done and the service is ready, or when it is too late for both.
    fn poll_next<A>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, H, T, S::Error>>
    where
        S: Service<A>,
    {
        // After a wait the timer is polled first, so that nothing is sent too late.
        let late = self.sleeping_until.is_some() && self.sleeping_until == self.ready_by;
        if !late && let Poll::Ready(arrived) = self.as_mut().poll_hook_and_service(cx) {
            return Poll::Ready(arrived);
        }
        let Some(by) = self.ready_by.filter(|_| clock::has_timer()) else { return Poll::Pending };
        if self.as_mut().poll_sleep(cx, by).is_pending() {
            return if late { self.poll_hook_and_service(cx) } else { Poll::Pending };
        }
        // Returned once: a call that has no other outcome waits on.
        *self.project().ready_by = None;
        Poll::Ready(Arrived::Late)
    }

    fn poll_hook_and_service<A>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, H, T, S::Error>>
    where
        S: Service<A>,
    {
        let this = self.as_mut().project();
        if let Some(hooked) = this.hooked
            && let Some(preparing) = &mut hooked.preparing
        {
            hooked.head = Some(ready!(preparing.as_mut().poll(cx)));
            hooked.preparing = None;
        }
        *this.stage = Stage::Readying;
        let Some(service) = this.service.as_mut() else { return Poll::Ready(Arrived::Unprepared) };
        if let Err(error) = ready!(service.poll_ready(cx)) {
            return Poll::Ready(Arrived::Failed(error));
        }
        Poll::Ready(match this.service.take() {
            Some(service) => Arrived::Ready(service, this.hooked.take()),
            None => Arrived::Unprepared,
        })
    }

    /// Ready when the refused response is gone, or has been drained long enough.
    fn poll_drain(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>
    where
        R: Future<Output = ()>,
    {
        let mut drain = self.as_mut().project().drain;
        let over = match drain.as_mut().as_pin_mut() {
            None => true,
            Some(drain) => drain.poll(cx).is_ready(),
        };
        // Without a timer, only what is there at once is drained.
        if let Some(by) = self.drain_by.filter(|_| !over && clock::has_timer()) {
            ready!(self.as_mut().poll_sleep(cx, by));
        }
        // Dropped here, so that its connection is free, or closed, before the next attempt.
        self.project().drain.set(None);
        Poll::Ready(())
    }

    /// Sleeps until `until`.
    fn poll_sleep(self: Pin<&mut Self>, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        let mut this = self.project();
        if *this.sleeping_until != Some(until) {
            *this.sleeping_until = Some(until);
            match this.sleep.as_mut().as_pin_mut() {
                Some(sleep) => sleep.reset(until),
                None => this.sleep.set(Some(sleep_until(until))),
            }
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx),
            None => Poll::Ready(()),
        }
    }
}
