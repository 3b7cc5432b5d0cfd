//! The attempts of one operation, for the asynchronous and the blocking form.
//!
//! Input: the result of each attempt. Output: the result of the call, or the time to wait for the next attempt.

use std::ops::ControlFlow;
use std::time::Duration;

use reattempt_core::{Budget, CallEnd, Classification, Permit, Schedule, SentAt, StopReason};
use tokio::time::Instant;

use super::{Operations, RetryError};
use crate::call::context::CallContext;
use crate::call::options::CallOptions;
use crate::call::progress::{FailedAttempt, Progress};
use crate::call::report::{Report, ReportSlot};
use crate::call::wishes::Wishes;
use crate::policy::RetryPolicy;

/// All operations of a policy are for the same: they share a bucket of the budget.
const DESTINATION: &str = "";

/// The state of a call whose attempts its driver makes.
pub(super) struct Tries<D: Schedule, B, J, N> {
    policy: RetryPolicy<Operations, D, B>,
    judge: J,
    notify: N,
    context: CallContext,
    /// The number of the attempt under way.
    number: u32,
    sent_at: SentAt,
    progress: Option<Box<Progress<D::Delays>>>,
    /// The permit of the call itself, from a budget that counts calls.
    counted: Permit,
}

impl<D: Schedule, B, J, N> Tries<D, B, J, N> {
    pub(super) fn new(
        policy: RetryPolicy<Operations, D, B>,
        options: Option<&CallOptions>,
        judge: J,
        notify: N,
    ) -> Self {
        let mut context = CallContext::new(&policy.settings, Wishes::default(), options);
        context.repeatable =
            context.options.as_ref().and_then(CallOptions::get_repeatable).unwrap_or(true);
        Self {
            policy,
            judge,
            notify,
            context,
            number: 0,
            sent_at: SentAt::default(),
            progress: None,
            counted: Permit::free(),
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The wait between attempts is the thread's, and needs no runtime.
    pub(super) fn blocking(&mut self) {
        self.context.blocking = true;
    }

    /// The call takes time from now on, if it has not before.
    pub(super) fn takes_time(&mut self) {
        self.context.started.get_or_insert_with(Instant::now);
    }

    /// Records that the next attempt begins, and with the first one the call.
    pub(super) fn attempt(&mut self)
    where
        B: Budget,
    {
        if self.number == 0 && self.policy.settings.counts_calls {
            self.counted = self.policy.settings.budget.on_start(DESTINATION);
        }
        self.number = self.number.saturating_add(1);
        if let Some(progress) = &mut self.progress {
            progress.on_send();
        }
        self.sent_at = self.context.on_send(&self.policy.settings.schedule);
    }

    /// Records the end of an attempt. Returns the result of the call, or the time to wait for the next attempt.
    pub(super) fn settle<T, E>(
        &mut self,
        result: Result<T, E>,
    ) -> ControlFlow<Result<T, RetryError<E>>, Option<Instant>>
    where
        B: Budget,
        J: Fn(&E) -> Classification,
        N: FnMut(&E, Duration),
    {
        let error = match result {
            Ok(value) => {
                self.succeed();
                return ControlFlow::Break(Ok(value));
            }
            Err(error) => error,
        };
        let now = Instant::now();
        let started = *self.context.started.get_or_insert(now);
        let classification = (self.judge)(&error);
        let stop = match classification.verdict.failure() {
            None => StopReason::Permanent,
            Some(failure) => {
                let attempt = FailedAttempt {
                    number: self.number,
                    now,
                    classification,
                    failure: *failure,
                    refused: None,
                    undone: None,
                    source_failed: false,
                    at_hand: true,
                    sent_at: self.sent_at,
                    error: None,
                };
                let (policy, context) = (&self.policy, &self.context);
                let progress = self.progress.get_or_insert_with(|| {
                    Box::new(Progress::new(&policy.settings, context, started, DESTINATION.into()))
                });
                match progress.failed(&policy.settings, context, attempt) {
                    Ok(granted) => {
                        progress.notify_retry(&policy.settings, self.number.saturating_add(1));
                        let wait =
                            granted.due.map(|due| due.saturating_duration_since(granted.now));
                        (self.notify)(&error, wait.unwrap_or_default());
                        return ControlFlow::Continue(granted.due);
                    }
                    Err(stop) => stop,
                }
            }
        };
        ControlFlow::Break(Err(self.give_up(error, stop)))
    }

    /// The call ends with an error.
    fn give_up<E>(&mut self, error: E, stop: StopReason) -> RetryError<E> {
        let elapsed = self.context.started.map_or(Duration::ZERO, |started| started.elapsed());
        let report = self.report(stop);
        if let Some(slot) = self.slot() {
            slot.put(report.clone());
        }
        RetryError::new(error, report, elapsed)
    }

    /// The call ends with a value.
    fn succeed(&mut self)
    where
        B: Budget,
    {
        self.context.succeeded(&self.policy.settings, self.sent_at);
        self.settled(StopReason::Succeeded);
        if let Some(slot) = self.slot() {
            slot.put(self.report(StopReason::Succeeded));
        } else if self.policy.settings.observer.is_some() {
            drop(self.report(StopReason::Succeeded));
        }
    }

    /// Reports the end of the call to the budget.
    fn settled(&mut self, stop: StopReason)
    where
        B: Budget,
    {
        let account = self.progress.as_mut().map(|progress| progress.account());
        // An error earns nothing, also one that is permanent.
        let end = match stop {
            StopReason::Succeeded => CallEnd::Succeeded,
            _ => CallEnd::Failed,
        };
        account.unwrap_or_default().settle(end, DESTINATION, &self.policy.settings.budget);
    }

    /// Notifies the observer of the end of the call, and returns the report.
    fn report(&mut self, stop: StopReason) -> Report {
        let (policy, context) = (&self.policy, &self.context);
        let mut progress = match self.progress.take() {
            Some(progress) => *progress,
            None => {
                let started = context.started.unwrap_or_else(Instant::now);
                Progress::new(&policy.settings, context, started, DESTINATION.into())
            }
        };
        progress.conclude(&policy.settings, self.number, stop, Ok(None));
        progress.report(&Operations, stop)
    }

    fn slot(&self) -> Option<ReportSlot> {
        self.context.options.as_ref().and_then(CallOptions::slot).cloned()
    }
}
