//! Schedules, which set the delay before each retry.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{Failure, Limits, Random, Warning};

/// The input of a schedule: the retry for which it computes a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextRetry {
    /// The number of the retry, from 0: retry 0 is the second attempt.
    pub number: u32,
    /// The delay before the last attempt, or `None` if that was the first.
    pub previous: Option<Duration>,
    /// The failure of the last attempt.
    pub failure: Failure,
    /// The value that [`Schedule::on_send`] returned when the failed attempt was sent.
    pub sent_at: SentAt,
}

impl NextRetry {
    /// Creates a retry with this number and failure, and no previous delay.
    pub const fn new(number: u32, failure: Failure) -> Self {
        Self { number, previous: None, failure, sent_at: SentAt(0) }
    }

    /// Sets the delay before the previous attempt.
    pub const fn after(self, previous: Option<Duration>) -> Self {
        Self { previous, ..self }
    }

    /// Sets the value that [`Schedule::on_send`] returned for the failed attempt.
    pub const fn sent_at(self, sent_at: SentAt) -> Self {
        Self { sent_at, ..self }
    }
}

/// A value that a schedule attaches to an attempt when it is sent, and gets back with the outcome.
///
/// An adaptive schedule uses it to ignore the outcomes of attempts that were sent before its last change. Other
/// schedules return the default, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentAt(pub u64);

/// A source of delays, shared by all calls of a client.
///
/// The state of one call is its [`Delays`], created when the call first fails. The [crate] has an example.
#[expect(unused_variables, reason = "a default ignores its arguments")]
pub trait Schedule: Send + Sync + 'static {
    /// The state of one call.
    type Delays: Delays;

    /// Creates the state of a call at its first failure.
    fn delays(&self) -> Self::Delays;

    /// Records that an attempt is being sent. The returned value is passed back with the attempt's outcome.
    #[inline]
    fn on_send(&self) -> SentAt {
        SentAt::default()
    }

    /// Records the success of a call, whether or not it was retried.
    #[inline]
    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {}

    /// Records a retryable failure, whether or not a retry follows. Called before [`Delays::next_delay`].
    #[inline]
    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {}

    /// Returns `true` if [`on_send`](Self::on_send), [`on_success`](Self::on_success) and
    /// [`on_failure`](Self::on_failure) do nothing. Callers may then skip them. Default: `false`, which is always safe.
    #[inline]
    fn is_stateless(&self) -> bool {
        false
    }

    /// Returns a warning for each setting outside its recommended range, given these limits. Default: no warnings.
    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        Vec::new()
    }
}

/// The delays of one call, in order.
///
/// An implementation must not panic for any retry number up to `u32::MAX`.
pub trait Delays {
    /// Returns the delay before this retry; `None` ends the call's retries.
    ///
    /// This method is called before every retry. A delay requested by the server is used instead of the result, but the
    /// schedule still counts the retry.
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration>;

    /// Returns `true` if the last delay is an interval shared by all calls.
    ///
    /// If such a delay would exceed the limit on elapsed time, the stop reason is
    /// [`IntervalTooLong`](crate::StopReason::IntervalTooLong).
    #[inline]
    fn is_shared(&self) -> bool {
        false
    }
}

/// Forwards every `Schedule` method except `delays` to another schedule.
macro_rules! forward_events {
    ($self:ident => $inner:expr) => {
        #[inline]
        fn on_send(&$self) -> SentAt {
            $inner.on_send()
        }

        #[inline]
        fn on_success(&$self, sent_at: SentAt, random: &mut dyn Random) {
            $inner.on_success(sent_at, random);
        }

        #[inline]
        fn on_failure(&$self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
            $inner.on_failure(sent_at, failure, random);
        }

        #[inline]
        fn is_stateless(&$self) -> bool {
            $inner.is_stateless()
        }

        fn validate(&$self, limits: &Limits) -> Vec<Warning> {
            $inner.validate(limits)
        }
    };
}
pub(crate) use forward_events;

impl<D: Delays + ?Sized> Delays for Box<D> {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        (**self).next_delay(retry, random)
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }
}

impl<S: Schedule + ?Sized> Schedule for Arc<S> {
    type Delays = S::Delays;

    fn delays(&self) -> Self::Delays {
        (**self).delays()
    }

    forward_events!(self => **self);
}

/// A type-erased schedule, for schedules that are chosen at run time or per request.
///
/// Clones share the schedule. The state of a call is boxed, and is created at its first failure.
#[derive(Clone)]
pub struct SharedSchedule(Arc<dyn Schedule<Delays = BoxedDelays>>);

type BoxedDelays = Box<dyn Delays + Send>;

impl SharedSchedule {
    /// Erases the type of `schedule`.
    pub fn new<S>(schedule: S) -> Self
    where
        S: Schedule,
        S::Delays: Send + 'static,
    {
        Self(Arc::new(ErasedSchedule(schedule)))
    }
}

impl fmt::Debug for SharedSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSchedule").finish_non_exhaustive()
    }
}

impl Schedule for SharedSchedule {
    type Delays = Box<dyn Delays + Send>;

    fn delays(&self) -> Self::Delays {
        self.0.delays()
    }

    forward_events!(self => self.0);
}

/// A schedule whose calls have boxed state.
struct ErasedSchedule<S>(S);

impl<S> Schedule for ErasedSchedule<S>
where
    S: Schedule,
    S::Delays: Send + 'static,
{
    type Delays = BoxedDelays;

    fn delays(&self) -> BoxedDelays {
        Box::new(self.0.delays())
    }

    forward_events!(self => self.0);
}
