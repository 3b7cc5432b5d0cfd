//! A schedule for streams that are reopened when they break. Its delays continue from call to call.
//!
//! A server may accept each connection and then close it immediately. Each call then succeeds, so the next call would
//! start without a delay. Here all failures belong to one run, until the stream's owner resets it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reattempt_core::{Delays, Failure, Limits, NextRetry, Random, Schedule, SentAt, Warning};

/// A schedule for a stream that is reopened whenever it breaks. Its delays continue from one call to the next until
/// [`reset`](Self::reset).
///
/// A call that opens a stream succeeds when the response head arrives. If the server then immediately closes the
/// connection, the next call would normally start without a delay. This schedule continues where the last call stopped,
/// and successful calls do not reset it. The stream's owner resets it once the stream works, for example at its first
/// message.
///
/// Clones share one run of failures. If the inner schedule differs by [kind of
/// failure](reattempt_core::ScheduleExt::for_failures), a reset affects all kinds.
///
/// Use one handle per stream: two streams that share a handle lengthen each other's delays. A lock is held while a
/// delay is computed, but never during a delay.
///
/// ```
/// use std::time::Duration;
/// use reattempt::schedule::{Failure, FailureKind, Linear, Reconnecting, ScheduleExt};
/// # mod reattempt {
/// #     pub mod schedule {
/// #         pub use reattempt_core::{Failure, FailureKind, ScheduleExt};
/// #         pub use reattempt_schedule_fixed::Linear;
/// #         pub use reattempt_schedule_responsive::Reconnecting;
/// #     }
/// # }
/// # let mut random = reattempt_testing::Never;
///
/// // The delays are 0 s, 1 s, 2 s, …
/// let reconnecting = Reconnecting::new(Linear::new(Duration::from_secs(1)).immediate_first());
/// let lost = Failure::new(FailureKind::Network);
/// assert_eq!(reconnecting.after(lost, &mut random), Some(Duration::ZERO));
/// assert_eq!(reconnecting.after(lost, &mut random), Some(Duration::from_secs(1)));
///
/// // The delay after the next failure would be 2 s. But the stream has received a message:
/// reconnecting.reset();
/// assert_eq!(reconnecting.after(lost, &mut random), Some(Duration::ZERO));
/// ```
pub struct Reconnecting<S: Schedule> {
    shared: Arc<ReconnectingState<S>>,
}

struct ReconnectingState<S: Schedule> {
    schedule: S,
    run: Mutex<Run<S::Delays>>,
}

/// The failures since the last reset.
struct Run<D> {
    delays: D,
    failures: u32,
    previous: Option<Duration>,
}

impl<S: Schedule> Reconnecting<S> {
    /// Creates a handle without failures. Its delays are those of `schedule`.
    pub fn new(schedule: S) -> Self {
        let run = Mutex::new(Run::new(&schedule));
        Self { shared: Arc::new(ReconnectingState { schedule, run }) }
    }

    /// Ends the run of failures. All counts start again at 0.
    pub fn reset(&self) {
        *self.run() = Run::new(&self.shared.schedule);
    }

    /// Returns the number of failures since the last reset, one for each computed delay.
    pub fn failures(&self) -> u32 {
        self.run().failures
    }

    /// Returns the delay before reconnecting after `failure`, or `None` if the schedule has ended.
    ///
    /// Use it for streams that are opened without a retry layer.
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

    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        self.shared.schedule.validate(limits)
    }
}

impl<S: Schedule> Delays for Reconnecting<S> {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        self.run().next_delay(retry, random)
    }

    fn is_shared(&self) -> bool {
        self.run().delays.is_shared()
    }
}

impl<D: Delays> Run<D> {
    fn new(schedule: &impl Schedule<Delays = D>) -> Self {
        Self { delays: schedule.delays(), failures: 0, previous: None }
    }

    /// Computes the delay after another failure in this run.
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let number = self.failures;
        // The call's own previous delay is preferred, because it may have been set by the server. Before its first
        // retry, a call has none, so the run's is used.
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
