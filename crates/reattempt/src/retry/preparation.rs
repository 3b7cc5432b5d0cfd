//! The preparation of the next attempt: drain the refused response, wait, run the hook, ready the service.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use crate::call::clock;
use crate::call::progress::Granted;

/// A hook at work on a head.
pub(super) type HookFuture<H> = Pin<Box<dyn Future<Output = H> + Send>>;

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
        next: Next<S, H>,
        // An attempt that was made before it can be sent. It is in a box of its own, because few calls have one.
        made: Option<Box<Made<H, T>>>,
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
    }
}

/// The way of the next attempt. It is made when its hook is due, or else when its service is ready, because it is
/// larger than the saved request.
enum Next<S, H> {
    /// None is on its way. The instance is a clone of the one that has sent the attempt under way.
    Sent(Option<S>),
    /// It waits until the refused response is drained and it is due.
    Waiting(Option<S>),
    /// A hook is at work on its head.
    Hooking(S, HookFuture<H>),
    /// The service is readied for it.
    Readying(S),
}

impl<S, H> Next<S, H> {
    /// Ends the wait. Returns the instance for the attempt, if one was sent before.
    fn waited(&mut self) -> Option<S> {
        match std::mem::replace(self, Next::Sent(None)) {
            Next::Waiting(sent) => sent,
            other => {
                *self = other;
                None
            }
        }
    }

    /// Goes on after the hook.
    fn hooked(&mut self) {
        *self = match std::mem::replace(self, Next::Sent(None)) {
            Next::Hooking(service, _) => Next::Readying(service),
            other => other,
        };
    }

    /// Takes the service, which is ready for the attempt.
    fn take_readied(&mut self) -> Option<S> {
        match std::mem::replace(self, Next::Sent(None)) {
            Next::Readying(service) => Some(service),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// The first attempt before it is sent, or one that a hook works on. Its head is missing while the hook has it.
struct Made<H, T> {
    head: Option<H>,
    rest: T,
}

/// The result of a preparation.
pub(super) enum Arrived<S, E> {
    /// The attempt is due. This instance sends it, if one was sent before.
    Due(Option<S>),
    /// The service is ready for the attempt.
    Ready(S),
    /// The service failed to become ready.
    Failed(E),
    /// The service did not become ready in time.
    Late,
}

impl<S, R, H, T> Preparation<S, R, H, T> {
    pub(super) fn new() -> Self {
        Self {
            next: Next::Sent(None),
            made: None,
            due: None,
            drain_by: None,
            ready_by: None,
            sleeping_until: None,
            sleep: None,
            drain: None,
        }
    }

    /// Begins with the first attempt, for which the service must be ready by `ready`.
    pub(super) fn first(self: Pin<&mut Self>, (head, rest): (H, T), ready: Option<Instant>) {
        let this = self.project();
        *this.next = Next::Waiting(None);
        *this.made = Some(Box::new(Made { head: Some(head), rest }));
        *this.ready_by = ready;
    }

    /// Begins with an attempt that was granted.
    pub(super) fn begin(
        mut self: Pin<&mut Self>,
        drain: Option<R>,
        granted: Granted,
        bounds: Bounds,
    ) {
        let sent = self.as_mut().take_sent();
        let mut this = self.project();
        *this.next = Next::Waiting(sent);
        this.drain.set(drain);
        *this.due = granted.due;
        *this.drain_by = Some(bounds.drain);
        *this.ready_by = bounds.ready;
    }

    /// Sets the moment by which the service must be ready anew.
    pub(super) fn bound(self: Pin<&mut Self>, ready: Option<Instant>) {
        *self.project().ready_by = ready;
    }

    /// Keeps an instance for the next attempt. It was never readied.
    pub(super) fn sent(self: Pin<&mut Self>, service: S) {
        *self.project().next = Next::Sent(Some(service));
    }

    /// Takes the instance for the next attempt, unless it is being readied already.
    pub(super) fn take_sent(self: Pin<&mut Self>) -> Option<S> {
        match self.project().next {
            Next::Sent(sent) | Next::Waiting(sent) => sent.take(),
            Next::Hooking(..) | Next::Readying(_) => None,
        }
    }

    /// Takes the head of the attempt that was made, for a hook.
    pub(super) fn take_head(self: Pin<&mut Self>) -> Option<H> {
        self.project().made.as_mut()?.head.take()
    }

    /// Keeps the rest of an attempt whose head is for a hook.
    pub(super) fn keep_rest(self: Pin<&mut Self>, rest: T) {
        *self.project().made = Some(Box::new(Made { head: None, rest }));
    }

    /// Runs the hook on the head of an attempt, then readies `service` for it.
    pub(super) fn hook(self: Pin<&mut Self>, service: S, hook: HookFuture<H>) {
        *self.project().next = Next::Hooking(service, hook);
    }

    /// Readies `service` for the attempt.
    pub(super) fn ready(self: Pin<&mut Self>, service: S) {
        *self.project().next = Next::Readying(service);
    }

    /// Takes the attempt that was made, in its parts.
    pub(super) fn take_made(self: Pin<&mut Self>) -> Option<(Option<H>, T)> {
        self.project().made.take().map(|made| (made.head, made.rest))
    }

    /// Polls until the next attempt can be sent. Stays pending if none is on its way: the call is over.
    pub(super) fn poll<Q>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, S::Error>>
    where
        S: Service<Q>,
        R: Future<Output = ()>,
    {
        match self.next {
            Next::Sent(_) => return Poll::Pending,
            Next::Hooking(..) | Next::Readying(_) => return self.poll_next(cx),
            Next::Waiting(_) => {}
        }
        ready!(self.as_mut().poll_drain(cx));
        if let Some(due) = self.due {
            ready!(self.as_mut().poll_sleep(cx, due));
        }
        let mut this = self.project();
        this.sleep.set(None);
        *this.sleeping_until = None;
        Poll::Ready(Arrived::Due(this.next.waited()))
    }

    /// Ready when the hook is done and the service is ready, or when it is too late for both.
    fn poll_next<Q>(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Arrived<S, S::Error>>
    where
        S: Service<Q>,
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

    fn poll_hook_and_service<Q>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, S::Error>>
    where
        S: Service<Q>,
    {
        let this = self.project();
        if let Next::Hooking(_, hook) = this.next {
            let head = ready!(hook.as_mut().poll(cx));
            this.next.hooked();
            if let Some(made) = this.made {
                made.head = Some(head);
            }
        }
        if let Next::Readying(service) = this.next
            && let Err(error) = ready!(service.poll_ready(cx))
        {
            return Poll::Ready(Arrived::Failed(error));
        }
        match this.next.take_readied() {
            Some(service) => Poll::Ready(Arrived::Ready(service)),
            None => Poll::Pending,
        }
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
            Some(sleep) => clock::poll_interrupt(sleep, cx),
            None => Poll::Ready(()),
        }
    }
}
