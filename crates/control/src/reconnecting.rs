//! A schedule whose state outlives its calls, for connections that are made again and again.
//!
//! What flows in: failures, of calls and of what they had opened, and the owner's word that all is
//! well again. What flows out: the next delay of the one run of failures that they all belong to.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt_core::{Delays, Failure, NextRetry, Random, Schedule, SentAt};

/// The handle that the owner of a stream keeps: one run of failures, from call to call, until
/// [`reset`](Self::reset).
///
/// A retry layer sees a stream succeed when its response head comes. A server that accepts every
/// connection and drops it at once would be called again and again without a delay, for each of these
/// calls begins anew. This schedule goes on where the last call left off. That the stream works is
/// for its owner to say, who knows it best: with the first message, say. Successes of calls alone
/// change nothing.
///
/// Clones share the run. A schedule for [each kind of
/// failure](reattempt_core::ScheduleExt::for_failures) inside keeps all its counts, and a reset takes
/// all of them back to their start.
///
/// One handle is meant for one stream at a time: two that fail at once lengthen each other's delays.
/// The lock inside is held while a delay is computed, never while one is waited for.
///
/// ```
/// use std::time::Duration;
/// use reattempt_control::Reconnecting;
/// use reattempt_core::{Failure, FailureKind, ScheduleExt};
/// # use reattempt_core::{Delays, NextRetry, Random, Schedule};
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
/// # let mut random = Fair;
///
/// // `Seconds` waits 1 s, 2 s, 3 s, …
/// let reconnecting = Reconnecting::new(Seconds.immediate_first());
/// let lost = Failure::new(FailureKind::Network);
/// assert_eq!(reconnecting.after(lost, &mut random), Some(Duration::ZERO));
/// assert_eq!(reconnecting.after(lost, &mut random), Some(Duration::from_secs(1)));
///
/// // Another call, by a layer with a clone of it as its schedule, would wait 2 s. But a message came:
/// reconnecting.reset();
/// assert_eq!(reconnecting.after(lost, &mut random), Some(Duration::ZERO));
/// ```
pub struct Reconnecting<S: Schedule> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Schedule> {
    schedule: S,
    run: Mutex<Run<S::Delays>>,
}

/// What has gone wrong since all was well.
struct Run<D> {
    delays: D,
    failures: u32,
    previous: Option<Duration>,
}

impl<S: Schedule> Reconnecting<S> {
    /// A handle without a failure so far, whose delays are those of `schedule`.
    pub fn new(schedule: S) -> Self {
        let run = Mutex::new(Run::new(&schedule));
        Self { shared: Arc::new(Shared { schedule, run }) }
    }

    /// The stream has proved to work: all counts start again.
    pub fn reset(&self) {
        *self.run() = Run::new(&self.shared.schedule);
    }

    /// How many delays were asked for since the last reset.
    pub fn failures(&self) -> u32 {
        self.run().failures
    }

    /// How long to wait before connecting again after `failure`, where no layer does so; `None` when
    /// the schedule has ended.
    pub fn after(&self, failure: Failure, random: &mut dyn Random) -> Option<Duration> {
        self.run().next_delay(&NextRetry::new(0, failure), random)
    }

    fn run(&self) -> MutexGuard<'_, Run<S::Delays>> {
        self.shared.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Schedule for Reconnecting<S>
where
    S: Schedule,
    S::Delays: Send + 'static,
{
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        self.shared.schedule.on_send()
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        self.shared.schedule.on_success(sent_at, random);
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        self.shared.schedule.on_failure(sent_at, failure, random);
    }

    fn is_stateless(&self) -> bool {
        self.shared.schedule.is_stateless()
    }
}

impl<S: Schedule> Delays for Reconnecting<S> {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        self.run().next_delay(retry, random)
    }
}

impl<D: Delays> Run<D> {
    fn new(schedule: &impl Schedule<Delays = D>) -> Self {
        Self { delays: schedule.delays(), failures: 0, previous: None }
    }

    /// The delay after a failure that is one more of this run, whichever it is of its call.
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let number = self.failures;
        // The call knows what it has really waited; before its first retry only the run does.
        let previous = retry.previous.or(self.previous).filter(|_| number > 0);
        self.failures = number.saturating_add(1);
        let of_run = NextRetry::new(number, retry.failure).after(previous).sent_at(retry.sent_at);
        let delay = self.delays.next_delay(&of_run, random)?;
        self.previous = Some(delay);
        Some(delay)
    }
}

impl<S: Schedule> Clone for Reconnecting<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Schedule + fmt::Debug> fmt::Debug for Reconnecting<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnecting")
            .field("schedule", &self.shared.schedule)
            .field("failures", &self.failures())
            .finish()
    }
}
