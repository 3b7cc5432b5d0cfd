//! The confirmation of a retry by a remote budget. The call holds the outcome meanwhile, and the delay runs.

use std::task::{Context, Poll, ready};

use reattempt_core::{Budget, Schedule, StopReason};
use tokio::time::Instant;
use tower_service::Service;

use super::stage::Stage;
use super::{Call, Held, Retrying};
use crate::call::progress::Granted;
use crate::error_mode::ErrorMode;
use crate::protocol::{ClassifyOutcome, Replay, Saved};

/// The held outcome, and the budget's answer.
type ConfirmedOf<Response, E> = (Held<Response, E>, Result<(), StopReason>);

impl<S, Req, P, Backoff, B, Mode> Call<S, Req, P, Backoff, B, Mode>
where
    S: Service<P::Attempt> + Clone,
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    Backoff: Schedule,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    /// Polls for the budget's confirmation of the granted retry.
    pub(super) fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        match retrying.and_then(|retrying| retrying.progress.as_mut()) {
            Some(progress) => progress.poll_confirmed(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Holds the outcome until the budget confirms the retry. The delay already runs.
    #[cold]
    pub(super) fn hold(&mut self, result: Result<S::Response, Mode::Error>, granted: Granted) {
        let retrying = self.retrying.get_or_insert_with(Retrying::new).as_mut().project();
        *retrying.held = Some(Box::new(Held { result, granted }));
        let mut stage = retrying.stage;
        let sent = stage.as_mut().take_sent();
        stage.set(Stage::Confirming { sent });
    }

    /// Polls for the confirmation of the retry whose outcome is held. Ready with `None` if no outcome is held.
    pub(super) fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<Option<ConfirmedOf<S::Response, Mode::Error>>> {
        let confirmed = ready!(self.poll_confirmed(cx));
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        let Some(retrying) = retrying else { return Poll::Ready(None) };
        let Some(mut held) = retrying.held.take() else { return Poll::Ready(None) };
        // The response is drained from now on.
        held.granted.now = Instant::now();
        let in_time = match retrying.progress {
            Some(progress) => {
                let settings = &*self.shared.policy.settings;
                progress.check_in_time(settings, &self.context, held.granted.now, Mode::ENDS_LATE)
            }
            None => Ok(()),
        };
        Poll::Ready(Some((*held, confirmed.and(in_time))))
    }

    /// Continues after the confirmation. If the retry is refused, returns the end of the call with the held outcome.
    pub(super) fn resume(
        &mut self,
        held: Held<S::Response, Mode::Error>,
        confirmed: Result<(), StopReason>,
    ) -> Option<Result<P::Answer, Mode::Error>> {
        let Held { result, granted } = held;
        match confirmed.and_then(|()| self.claim_request()) {
            Ok(()) => {
                self.begin_retry(result, granted);
                None
            }
            Err(stop) => Some(self.end_call(result, stop)),
        }
    }

    /// Takes the request for a confirmed retry. The previous attempt's upload ends only here, because its response goes
    /// to the caller if the retry is refused.
    fn claim_request(&mut self) -> Result<(), StopReason> {
        let at_hand = self.saved.as_ref().is_some_and(|saved| {
            // A reader of the previous attempt could use up the saved body.
            saved.supersede();
            saved.at_hand()
        });
        if at_hand {
            return Ok(());
        }
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        if let Some(progress) = retrying.and_then(|retrying| retrying.progress.as_mut()) {
            progress.revoke();
        }
        Err(StopReason::BodyNotKept)
    }
}
