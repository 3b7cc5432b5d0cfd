//! The confirmation of a retry by a remote budget, and the decision after its body was opened. The outcome is held
//! until then. The retry's delay has already started.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Schedule, StopReason};
use reattempt_replay::{ReplayBody, UploadError};

use super::opening::{Opening, Unsent};
use super::stage::Stage;
use super::{HeldOutcome, RetryDriver, RetryState};
use crate::call::clock::Instant;
use crate::error_mode::ErrorMode;
use crate::protocol::{AnswerOf, CallTypes, Saved};

impl<T: CallTypes<Strategy: Schedule>> RetryDriver<T> {
    /// Polls for the budget's confirmation of the granted retry.
    pub(super) fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        match retrying.and_then(|retrying| retrying.progress.as_mut()) {
            Some(progress) => progress.poll_confirmed(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Holds the outcome until the budget confirms the retry. The retry's delay starts now.
    #[cold]
    pub(super) fn hold(&mut self, held: HeldOutcome<T>) {
        let mut retrying = self.retrying.get_or_insert_with(RetryState::new).as_mut().project();
        *retrying.held = Some(Box::new(held));
        retrying.stage.set(Stage::Confirming);
    }

    /// Handles the budget's decision on the retry. Returns the end of the call if the retry is refused.
    pub(super) fn confirm(&mut self, confirmed: Result<(), StopReason>) -> Option<AnswerOf<T>> {
        let mut retrying = self.retrying.as_mut()?.as_mut().project();
        retrying.stage.set(Stage::Sent);
        let mut held = retrying.held.take()?;
        // Draining the response starts now.
        held.granted.now = Instant::now();
        let in_time = match retrying.progress {
            Some(progress) => {
                let limits = &self.shared.policy.settings.limits;
                progress.check_in_time(limits, &self.context, held.granted.now, T::Mode::ENDS_LATE)
            }
            None => Ok(()),
        };
        self.resume(*held, confirmed.and(in_time)).break_value()
    }

    /// Continues after the confirmation. If the retry is refused, the call ends with the held outcome.
    pub(super) fn resume(
        &mut self,
        held: HeldOutcome<T>,
        confirmed: Result<(), StopReason>,
    ) -> ControlFlow<AnswerOf<T>> {
        let HeldOutcome { result, granted } = held;
        if let Err(stop) = confirmed {
            return ControlFlow::Break(self.end_call(result, stop));
        }
        // Only here does the previous attempt's upload end, because its response is returned if the retry is refused.
        let saved = self.saved.take_if(|saved| {
            // A reader of the previous attempt could use up the saved body.
            if let Some(body) = saved.body() {
                body.cancel_others();
            }
            saved.at_hand()
        });
        if let Some(saved) = saved {
            match saved.body().and_then(ReplayBody::open_within) {
                Some(limit) => self.open(Unsent { held: HeldOutcome { result, granted }, saved }, limit),
                None => self.begin_retry(result, granted, saved),
            }
            return ControlFlow::Continue(());
        }
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        if let Some(progress) = retrying.and_then(|retrying| retrying.progress.as_mut()) {
            progress.revoke();
        }
        ControlFlow::Break(self.end_call(result, StopReason::BodyNotKept))
    }

    /// Holds the outcome until the body of the next attempt is open.
    #[cold]
    fn open(&mut self, unsent: Unsent<T>, limit: Duration) {
        let mut retrying = self.retrying.get_or_insert_with(RetryState::new).as_mut().project();
        retrying.stage.set(Stage::Opening { opening: Opening::new(unsent, limit) });
    }

    /// Begins the retry whose body is open, or ends the call with the held outcome.
    pub(super) fn finish_opening(&mut self, unsent: Unsent<T>, opened: Result<(), UploadError>) -> Option<AnswerOf<T>> {
        let Unsent { held: HeldOutcome { result, mut granted }, saved } = unsent;
        let retrying = self.retrying.as_mut()?.as_mut().project();
        // Draining the response starts now.
        granted.now = Instant::now();
        let stop = match (opened, retrying.progress) {
            (Ok(()), Some(progress)) => {
                let limits = &self.shared.policy.settings.limits;
                progress.check_in_time(limits, &self.context, granted.now, T::Mode::ENDS_LATE).err()
            }
            (Err(error), Some(progress)) => {
                progress.revoke_unopened(Arc::new(error));
                Some(StopReason::BodyNotOpened)
            }
            (Ok(()), None) => None,
            (Err(_), None) => Some(StopReason::BodyNotOpened),
        };
        let Some(stop) = stop else {
            self.begin_retry(result, granted, saved);
            return None;
        };
        // The destination of the report is the saved request's.
        self.saved = Some(saved);
        Some(self.end_call(result, stop))
    }
}
