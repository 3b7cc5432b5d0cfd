//! Adapters that shorten, bound, jitter or chain schedules.
//!
//! Adapters forward every attempt, success and failure to their inner schedules, so adaptive schedules work inside them
//! unchanged.

use alloc::vec::Vec;
use core::time::Duration;

use crate::schedule::forward_events;
use crate::{Delays, Failure, ForFailures, Jitter, Limits, NextRetry, Random, Schedule, SentAt, Warning};

/// An extension trait with adapters for every [`Schedule`].
///
/// Adapters apply from left to right: `schedule.jittered(…).take(5)` has five jittered delays.
///
/// ```
/// use core::time::Duration;
/// use reattempt::schedule::{
///     Delays, Failure, FailureKind, NextRetry, Random, Schedule, ScheduleExt,
/// };
/// # mod reattempt { pub use reattempt_core as schedule; }
/// # #[derive(Clone)]
/// # struct Seconds;
/// # impl Schedule for Seconds {
/// #     type Delays = Self;
/// #     fn delays(&self) -> Self { Seconds }
/// # }
/// # impl Delays for Seconds {
/// #     fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
/// #         Some(Duration::from_secs(u64::from(retry.number) + 1))
/// #     }
/// # }
/// # struct Fair;
/// # impl Random for Fair {
/// #     fn next_u64(&mut self) -> u64 { 0 }
/// # }
/// // `Seconds` waits 1 s, 2 s, 3 s, …
/// let schedule = Seconds.immediate_first().capped(Duration::from_secs(2)).take(4);
///
/// let mut delays = schedule.delays();
/// let mut wait = |number| {
///     let retry = NextRetry::new(number, Failure::new(FailureKind::Server));
///     delays.next_delay(&retry, &mut Fair).map(|delay| delay.as_secs())
/// };
/// assert_eq!([0, 1, 2, 3, 4].map(|number| wait(number)), [Some(0), Some(1), Some(2), Some(2), None]);
/// ```
pub trait ScheduleExt: Schedule + Sized {
    /// Ends the schedule after `retries` retries; 0 turns retries off. See [`Take`].
    fn take(self, retries: u32) -> Take<Self> {
        Take { inner: self, retries }
    }

    /// Limits each delay to `longest`. Prefer the schedule's own cap; see [`Capped`].
    fn capped(self, longest: Duration) -> Capped<Self> {
        Capped { inner: self, longest }
    }

    /// Raises each delay to at least `shortest`. See [`Floor`].
    fn floor(self, shortest: Duration) -> Floor<Self> {
        Floor { inner: self, shortest }
    }

    /// Continues with `second` once this schedule has ended. See [`Then`].
    fn then<S: Schedule>(self, second: S) -> Then<Self, S> {
        Then { first: self, second }
    }

    /// Adds an immediate retry before this schedule. See [`ImmediateFirst`].
    fn immediate_first(self) -> ImmediateFirst<Self> {
        ImmediateFirst { inner: self }
    }

    /// Uses another `schedule`, with its own retry count, for failures that match. See [`ForFailures`].
    ///
    /// If several are added, the last one takes precedence.
    ///
    /// ```
    /// use core::time::Duration;
    /// use reattempt::schedule::{Failure, FailureKind, Schedule, ScheduleExt};
    /// # mod reattempt { pub use reattempt_core as schedule; }
    ///
    /// /// Longer delays for a server that asks for fewer requests.
    /// fn gentle(usual: impl Schedule, longer: impl Schedule) -> impl Schedule {
    ///     usual.for_failures(|failure: &Failure| failure.kind() == FailureKind::Throttled, longer)
    /// }
    /// ```
    fn for_failures<F, S>(self, matches: F, schedule: S) -> ForFailures<F, S, Self>
    where
        F: Fn(&Failure) -> bool + Clone,
        S: Schedule,
    {
        ForFailures::new(matches, schedule, self)
    }

    /// Adds jitter to each delay of this schedule. See [`Jittered`].
    #[doc(alias = "jitter")]
    fn jittered(self, jitter: Jitter) -> Jittered<Self> {
        Jittered { inner: self, jitter }
    }
}

impl<S: Schedule> ScheduleExt for S {}

/// Implements `Schedule` for an adapter. A call's state is the same adapter around the inner schedule's state.
macro_rules! adapter {
    ($Adapter:ident { $($setting:ident),* }, |$state:ident, $retry:ident, $random:ident| $next:expr) => {
        impl<S: Schedule> Schedule for $Adapter<S> {
            type Delays = $Adapter<S::Delays>;

            fn delays(&self) -> Self::Delays {
                $Adapter { inner: self.inner.delays(), $($setting: self.$setting),* }
            }

            forward_events!(self => self.inner);
        }

        impl<D: Delays> Delays for $Adapter<D> {
            #[inline]
            fn next_delay(&mut self, $retry: &NextRetry, $random: &mut dyn Random) -> Option<Duration> {
                let $state = self;
                $next
            }

            fn is_shared(&self) -> bool {
                self.inner.is_shared()
            }
        }
    };
}

/// The first `n` retries of a schedule, created by [`ScheduleExt::take`].
///
/// `Take<S>` is the schedule, and `Take<S::Delays>` the state of one call. Most adapters have this form.
#[derive(Debug, Clone, Copy)]
pub struct Take<T> {
    inner: T,
    retries: u32,
}

adapter!(Take { retries }, |state, retry, random| if retry.number < state.retries {
    state.inner.next_delay(retry, random)
} else {
    None
});

/// A schedule with a maximum delay, created by [`ScheduleExt::capped`].
///
/// The maximum applies after any jitter of the inner schedule. Every longer delay becomes exactly the maximum, so
/// clients retry at the same time. Prefer the schedule's own cap, which applies before the jitter. Alternatively, add
/// the jitter last: `schedule.capped(…).jittered(…)`.
#[derive(Debug, Clone, Copy)]
pub struct Capped<T> {
    inner: T,
    longest: Duration,
}

adapter!(Capped { longest }, |state, retry, random| state
    .inner
    .next_delay(retry, random)
    .map(|delay| delay.min(state.longest)));

/// A schedule with a minimum delay, created by [`ScheduleExt::floor`].
///
/// As with [`Capped`], the limit applies after any jitter of the inner schedule.
#[derive(Debug, Clone, Copy)]
pub struct Floor<T> {
    inner: T,
    shortest: Duration,
}

adapter!(Floor { shortest }, |state, retry, random| state
    .inner
    .next_delay(retry, random)
    .map(|delay| delay.max(state.shortest)));

/// A schedule whose delays are jittered, created by [`ScheduleExt::jittered`].
///
/// The inner schedule receives the jittered delay as [`NextRetry::previous`]. Most schedules ignore it, because their
/// delays depend on the retry number.
#[derive(Debug, Clone, Copy)]
pub struct Jittered<T> {
    inner: T,
    jitter: Jitter,
}

adapter!(Jittered { jitter }, |state, retry, random| {
    let interval = state.inner.next_delay(retry, random)?;
    Some(state.jitter.draw(interval, random))
});

/// An immediate retry followed by a schedule, created by [`ScheduleExt::immediate_first`].
///
/// The second retry is retry 0 of the inner schedule, and has no previous delay. Jitter or a floor that is added before
/// this adapter does not affect the first retry.
#[derive(Debug, Clone, Copy)]
pub struct ImmediateFirst<T> {
    inner: T,
}

adapter!(ImmediateFirst {}, |state, retry, random| {
    match retry.number {
        0 => Some(Duration::ZERO),
        _ => state.inner.next_delay(&counted_from(retry, 1), random),
    }
});

/// A schedule followed by another, created by [`ScheduleExt::then`].
///
/// The second schedule starts its own count: its first retry is retry 0, without a previous delay. Once the first
/// schedule has ended, it is not used again.
///
/// Both schedules receive the same [`SentAt`], so at most one of them may use it.
#[derive(Debug, Clone, Copy)]
pub struct Then<A, B> {
    first: A,
    second: B,
}

/// The per-call state of [`Then`].
#[derive(Debug, Clone, Copy)]
pub struct ThenDelays<A, B> {
    first: A,
    second: B,
    /// The retry number at which the second schedule took over.
    second_since: Option<u32>,
}

impl<A: Schedule, B: Schedule> Schedule for Then<A, B> {
    type Delays = ThenDelays<A::Delays, B::Delays>;

    fn delays(&self) -> Self::Delays {
        ThenDelays { first: self.first.delays(), second: self.second.delays(), second_since: None }
    }

    fn on_send(&self) -> SentAt {
        // The schedule that does not use `SentAt` returns 0.
        SentAt(self.first.on_send().0.max(self.second.on_send().0))
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        self.first.on_success(sent_at, random);
        self.second.on_success(sent_at, random);
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        self.first.on_failure(sent_at, failure, random);
        self.second.on_failure(sent_at, failure, random);
    }

    fn is_stateless(&self) -> bool {
        self.first.is_stateless() && self.second.is_stateless()
    }

    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        [self.first.validate(limits), self.second.validate(limits)].concat()
    }
}

impl<A: Delays, B: Delays> Delays for ThenDelays<A, B> {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        if self.second_since.is_none()
            && let Some(delay) = self.first.next_delay(retry, random)
        {
            return Some(delay);
        }
        let since = *self.second_since.get_or_insert(retry.number);
        self.second.next_delay(&counted_from(retry, since), random)
    }

    fn is_shared(&self) -> bool {
        match self.second_since {
            None => self.first.is_shared(),
            Some(_) => self.second.is_shared(),
        }
    }
}

/// Renumbers a retry for a schedule that took over at retry `first`.
fn counted_from(retry: &NextRetry, first: u32) -> NextRetry {
    let number = retry.number.saturating_sub(first);
    NextRetry { number, previous: retry.previous.filter(|_| number > 0), ..*retry }
}
