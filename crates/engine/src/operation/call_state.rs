//! The state of an operation's call. It is created at the first failure, or earlier for a call whose options or policy
//! need it before the first attempt.

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_core::{Account, Budget, CallEnd, FailedAttempt, Schedule, SentAt, ServerHint, StopReason};

use super::Operations;
use super::policy::Policy;
use super::safety::Safety;
use super::timer::Timer;
use crate::call::clock::Instant;
use crate::call::context::CallContext;
use crate::call::options::CallOptions;
use crate::call::progress::{Granted, Progress};
use crate::call::report::Report;
use crate::call::request_terms::RequestTerms;
use crate::call::settings::Settings;

/// The destination of all operations, so that they share one bucket of the policy's budget.
pub(super) const DESTINATION: &str = "";

/// The state of a call.
pub(super) struct CallState<Backoff: Schedule, B> {
    settings: CallSettings<Backoff, B>,
    context: CallContext,
    progress: Option<Progress<Backoff::Delays>>,
}

/// A call's settings: those of a policy, or its own if it has only a schedule.
enum CallSettings<Backoff, B> {
    Shared(Arc<Settings<Operations, Backoff, B>>),
    Own(Settings<Operations, Backoff, B>),
}

impl<Backoff, B> Deref for CallSettings<Backoff, B> {
    type Target = Settings<Operations, Backoff, B>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shared(settings) => settings,
            Self::Own(settings) => settings,
        }
    }
}

impl<Backoff: Schedule, B> CallState<Backoff, B> {
    #[inline(never)]
    pub(super) fn new(
        policy: Policy<Backoff, B>,
        options: Option<&CallOptions>,
        safety: Safety,
        timer: &impl Timer,
    ) -> Box<Self> {
        let settings = match policy {
            Policy::Shared(settings) => CallSettings::Shared(settings),
            Policy::Alone(schedule, budget) => CallSettings::Own(Settings::new(Operations, schedule, budget)),
        };
        let mut context = CallContext::new(&settings, RequestTerms::default(), options);
        let own = context.options.as_ref().and_then(CallOptions::get_repeatable);
        context.repeatable = own.unwrap_or(safety.repeatable);
        context.own_timer = safety.own_timer;
        // Converts a time on tokio's clock to the call's own clock.
        let left = context.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        context.deadline = left.map(|left| Instant::at(timer.now()).later(left));
        Box::new(Self { settings, context, progress: None })
    }

    /// Records the start of an attempt.
    pub(super) fn on_send(&mut self, now: impl FnOnce() -> Instant) -> SentAt {
        if let Some(progress) = &mut self.progress {
            progress.on_send(now());
        }
        self.context.on_send(&self.settings.strategy)
    }

    /// Decides whether to retry after a failed attempt.
    pub(super) fn failed(
        &mut self,
        started: Instant,
        now: Instant,
        attempt: FailedAttempt<'_>,
    ) -> Result<Granted, StopReason>
    where
        B: Budget,
    {
        let Self { settings, context, progress, .. } = self;
        let progress = progress.get_or_insert_with(|| Progress::new(settings, context, started, DESTINATION.into()));
        progress.failed(settings, context, now, attempt, (None, None))
    }

    /// Polls for the budget's confirmation of the granted retry.
    pub(super) fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        self.progress.as_mut().map_or(Poll::Ready(Ok(())), |progress| progress.poll_confirmed(cx))
    }

    /// Withdraws a retry that was confirmed too late for the call.
    pub(super) fn check_in_time(&mut self, now: Instant) -> Result<(), StopReason> {
        match &mut self.progress {
            Some(progress) => progress.check_in_time(&self.settings.limits, &self.context, now, false),
            None => Ok(()),
        }
    }

    /// Notifies the observer of a retry, which is attempt `number`.
    pub(super) fn notify_retry(&self, number: u32) {
        if let Some(progress) = &self.progress {
            progress.notify_retry(&self.settings.observer, number);
        }
    }

    /// Records in the budget that the server answered with a permanent failure.
    pub(super) fn fail_permanently(&mut self, hint: ServerHint)
    where
        B: Budget,
    {
        let hint = self.context.permanent_hint(&self.settings.limits, hint);
        let account = self.progress.as_mut().map(Progress::account).unwrap_or_default();
        account.settle(CallEnd::Permanent(hint), DESTINATION, &self.settings.budget);
    }

    /// Records that the call ends with a failure, whose status code is `code`. Returns its report.
    pub(super) fn give_up(
        &mut self,
        number: u32,
        stop: StopReason,
        code: Option<u16>,
        started: Option<Instant>,
        now: impl Fn() -> Instant,
    ) -> Report {
        let report = self.report((number, code), stop, started, now);
        if let Some(slot) = self.context.slot() {
            slot.put(report.clone());
        }
        report
    }

    /// Records that the call ends with a value.
    pub(super) fn succeed(&mut self, number: u32, sent_at: SentAt, started: Option<Instant>, now: impl Fn() -> Instant)
    where
        B: Budget,
    {
        self.context.succeeded(&self.settings, sent_at);
        let account: Account = self.progress.as_mut().map(Progress::account).unwrap_or_default();
        account.settle(CallEnd::Succeeded, DESTINATION, &self.settings.budget);
        let slot = self.context.slot().cloned();
        if let Some(slot) = slot {
            slot.put(self.report((number, None), StopReason::Succeeded, started, now));
        } else if self.settings.observer.is_some() {
            drop(self.report((number, None), StopReason::Succeeded, started, now));
        }
    }

    /// Notifies the observer of the end of the call, and returns the report.
    fn report(
        &mut self,
        (number, code): (u32, Option<u16>),
        stop: StopReason,
        started: Option<Instant>,
        now: impl Fn() -> Instant,
    ) -> Report {
        let mut progress = self.progress.take().unwrap_or_else(|| {
            let started = started.unwrap_or_else(&now);
            Progress::new(&self.settings, &self.context, started, DESTINATION.into())
        });
        progress.report_end(&self.settings.observer, (number, None), stop, Ok(code), now);
        progress.report(&Operations, stop)
    }
}
