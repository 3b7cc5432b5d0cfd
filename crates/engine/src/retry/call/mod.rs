//! The state of one call in the retry layer, from its request to its outcome.
//!
//! During the first attempt, it is little more than the saved request. The first failure allocates the state that only
//! retries need: the call's progress and the next attempt's stage.

mod attempt_end;
mod call_end;
mod confirmation;
mod opening;
mod stage;
mod timers;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use reattempt_control::Trail;
use reattempt_core::{Budget, Schedule, SentAt};
use reattempt_replay::SourceWatch;
use tokio::time::Sleep;

use self::stage::{Next, Stage};
use crate::call::clock::Instant;
use crate::call::context::CallContext;
use crate::call::frame::{Frame, Tried};
use crate::call::hook::Carried;
use crate::call::in_use;
use crate::call::options::CallOptions;
use crate::call::progress::{Granted, Progress};
use crate::call::settings::Settings;
use crate::call::timed_out::RefusedResponse;
use crate::policy::RetryPolicy;
use crate::protocol::{CallStart, CallTypes, NestedMarker, Protocol, Replay, ResultOf, Saved};
use crate::shared::Shared;

type PolicyOf<T> = RetryPolicy<
    <T as CallTypes>::Protocol,
    <T as CallTypes>::Strategy,
    <T as CallTypes>::Budget,
    <T as CallTypes>::Mode,
>;

/// The driver of a call, with its state.
pub(super) struct RetryDriver<T: CallTypes<Strategy: Schedule>> {
    pub(in crate::retry) shared: Arc<Shared<T::Service, PolicyOf<T>>>,
    pub(in crate::retry) saved: Option<T::Saved>,
    /// The destination, recorded only if the request was not saved and a budget or observer needs it.
    pub(in crate::retry) target: Option<Box<str>>,
    pub(in crate::retry) context: CallContext,
    /// `true` if the request was saved.
    pub(in crate::retry) is_saved: bool,
    /// The number of the attempt in flight, from 1.
    pub(in crate::retry) number: u32,
    pub(in crate::retry) sent_at: SentAt,
    /// The endpoint of the attempt in flight.
    pub(in crate::retry) tried: Tried,
    /// The marker that this layer adds to the request for inner layers.
    pub(in crate::retry) marker: Option<NestedMarker>,
    pub(in crate::retry) retrying: Option<Pin<Box<RetryState<T>>>>,
}

pin_project! {
    /// The state that only retries need.
    pub(in crate::retry) struct RetryState<T: CallTypes<Strategy: Schedule>> {
        progress: Option<Progress<<T::Strategy as Schedule>::Delays>>,
        // The last attempt's error, in case its retry is not sent.
        last_error: Option<T::Error>,
        // The head of the last refused response, for a hook or an error.
        refused: Option<RefusedResponse>,
        // The value that the hook left in the head of the last attempt.
        carried: Option<Carried>,
        // The watch on the caller's body, if that is streamed below a guard.
        source: Option<SourceWatch>,
        // `true` if the last attempt lost an HTTP/1 connection, or met a 408.
        fresh: bool,
        // The endpoints of the failed attempts.
        trail: Trail,
        // The time by which the hook and the service must be ready for the next attempt, if there is a limit.
        ready_by: Option<Instant>,
        // The outcome of the last attempt, until the budget has confirmed a retry.
        held: Option<Box<HeldOutcome<T>>>,
        // The instance for the next attempt: the one that is polled until it is ready, or a clone of the last
        // attempt's.
        service: Option<T::Service>,
        // The source of the next attempt, from the confirmation until it is sent.
        next: Option<Next<T>>,
        // The head of a next attempt that already exists, unless its hook is running.
        head: Option<Box<T::Head>>,
        // The timer of the current stage.
        #[pin]
        sleep: Option<Sleep>,
        #[pin]
        stage: Stage<T>,
    }
}

/// An outcome with the retry that was granted after it.
struct HeldOutcome<T: CallTypes> {
    result: ResultOf<T>,
    granted: Granted,
}

impl<T: CallTypes<Strategy: Schedule>> RetryState<T> {
    // Not inlined, so that the code of calls that succeed on the first attempt does not contain it.
    #[cold]
    pub(in crate::retry) fn new() -> Pin<Box<Self>> {
        Box::pin(Self {
            progress: None,
            last_error: None,
            refused: None,
            carried: None,
            source: None,
            fresh: false,
            trail: Trail::new(),
            ready_by: None,
            held: None,
            service: None,
            next: None,
            head: None,
            sleep: None,
            stage: Stage::Sent,
        })
    }

    /// Creates the state of a first attempt whose body is streamed.
    #[inline]
    pub(in crate::retry) fn of_sent(source: Option<SourceWatch>) -> Option<Pin<Box<Self>>> {
        source.map(|source| {
            let mut retrying = Self::new();
            retrying.as_mut().watch(Some(source));
            retrying
        })
    }

    /// Records the instance that will send the first retry.
    pub(in crate::retry) fn sent_by(self: Pin<&mut Self>, service: T::Service) {
        *self.project().service = Some(service);
    }

    /// Creates the state for a first attempt that is not sent yet, because of a hook or a passed deadline.
    pub(in crate::retry) fn of_first((head, rest): (T::Head, T::Rest), ready_by: Option<Instant>) -> Pin<Box<Self>> {
        let mut retrying = Self::new();
        let mut this = retrying.as_mut().project();
        *this.head = Some(Box::new(head));
        *this.next = Some(Next::Made(rest));
        *this.ready_by = ready_by;
        this.stage.set(Stage::Waiting { due: None });
        retrying
    }

    /// Sets the watch on the caller's body.
    pub(in crate::retry) fn watch(self: Pin<&mut Self>, source: Option<SourceWatch>) {
        *self.project().source = source;
    }
}

/// Returns the terms of a call that may be retried.
pub(super) fn start<P, Req, Backoff, B>(
    settings: &Settings<P, Backoff, B>,
    of_handle: Option<&CallOptions>,
    total_time: Option<Duration>,
    request: &Req,
) -> CallStart
where
    P: Replay<Req>,
{
    let view = P::view(request);
    let mut start = CallStart::new(settings, of_handle, total_time, request);
    start.saves |= start.context.saves(&settings.limits);
    start.needs_key = start.saves && settings.protocol.needs_key(view);
    start.context.keyed = start.needs_key;
    start.marker = (start.saves && settings.nested).then(|| start.context.marker());
    start
}

/// Returns `true` if an unsaved call needs no state, because nothing depends on its outcome, which is returned
/// unchanged.
#[inline]
pub(super) fn is_noop<P: Protocol, Backoff: Schedule, B: Budget>(
    start: &CallStart,
    settings: &Settings<P, Backoff, B>,
) -> bool {
    settings.hook.is_none()
        && settings.observer.is_none()
        && settings.budget.is_full()
        && start.context.is_stateless(&settings.strategy)
        && start.context.slot().is_none()
}

/// The start of a call.
impl<T: CallTypes<Strategy: Schedule>> RetryDriver<T> {
    /// Starts measuring the call's time when it first returns `Pending`. A call that completes immediately does not
    /// read the clock.
    #[inline]
    pub(super) fn takes_time(&mut self, now: impl FnOnce() -> Instant) {
        if self.is_saved && self.context.started.is_none() {
            self.context.started = Some(now());
        }
    }

    /// Records that the attempt is still in flight.
    ///
    /// If its body is gone by now, a service below has dropped it unread, and may follow redirects with another body.
    /// Then the body's polls prove nothing.
    #[inline]
    pub(super) fn stays_in_flight(&mut self) {
        self.takes_time(Instant::now);
        if !self.context.repeatable
            && let Some(body) = self.saved.as_ref().and_then(Saved::body)
        {
            body.note_if_alone();
        }
    }

    /// Polls the attempt in flight. If an endpoint may be picked, the attempt's frame is open meanwhile, because a
    /// layer may call its inner service only from a poll, such as one that awaits a token first.
    #[inline(always)]
    pub(super) fn poll_attempt(
        &mut self,
        attempt: Pin<&mut T::Future>,
        cx: &mut Context<'_>,
    ) -> Poll<<T::Future as Future>::Output> {
        let frame = if in_use::ENDPOINTS.is_begun() { self.reopen_frame() } else { None };
        let polled = attempt.poll(cx);
        if let Some(frame) = frame {
            self.close_frame(frame);
        }
        polled
    }

    /// Opens the attempt's frame again, unless its endpoint is known.
    #[inline(never)]
    fn reopen_frame(&self) -> Option<Frame> {
        let none = const { &Trail::new() };
        self.tried.is_missing().then(|| Frame::again(self.retrying.as_ref().map_or(none, |retrying| &retrying.trail)))
    }

    #[inline(never)]
    fn close_frame(&mut self, mut frame: Frame) {
        if let Some(tried) = frame.close().known() {
            self.tried = tried;
        }
    }

    /// Returns `true` if the attempt in flight waits for the caller's body.
    #[cold]
    fn is_source_pending(&self) -> bool {
        let source = self.retrying.as_ref().and_then(|retrying| retrying.source.as_ref());
        source.is_some_and(SourceWatch::is_pending)
    }

    /// Returns the call's destination.
    fn destination(&self) -> Cow<'_, str> {
        let protocol = &self.shared.policy.settings.protocol;
        destination(protocol, self.saved.as_ref(), self.target.as_deref())
    }
}

/// Returns a call's destination, from its saved request or the recorded one.
fn destination<'a, Req, P: Replay<Req>>(
    protocol: &P,
    saved: Option<&'a P::Saved>,
    target: Option<&'a str>,
) -> Cow<'a, str> {
    match saved {
        Some(saved) => protocol.destination_of(saved.view()),
        None => target.unwrap_or_default().into(),
    }
}
