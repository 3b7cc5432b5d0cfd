//! Error modes: the error type that a call ends with, and whether time limits may interrupt it.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::call::clock;
use crate::call::errors::BoxError;
pub(crate) use crate::call::protocol::OwnError;
use crate::call::timed_out::TimedOut;

/// tower's `BoxError`, with a [`TimedOut`] inside when a time limit interrupted the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BoxedError;

/// The inner service's own error type. If the deadline of a call passes or its connection is lost, the protocol returns
/// a response. It is the default of protocols that have such responses.
///
/// A time limit for each attempt does not interrupt under this mode; that needs [`BoxedError`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answered;

/// A mode that decides the error type of calls whose inner service fails with an `E`: [`OwnError`], [`BoxedError`] or
/// [`Answered`]. Sealed.
#[diagnostic::on_unimplemented(
    message = "a policy or a layer that keeps the inner service's error type needs `{E}: std::error::Error`",
    note = "for an inner service whose error is a `BoxError` (a `GuardLayer` of HTTP, tower's Timeout, Buffer or LoadShed, kube's client), call `.boxed_errors()` on the `RetryPolicy`, the `HedgePolicy` or the `GuardLayer` around it"
)]
pub trait ErrorMode<E>: sealed::Sealed {
    /// The caller's error type.
    type Error;
    /// The timer that interrupts an attempt; `()` if none does.
    #[doc(hidden)]
    type Timer: Default;
    /// Proof that an attempt was interrupted.
    #[doc(hidden)]
    type Interrupt;
    /// `true` if the time limit of an attempt interrupts it, and a deadline the call.
    #[doc(hidden)]
    const INTERRUPTS: bool;
    /// `true` if a deadline that passes is answered by the protocol.
    #[doc(hidden)]
    const ANSWERS: bool = false;
    /// `true` if a call can end because its deadline has passed.
    #[doc(hidden)]
    const ENDS_LATE: bool = Self::ANSWERS || Self::INTERRUPTS;

    /// The caller's error for one of the inner service.
    #[doc(hidden)]
    fn own(error: E) -> Self::Error;

    /// The caller's error, changed where its type allows it.
    #[doc(hidden)]
    fn explained(error: Self::Error, explain: impl FnOnce(BoxError) -> BoxError) -> Self::Error {
        let _ = explain;
        error
    }

    /// Returns the error as a classifier reads it.
    #[doc(hidden)]
    fn view(error: &Self::Error) -> &(dyn Error + 'static);

    /// Polls the timer, which is made when it is first polled, at a moment `now`, due at `due(now)`.
    /// Ready with that moment.
    #[doc(hidden)]
    fn poll_interrupt(
        timer: Pin<&mut Self::Timer>,
        cx: &mut Context<'_>,
        due: impl FnOnce(Instant) -> Option<Instant>,
    ) -> Poll<(Self::Interrupt, Instant)>;

    /// Returns the proof that a limit may end the call while no attempt is under way. `None` if no limit can.
    #[doc(hidden)]
    fn interrupt() -> Option<Self::Interrupt>;

    /// Returns the moment at which the attempt was first not ready, if errors contain it.
    #[doc(hidden)]
    fn since(timer: &Self::Timer) -> Option<Instant> {
        let _ = timer;
        None
    }

    /// Forgets the timer: another attempt begins.
    #[doc(hidden)]
    fn reset(timer: Pin<&mut Self::Timer>);

    /// Returns the caller's error for an interrupted attempt; `None` if the protocol has a response for it.
    #[doc(hidden)]
    fn timed_out(interrupt: Self::Interrupt, error: TimedOut) -> Option<Self::Error>;
}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ErrorMode<E> for OwnError {
    type Error = E;
    type Timer = ();
    type Interrupt = Infallible;
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
    fn poll_interrupt(
        _: Pin<&mut ()>,
        _: &mut Context<'_>,
        _: impl FnOnce(Instant) -> Option<Instant>,
    ) -> Poll<(Infallible, Instant)> {
        Poll::Pending
    }

    fn interrupt() -> Option<Infallible> {
        None
    }

    #[inline]
    fn reset(_: Pin<&mut ()>) {}

    fn timed_out(interrupt: Infallible, _: TimedOut) -> Option<E> {
        match interrupt {}
    }
}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ErrorMode<E> for Answered {
    type Error = E;
    type Timer = AttemptTimer;
    type Interrupt = ();
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

    fn poll_interrupt(
        timer: Pin<&mut AttemptTimer>,
        cx: &mut Context<'_>,
        due: impl FnOnce(Instant) -> Option<Instant>,
    ) -> Poll<((), Instant)> {
        timer.poll(cx, due).map(|started| ((), started))
    }

    fn interrupt() -> Option<()> {
        Some(())
    }

    #[inline]
    fn reset(mut timer: Pin<&mut AttemptTimer>) {
        if timer.started.is_some() {
            timer.set(AttemptTimer::default());
        }
    }

    fn timed_out((): (), _: TimedOut) -> Option<E> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> ErrorMode<E> for BoxedError {
    type Error = BoxError;
    type Timer = AttemptTimer;
    type Interrupt = ();
    const INTERRUPTS: bool = true;

    fn own(error: E) -> BoxError {
        error.into()
    }

    fn since(timer: &AttemptTimer) -> Option<Instant> {
        timer.started
    }

    fn explained(error: BoxError, explain: impl FnOnce(BoxError) -> BoxError) -> BoxError {
        explain(error)
    }

    fn view(error: &BoxError) -> &(dyn Error + 'static) {
        &**error
    }

    fn poll_interrupt(
        timer: Pin<&mut AttemptTimer>,
        cx: &mut Context<'_>,
        due: impl FnOnce(Instant) -> Option<Instant>,
    ) -> Poll<((), Instant)> {
        timer.poll(cx, due).map(|started| ((), started))
    }

    fn interrupt() -> Option<()> {
        Some(())
    }

    fn reset(mut timer: Pin<&mut AttemptTimer>) {
        timer.set(AttemptTimer::default());
    }

    fn timed_out((): (), error: TimedOut) -> Option<BoxError> {
        Some(Box::new(error))
    }
}

mod sealed {
    #[expect(unnameable_types, reason = "no other crate implements `ErrorMode`")]
    pub trait Sealed {}

    impl Sealed for super::OwnError {}
    impl Sealed for super::BoxedError {}
    impl Sealed for super::Answered {}
}

pin_project! {
    /// The timer of one attempt, made only when the attempt is not ready at once.
    #[derive(Default)]
    pub struct AttemptTimer {
        started: Option<Instant>,
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl AttemptTimer {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>, due: impl FnOnce(Instant) -> Option<Instant>) -> Poll<Instant> {
        let mut this = self.project();
        let started = *this.started.get_or_insert_with(|| {
            let now = Instant::now();
            // Without a runtime nothing can wait, and the limit cannot be kept.
            this.sleep.set(due(now).filter(|_| clock::has_timer()).map(sleep_until));
            now
        });
        match this.sleep.as_pin_mut() {
            Some(sleep) => clock::poll_interrupt(sleep, cx).map(|()| started),
            None => Poll::Pending,
        }
    }
}

impl fmt::Debug for AttemptTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimer").finish_non_exhaustive()
    }
}
