//! Error modes, which determine the error type of calls and the time limits that may interrupt them.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::call::clock;
use crate::call::clock::{Instant, sleep_until};
use crate::call::errors::BoxError;
pub(crate) use crate::call::protocol::OwnError;
use crate::call::protocol::sealed::Sealed;
use crate::call::timed_out::TimedOut;

/// The mode with tower's `BoxError`, which contains a [`TimedOut`] if a time limit interrupted the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BoxedError;

/// The mode with the inner service's own error type, for protocols that have responses for local failures. If the
/// deadline passes or the connection is lost, the call ends with such a response. This mode is the default for those
/// protocols.
///
/// A policy with a time limit for each attempt needs [`BoxedError`], because there is no such response for that limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answered;

/// The error type of calls whose inner service fails with an `E`: [`OwnError`], [`BoxedError`] or [`Answered`]. This
/// trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a policy or a layer that keeps the inner service's error type needs `{E}: std::error::Error`",
    note = "for an inner service whose error is a `BoxError` (a `GuardLayer` of HTTP, tower's Timeout, Buffer or LoadShed, kube's client), call `.boxed_errors()` on the `RetryPolicy`, the `HedgePolicy` or the `GuardLayer` around it",
    note = "for telemetry around such a client, such as a `StandardLayer`, call `HttpTelemetry::boxed_errors` before `around`"
)]
pub trait ErrorMode<E>: Sealed {
    /// The caller's error type.
    type Error;
    /// The timer that interrupts an attempt; `()` if this mode has none.
    #[doc(hidden)]
    type Timer: Default;
    /// `true` if time limits interrupt attempts, and deadlines interrupt calls.
    #[doc(hidden)]
    const INTERRUPTS: bool;
    /// `true` if the protocol has a response for a deadline that has passed.
    #[doc(hidden)]
    const ANSWERS: bool = false;
    /// `true` if a call can end because its deadline has passed.
    #[doc(hidden)]
    const ENDS_LATE: bool = Self::ANSWERS || Self::INTERRUPTS;

    /// Converts the inner service's error to the caller's.
    #[doc(hidden)]
    fn own(error: E) -> Self::Error;

    /// Applies a function to the caller's error if it is a `BoxError`.
    #[doc(hidden)]
    fn explained(error: Self::Error, explain: impl FnOnce(BoxError) -> BoxError) -> Self::Error {
        let _ = explain;
        error
    }

    /// Returns the error in the form that classifiers take.
    #[doc(hidden)]
    fn view(error: &Self::Error) -> &(dyn Error + 'static);

    /// Returns the timer, if this mode has one.
    #[doc(hidden)]
    fn timer(timer: Pin<&mut Self::Timer>) -> Option<Pin<&mut AttemptTimer>>;

    /// Returns the caller's error for an interrupted attempt, or `None` if only the protocol can respond to it.
    #[doc(hidden)]
    fn timed_out(error: TimedOut) -> Option<Self::Error> {
        let _ = error;
        None
    }
}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ErrorMode<E> for OwnError {
    type Error = E;
    type Timer = ();
    const INTERRUPTS: bool = false;

    #[inline]
    fn own(error: E) -> E {
        error
    }

    #[inline]
    fn view(error: &E) -> &(dyn Error + 'static) {
        error
    }

    #[inline]
    fn timer(_: Pin<&mut ()>) -> Option<Pin<&mut AttemptTimer>> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ErrorMode<E> for Answered {
    type Error = E;
    type Timer = AttemptTimer;
    const INTERRUPTS: bool = false;
    const ANSWERS: bool = true;

    #[inline]
    fn own(error: E) -> E {
        error
    }

    #[inline]
    fn view(error: &E) -> &(dyn Error + 'static) {
        error
    }

    #[inline]
    fn timer(timer: Pin<&mut AttemptTimer>) -> Option<Pin<&mut AttemptTimer>> {
        Some(timer)
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> ErrorMode<E> for BoxedError {
    type Error = BoxError;
    type Timer = AttemptTimer;
    const INTERRUPTS: bool = true;

    fn own(error: E) -> BoxError {
        error.into()
    }

    fn explained(error: BoxError, explain: impl FnOnce(BoxError) -> BoxError) -> BoxError {
        explain(error)
    }

    fn view(error: &BoxError) -> &(dyn Error + 'static) {
        &**error
    }

    #[inline]
    fn timer(timer: Pin<&mut AttemptTimer>) -> Option<Pin<&mut AttemptTimer>> {
        Some(timer)
    }

    fn timed_out(error: TimedOut) -> Option<BoxError> {
        Some(Box::new(error))
    }
}

impl Sealed for OwnError {}
impl Sealed for BoxedError {}
impl Sealed for Answered {}

pin_project! {
    /// The timer of one attempt, which starts only if the attempt's first poll returns `Pending`.
    #[derive(Default)]
    pub struct AttemptTimer {
        started: Option<Instant>,
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl AttemptTimer {
    /// Polls the timer. The first poll creates it with the time `due(now)`. Returns the time of the first poll once the
    /// timer expires.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        due: impl FnOnce(Instant) -> Option<Instant>,
    ) -> Poll<Instant> {
        let mut this = self.project();
        let started = *this.started.get_or_insert_with(|| {
            let now = Instant::now();
            // Timers need a runtime, so without one the limit has no effect.
            this.sleep.set(due(now).filter(|_| clock::has_timer()).map(sleep_until));
            now
        });
        match this.sleep.as_pin_mut() {
            Some(sleep) => clock::poll_interrupt(sleep, cx).map(|()| started),
            None => Poll::Pending,
        }
    }

    /// Discards the timer before the next attempt. Returns the time at which the attempt first returned `Pending`.
    #[inline]
    pub(crate) fn reset(mut self: Pin<&mut Self>) -> Option<Instant> {
        let started = self.started;
        if started.is_some() {
            self.set(Self::default());
        }
        started
    }
}

impl fmt::Debug for AttemptTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimer").finish_non_exhaustive()
    }
}
