//! The end of a call, which is recorded in the budget, the schedule, the observer and the report slot.

use std::sync::Arc;

use reattempt_core::{Account, Budget, CallEnd, Schedule, ServerHint, StopReason};

use super::stage::StageView;
use super::{RetryDriver, destination};
use crate::call::finish::Finish;
use crate::call::progress::{LastOutcome, Progress, report_end};
use crate::call::report::Report;
use crate::error_mode::ErrorMode;
use crate::protocol::{AnswerOf, CallTypes, ClassifyOutcome, ResultOf, unanswered};

impl<T: CallTypes<Strategy: Schedule>> RetryDriver<T> {
    /// Ends the call with an outcome of the service, and returns the caller's result.
    #[inline(always)]
    pub(in crate::retry) fn end_call(&mut self, mut result: ResultOf<T>, stop: StopReason) -> AnswerOf<T> {
        let settings = &*self.shared.policy.settings;
        let succeeded = stop == StopReason::Succeeded;
        let open = match &result {
            Ok(response) => settings.protocol.is_open(response, succeeded),
            Err(_) => false,
        };
        let watched = match &result {
            Ok(_) if open => {
                self.context.deadline.is_some() || settings.observer.is_some() || !settings.budget.is_noop()
            }
            Ok(response) => self.context.deadline.is_some() && settings.protocol.may_stall(response),
            Err(_) => false,
        };
        if watched {
            return self.end_watched(result, stop, open);
        }
        let report = self.account(&mut result, stop, open);
        self.clear();
        match result {
            Ok(response) => Ok(T::Protocol::answer(response, open)),
            Err(error) => unanswered::<T::Protocol, _, _, T::Mode>(error, report.map(|report| *report)),
        }
    }

    /// Ends a call whose response is watched to its end. This is a separate function, so that other protocols do not
    /// pay for it.
    #[inline(never)]
    fn end_watched(&mut self, mut result: ResultOf<T>, stop: StopReason, open: bool) -> AnswerOf<T> {
        let account = open.then(|| self.take_account());
        let finish = self.finish(stop == StopReason::Succeeded, account);
        let _ = self.account(&mut result, stop, open);
        self.clear();
        result.map(|response| T::Protocol::watched(response, finish))
    }

    /// Records the end of the call in the budget, and notifies observers. An open response does not count as a success
    /// yet. Returns the report if there is no response to contain it, in a box, because it is large and most calls have
    /// none.
    #[inline(always)]
    fn account(&mut self, result: &mut ResultOf<T>, stop: StopReason, open: bool) -> Option<Box<Report>> {
        if stop == StopReason::Succeeded {
            let settings = &*self.shared.policy.settings;
            self.context.succeeded(settings, self.sent_at);
            let concerned = self.retrying.is_some() || !settings.budget.is_full();
            if !open && result.is_ok() && concerned {
                self.settle_budget(CallEnd::Succeeded);
            }
        }
        let settings = &*self.shared.policy.settings;
        let silent = settings.observer.is_none() && self.context.slot().is_none() && self.context.outer.is_none();
        if silent && self.retrying.is_none() {
            return None;
        }
        let last = result.as_ref().map(T::Protocol::code).map_err(T::Mode::view);
        let report = self.report_end(last, stop)?;
        match result {
            Err(_) => Some(Box::new(report)),
            Ok(response) => {
                self.shared.policy.settings.protocol.attach(response, report);
                None
            }
        }
    }

    /// Ends a call that is out of time with the protocol's response, if it has one.
    #[cold]
    pub(in crate::retry) fn end_late(&mut self, text: &str, stop: StopReason) -> Option<AnswerOf<T>> {
        let shared = Arc::clone(&self.shared);
        let report = || self.report_end(Ok(None), stop);
        let answer = shared.policy.settings.protocol.too_late(text, report)?;
        self.clear();
        Some(Ok(answer))
    }

    /// Releases the permit, the saved request and the service now and not only when the future is dropped.
    #[inline]
    fn clear(&mut self) {
        if let Some(mut retrying) = self.retrying.take() {
            let this = retrying.as_mut().project();
            // An instance that is still being polled may hold a reservation.
            if !matches!(this.stage.project(), StageView::Readying)
                && let Some(service) = this.service.take()
            {
                self.shared.give_back(service);
            }
        }
        self.saved = None;
    }

    /// Returns the accounting for the end of the response.
    fn finish(&self, succeeded: bool, account: Option<Account>) -> Finish {
        let settings = &self.shared.policy.settings;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let destination = match progress {
            Some(progress) => progress.destination().to_owned(),
            None if settings.budget.is_keyed() || settings.observer.is_some() => self.destination().into_owned(),
            None => String::new(),
        };
        // A response that was classified as a failure is already recorded.
        let retryable = succeeded && self.context.saves(&settings.limits);
        let sent = progress.map(Progress::sent);
        self.context.finish(settings, destination, retryable, (self.number, account), sent)
    }

    /// Records a final response that is not retryable.
    #[cold]
    pub(super) fn on_permanent_failure(&mut self, hint: ServerHint) {
        let settings = &self.shared.policy.settings;
        let hint = self.context.permanent_hint(&settings.limits, hint);
        if hint == ServerHint::Stop || !settings.budget.is_full() {
            self.settle_budget(CallEnd::Permanent(hint));
        }
    }

    /// Records the end of the call in the budget.
    fn settle_budget(&mut self, end: CallEnd) {
        let account = self.take_account();
        let retrying = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let budget = &self.shared.policy.settings.budget;
        match retrying {
            Some(progress) => account.settle(end, progress.destination(), budget),
            // Neither was recorded, because the budget was full when the call began.
            None if self.saved.is_some() || self.target.is_some() => {
                account.settle(end, &self.destination(), budget);
            }
            None => {}
        }
    }

    /// Takes the account, which must be recorded in the budget at the end of the call.
    fn take_account(&mut self) -> Account {
        let Some(retrying) = &mut self.retrying else { return Account::default() };
        let retrying = retrying.as_mut().project();
        let progress = retrying.progress.as_mut();
        progress.map(Progress::account).unwrap_or_default()
    }

    /// Reports the end of the call, and returns the report for the response.
    pub(super) fn report_end(&mut self, last: LastOutcome<'_>, stop: StopReason) -> Option<Report> {
        let policy = &self.shared.policy;
        // A call that could have been retried ends without success. A layer that makes no retries has not given up.
        let gave_up = !matches!(stop, StopReason::Succeeded | StopReason::Permanent);
        if let (Some(outer), true) = (&self.context.outer, gave_up && self.is_saved) {
            outer.give_up();
        }
        let last_attempt = (self.number, self.endpoint());
        let protocol = &policy.settings.protocol;
        let destination = || destination(protocol, self.saved.as_ref(), self.target.as_deref());
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        let progress = retrying.and_then(|retrying| retrying.progress.as_mut());
        report_end(&policy.settings, &self.context, last_attempt, stop, progress, destination, last)
    }
}
