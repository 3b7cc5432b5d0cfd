//! The contract of a schedule: how long to wait before each retry.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::{Failure, Random};

/// What the engine tells a schedule about the retry that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextRetry {
    /// The number of the retry, from 0: `0` stands before the second attempt.
    pub number: u32,
    /// The delay used before the last attempt; `None` before the first retry.
    pub previous: Option<Duration>,
    /// How the last attempt failed.
    pub failure: Failure,
    /// What [`Schedule::on_send`] gave when the failed attempt was sent.
    pub sent_at: SentAt,
}

impl NextRetry {
    /// The retry with this number after this failure, with no delay before it yet.
    pub const fn new(number: u32, failure: Failure) -> Self {
        Self { number, previous: None, failure, sent_at: SentAt(0) }
    }

    /// The same, after `previous` was waited before the last attempt.
    pub const fn after(self, previous: Option<Duration>) -> Self {
        Self { previous, ..self }
    }

    /// The same, for an attempt that was admitted so.
    pub const fn sent_at(self, sent_at: SentAt) -> Self {
        Self { sent_at, ..self }
    }
}

/// A schedule's own note of the moment an attempt was sent, handed back with its outcome.
///
/// Schedules whose state is shared by many calls tell old news from new by it; all others leave the
/// default, which costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentAt(pub u64);

/// How long to wait before each retry of a call.
///
/// A schedule is shared by all calls, on whatever thread they are; what belongs to one call lives in
/// its [`Delays`], made when the call first fails.
pub trait Schedule: Send + Sync + 'static {
    /// The state of one call.
    type Delays: Delays;

    /// Fresh state for a call that has just failed for the first time.
    fn delays(&self) -> Self::Delays;

    /// Called when an attempt is sent; the value comes back with the attempt's outcome.
    #[inline]
    fn on_send(&self) -> SentAt {
        SentAt::default()
    }

    /// Called when a call succeeds, whether it was retried or not.
    #[inline]
    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        let _ = (sent_at, random);
    }

    /// Called when an attempt fails in a way that a retry may mend, whether or not one follows, and
    /// before its delay is asked for.
    #[inline]
    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        let _ = (sent_at, failure, random);
    }

    /// True when [`on_send`](Self::on_send), [`succeeded`](Self::succeeded) and [`failed`](Self::failed)
    /// do nothing, so that the caller may leave them out. Default `false`, which is never wrong.
    #[inline]
    fn is_stateless(&self) -> bool {
        false
    }
}

/// The delays of one call, drawn one by one.
///
/// An implementation must not panic for any retry number up to `u32::MAX`.
pub trait Delays {
    /// The delay before this retry, or `None` when there is to be no further one.
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration>;

    /// Returns `true` if the last delay is an interval that all calls share.
    ///
    /// A call that such a delay ends has a stop reason of its own
    /// ([`IntervalTooLong`](crate::StopReason::IntervalTooLong)).
    #[inline]
    fn is_shared(&self) -> bool {
        false
    }
}

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

    fn on_send(&self) -> SentAt {
        (**self).on_send()
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        (**self).on_success(sent_at, random);
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        (**self).on_failure(sent_at, failure, random);
    }

    fn is_stateless(&self) -> bool {
        (**self).is_stateless()
    }
}

/// Any schedule, its type erased: for schedules chosen at run time or for a single request.
///
/// Clones share the schedule. Each call's state is one boxed value, made at the first failure.
#[derive(Clone)]
pub struct SharedSchedule(Arc<dyn ErasedSchedule>);

impl SharedSchedule {
    /// Erases the type of `schedule`.
    pub fn new<S>(schedule: S) -> Self
    where
        S: Schedule,
        S::Delays: Send + 'static,
    {
        Self(Arc::new(Erased(schedule)))
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
        self.0.boxed_delays()
    }

    fn on_send(&self) -> SentAt {
        self.0.on_send()
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        self.0.on_success(sent_at, random);
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        self.0.on_failure(sent_at, failure, random);
    }

    fn is_stateless(&self) -> bool {
        self.0.is_stateless()
    }
}

/// The object-safe face of [`Schedule`].
trait ErasedSchedule: Send + Sync {
    fn boxed_delays(&self) -> Box<dyn Delays + Send>;
    fn on_send(&self) -> SentAt;
    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random);
    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random);
    fn is_stateless(&self) -> bool;
}

struct Erased<S>(S);

impl<S> ErasedSchedule for Erased<S>
where
    S: Schedule,
    S::Delays: Send + 'static,
{
    fn boxed_delays(&self) -> Box<dyn Delays + Send> {
        Box::new(self.0.delays())
    }

    fn on_send(&self) -> SentAt {
        self.0.on_send()
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        self.0.on_success(sent_at, random);
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        self.0.on_failure(sent_at, failure, random);
    }

    fn is_stateless(&self) -> bool {
        self.0.is_stateless()
    }
}
