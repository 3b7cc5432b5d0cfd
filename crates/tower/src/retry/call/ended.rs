//! The end of a call: it is put to the budget's credit and told to whoever wants to know.

use reattempt_core::{Budget, Schedule, StopReason};
use tower_service::Service;

use super::{Call, destination};
use crate::error_mode::ErrorMode;
use crate::protocol::{Carry, Judge};
use crate::retry::progress::conclude;

impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Carry<Req> + Judge<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// The call is over.
    #[inline(always)]
    pub(in crate::retry) fn end(
        &mut self,
        result: &mut Result<S::Response, M::Error>,
        stop: StopReason,
    ) {
        let settings = &*self.shared.policy.settings;
        if stop == StopReason::Succeeded {
            self.setting.succeeded(settings, self.admission);
        }
        let earned = matches!(stop, StopReason::Succeeded | StopReason::Permanent);
        if earned && !settings.budget.is_full() {
            self.credit();
        }
        let silent = settings.observer.is_none()
            && self.setting.options.is_none()
            && self.setting.outer.is_none();
        if !silent || self.retrying.is_some() {
            self.conclude(result, stop);
        }
        // Now, not when the future is dropped: a permit that was not spent, memory, the upload's
        // right to be repeated.
        self.retrying = None;
        self.kept = None;
    }

    /// Puts a success to the credit of its destination.
    pub(super) fn credit(&self) {
        let settings = &self.shared.policy.settings;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        match progress {
            Some(progress) => settings.budget.succeeded(progress.destination(), progress.paid),
            // With neither, the budget was full when the call began, and nobody noted whom it was for.
            None if self.kept.is_some() || self.target.is_some() => {
                settings.budget.succeeded(&self.destination(), 0);
            }
            None => {}
        }
    }

    /// Tells everybody who wants to know how the call ended.
    pub(super) fn conclude(
        &mut self,
        result: &mut Result<S::Response, M::Error>,
        stop: StopReason,
    ) {
        let policy = &self.shared.policy;
        // A layer that never meant to retry has given nothing up.
        if let (Some(outer), true) = (&self.setting.outer, gave_up(stop) && self.carried) {
            outer.give_up();
        }
        let protocol = &policy.settings.protocol;
        let destination = || destination(protocol, self.kept.as_ref(), self.target.as_deref());
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        let progress = retrying.and_then(|retrying| retrying.progress.as_mut());
        let end = (self.number, stop);
        conclude(policy, &self.setting, end, progress, destination, result, M::view);
    }
}

/// Whether a call that could have been retried further ends without success.
fn gave_up(stop: StopReason) -> bool {
    !matches!(stop, StopReason::Succeeded | StopReason::Permanent)
}
