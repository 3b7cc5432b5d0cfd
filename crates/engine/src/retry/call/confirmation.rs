//! The confirmation of a retry by a remote budget. The outcome is held until the budget decides. The retry's delay has
//! already started by then.

use std::ops::ControlFlow;
use std::task::{Context, Poll};

use reattempt_core::{Schedule, StopReason};

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
            self.begin_retry(result, granted, saved);
            return ControlFlow::Continue(());
        }
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        if let Some(progress) = retrying.and_then(|retrying| retrying.progress.as_mut()) {
            progress.revoke();
        }
        ControlFlow::Break(self.end_call(result, StopReason::BodyNotKept))
    }
}
