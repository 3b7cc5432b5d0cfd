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
    pub(super) struct Preparation<S, R, A, H, T> {
        next: Next<S, A, H, T>,
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

/// The next attempt on its way. It is made when it is granted, so a call that has dropped its last outcome has
/// a request to send.
enum Next<S, A, H, T> {
    /// None is on its way. The instance has sent an attempt, and one sends all retries of a call.
    Sent(Option<S>),
    /// It waits until the refused response is drained and it is due.
    Waiting(Option<S>, A),
    /// A hook is at work on its head.
    Hooking(S, HookFuture<H>, T),
    /// The service is readied for it.
    Readying(S, Made<A, H, T>),
}

impl<S, A, H, T> Next<S, A, H, T> {
    /// Takes the attempt that waits, and the service that has sent one before.
    fn take_waiting(&mut self) -> Option<(Option<S>, A)> {
        match std::mem::replace(self, Next::Sent(None)) {
            Next::Waiting(sent, attempt) => Some((sent, attempt)),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Goes on after the hook, which has left this head.
    fn hooked(&mut self, head: H) {
        *self = match std::mem::replace(self, Next::Sent(None)) {
            Next::Hooking(service, _, rest) => Next::Readying(service, Made::Parts(head, rest)),
            other => other,
        };
    }

    /// Takes the attempt whose service is ready, and the service.
    fn take_readied(&mut self) -> Option<(S, Made<A, H, T>)> {
        match std::mem::replace(self, Next::Sent(None)) {
            Next::Readying(service, made) => Some((service, made)),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// An attempt that can be sent: whole, or the parts that a hook has left.
pub(super) enum Made<A, H, T> {
    Whole(A),
    Parts(H, T),
}

/// The result of a preparation.
pub(super) enum Arrived<S, A, H, T, E> {
    /// The attempt is due. Beside it is the service that has sent one before.
    Due(Option<S>, A),
    /// The service is ready for the attempt.
    Ready(S, Made<A, H, T>),
    /// The service failed to become ready.
    Failed(E),
    /// The service did not become ready in time.
    Late,
}

impl<S, R, A, H, T> Preparation<S, R, A, H, T> {
    pub(super) fn new() -> Self {
        Self {
            next: Next::Sent(None),
            due: None,
            drain_by: None,
            ready_by: None,
            sleeping_until: None,
            sleep: None,
            drain: None,
        }
    }

    /// Begins with the first attempt, for which the service must be ready by `ready`.
    pub(super) fn first(self: Pin<&mut Self>, attempt: A, ready: Option<Instant>) {
        let this = self.project();
        *this.next = Next::Waiting(None, attempt);
        *this.ready_by = ready;
    }

    /// Begins with the attempt that was granted.
    pub(super) fn begin(
        mut self: Pin<&mut Self>,
        attempt: A,
        drain: Option<R>,
        granted: Granted,
        bounds: Bounds,
    ) {
        let sent = self.as_mut().take_sent();
        let mut this = self.project();
        *this.next = Next::Waiting(sent, attempt);
        this.drain.set(drain);
        *this.due = granted.due;
        *this.drain_by = Some(bounds.drain);
        *this.ready_by = bounds.ready;
    }

    /// Sets the moment by which the service must be ready anew.
    pub(super) fn bound(self: Pin<&mut Self>, ready: Option<Instant>) {
        *self.project().ready_by = ready;
    }

    /// Keeps the service that has just sent an attempt.
    pub(super) fn sent(self: Pin<&mut Self>, service: S) {
        *self.project().next = Next::Sent(Some(service));
    }

    /// Takes the service that has sent an attempt, unless it was readied for another since.
    pub(super) fn take_sent(self: Pin<&mut Self>) -> Option<S> {
        match self.project().next {
            Next::Sent(sent) | Next::Waiting(sent, _) => sent.take(),
            Next::Hooking(..) | Next::Readying(..) => None,
        }
    }

    /// Runs the hook on the head of an attempt, then readies `service` for it.
    pub(super) fn hook(self: Pin<&mut Self>, service: S, hook: HookFuture<H>, rest: T) {
        *self.project().next = Next::Hooking(service, hook, rest);
    }

    /// Readies `service` for the attempt.
    pub(super) fn ready(self: Pin<&mut Self>, service: S, attempt: A) {
        *self.project().next = Next::Readying(service, Made::Whole(attempt));
    }

    /// Polls until the next attempt can be sent. Stays pending if none is on its way: the call is over.
    pub(super) fn poll<Q>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, A, H, T, S::Error>>
    where
        S: Service<Q>,
        R: Future<Output = ()>,
    {
        match self.next {
            Next::Sent(_) => return Poll::Pending,
            Next::Hooking(..) | Next::Readying(..) => return self.poll_next(cx),
            Next::Waiting(..) => {}
        }
        ready!(self.as_mut().poll_drain(cx));
        if let Some(due) = self.due {
            ready!(self.as_mut().poll_sleep(cx, due));
        }
        let mut this = self.project();
        this.sleep.set(None);
        *this.sleeping_until = None;
        match this.next.take_waiting() {
            Some((sent, attempt)) => Poll::Ready(Arrived::Due(sent, attempt)),
            None => Poll::Pending,
        }
    }

    /// Ready when the hook is done and the service is ready, or when it is too late for both.
    fn poll_next<Q>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Arrived<S, A, H, T, S::Error>>
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
    ) -> Poll<Arrived<S, A, H, T, S::Error>>
    where
        S: Service<Q>,
    {
        let next = self.project().next;
        if let Next::Hooking(_, hook, _) = next {
            let head = ready!(hook.as_mut().poll(cx));
            next.hooked(head);
        }
        if let Next::Readying(service, _) = next
            && let Err(error) = ready!(service.poll_ready(cx))
        {
            return Poll::Ready(Arrived::Failed(error));
        }
        match next.take_readied() {
            Some((service, made)) => Poll::Ready(Arrived::Ready(service, made)),
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
            Some(sleep) => sleep.poll(cx),
            None => Poll::Ready(()),
        }
    }
}
