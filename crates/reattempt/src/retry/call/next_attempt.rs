//! The next attempt of a call: prepared, made from the saved request and sent.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use reattempt_core::{Budget, Schedule, StopReason};
use tokio::time::Instant;
use tower_service::Service;

use super::{Call, Onwards, Retrying};
use crate::call::deadline::Deadline;
use crate::call::hook::AttemptContext;
use crate::call::options::CallOptions;
use crate::call::timed_out::TimeLimit;
use crate::error_mode::ErrorMode;
use crate::protocol::{AttemptKind, ClassifyOutcome, NextAttempt, Replay};
use crate::retry::Progress;
use crate::retry::preparation::{Arrived, Hooked};

impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// Polls until the next attempt is under way, or there can be none.
    pub(in crate::retry) fn poll_between(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut M::Timer>,
    ) -> Poll<Onwards<K::Answer, M::Error, S::Future>> {
        loop {
            // Polled again after its end, a call stays pending.
            let Some(retrying) = &mut self.retrying else { return Poll::Pending };
            let arrived = ready!(retrying.as_mut().project().preparation.poll(cx));
            match arrived {
                Arrived::Unprepared | Arrived::Ready(..) if self.is_too_late() => {
                    return self.too_late();
                }
                Arrived::Unprepared => self.resume(),
                Arrived::Ready(mut service, hooked) => {
                    let Some(attempt) = self.assemble(hooked) else {
                        return Poll::Ready(ControlFlow::Break(self.lost()));
                    };
                    self.sending();
                    M::reset(timer);
                    let attempt = service.call(attempt);
                    if let Some(retrying) = &mut self.retrying {
                        retrying.as_mut().project().preparation.sent(service);
                    }
                    return Poll::Ready(ControlFlow::Continue(attempt));
                }
                Arrived::Failed(error) => {
                    let last = self.last_error().unwrap_or_else(|| M::own(error));
                    return self.ended(last, StopReason::NotReady);
                }
                Arrived::Late => {
                    let now = Instant::now();
                    let limit = match self.context.deadline {
                        Some(deadline) if deadline <= now => TimeLimit::Deadline,
                        _ => TimeLimit::Elapsed,
                    };
                    if M::ANSWERS && limit == TimeLimit::Deadline {
                        return self.too_late();
                    }
                    match self.late_error(limit, now) {
                        Some(error) => return self.ended(error, StopReason::NotReady),
                        // Without an error that can express it the call waits on, though not past a
                        // deadline that the protocol answers.
                        None if M::ANSWERS => self.bound_by_deadline(),
                        None => {}
                    }
                }
            }
        }
    }

    /// Returns `true` if the deadline has passed and the call can end with that.
    fn is_too_late(&self) -> bool {
        M::ENDS_LATE && self.context.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Ends a call whose deadline has passed while no attempt was under way (DL-3, RET-3).
    fn too_late(&mut self) -> Poll<Onwards<K::Answer, M::Error, S::Future>> {
        let stop = StopReason::DeadlineExceeded;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let text = match progress.and_then(Progress::last_failure) {
            Some(failure) => format!("the deadline passed before a retry; {failure} before"),
            None => {
                self.number = 0;
                "the deadline passed before the call was sent".to_owned()
            }
        };
        let late = if M::ANSWERS {
            self.end_late(&text, stop)
        } else {
            let error = self.late_error(TimeLimit::Deadline, Instant::now());
            error.map(|error| self.end(Err(error), stop))
        };
        Poll::Ready(ControlFlow::Break(late.unwrap_or_else(|| self.lost())))
    }

    /// Returns the error of a call whose time is over while no attempt is under way: the last attempt's, or a
    /// `TimedOut` if the error type can contain it.
    fn late_error(&mut self, limit: TimeLimit, now: Instant) -> Option<M::Error> {
        self.last_error()
            .or_else(|| self.timed_out(M::interrupt()?, limit, self.context.started, now))
    }

    /// Ends the call in a state that no input leads to: it has neither a request to send nor a response
    /// to return.
    ///
    /// A retry is granted only for a request that can be restored, and a deadline ends a call only where
    /// the error type or the protocol can express it.
    #[cold]
    pub(in crate::retry) fn lost(&mut self) -> Result<K::Answer, M::Error> {
        match self.last_error() {
            Some(last) => self.end(Err(last), StopReason::BodyNotKept),
            // An error of the inner service's type cannot be made here, and a hang would be worse.
            None => unreachable!("a call without a request and without an outcome"),
        }
    }

    fn bound_by_deadline(&mut self) {
        if let Some(retrying) = &mut self.retrying {
            retrying.as_mut().project().preparation.bound(self.context.deadline);
        }
    }

    /// Ends the call with this error.
    fn ended(
        &mut self,
        error: M::Error,
        stop: StopReason,
    ) -> Poll<Onwards<K::Answer, M::Error, S::Future>> {
        Poll::Ready(ControlFlow::Break(self.end(Err(error), stop)))
    }

    /// Continues after the wait, with a service for the next attempt and the hook if there is one.
    pub(super) fn resume(&mut self) {
        let sent = self
            .retrying
            .as_mut()
            .and_then(|retrying| retrying.as_mut().project().preparation.take_sent());
        let service = sent.unwrap_or_else(|| self.shared.spare());
        if self.shared.policy.settings.hook.is_some()
            && let Some(attempt) = self.next_attempt()
        {
            let retrying = self.retrying.get_or_insert_with(Retrying::new).as_mut();
            let cause = retrying.progress.as_ref().and_then(Progress::last_failure);
            let refused = retrying.refused.clone();
            let attempting = AttemptContext { number: self.number, cause, refused };
            retrying.prepare(&self.shared.policy.settings, service, attempt, attempting);
        } else if let Some(retrying) = &mut self.retrying {
            retrying.as_mut().project().preparation.prepare(service, None);
        }
    }

    /// Returns the attempt to be sent now.
    pub(super) fn assemble(
        &mut self,
        hooked: Option<Box<Hooked<K::Head, K::Rest>>>,
    ) -> Option<K::Attempt> {
        match hooked.and_then(|hooked| hooked.into_parts()) {
            Some((mut head, rest)) => {
                // Time has passed in the hook.
                if let Some(deadline) = self.context.deadline {
                    K::write_deadline(&mut head, Deadline::at(deadline));
                }
                Some(self.shared.policy.settings.protocol.join(head, rest))
            }
            None => self.next_attempt(),
        }
    }

    /// Takes the error that the last attempt ended with.
    pub(super) fn last_error(&mut self) -> Option<M::Error> {
        self.retrying.as_mut()?.as_mut().project().last_error.take()
    }

    /// Records that an attempt is being sent. The permit is spent, and the last error dropped.
    pub(super) fn sending(&mut self) {
        self.on_send();
        if let Some(retrying) = &mut self.retrying {
            let retrying = retrying.as_mut().project();
            *retrying.last_error = None;
            if let Some(progress) = retrying.progress {
                progress.on_send();
            }
        }
    }

    /// Makes the next attempt from the saved request; the last one consumes it.
    pub(super) fn next_attempt(&mut self) -> Option<K::Attempt> {
        let settings = &self.shared.policy.settings;
        let last = self.number >= self.context.max_attempts(&settings.limits)
            && !settings.protocol.replaces();
        let deadline = self.context.deadline.map(Deadline::at);
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let kind = match progress {
            Some(progress) if progress.replaces() => AttemptKind::Replacement,
            _ => AttemptKind::Retry,
        };
        let options = self.context.options.as_ref();
        let keeps_head =
            settings.protocol.classifies() || options.is_some_and(CallOptions::classifies);
        let next = NextAttempt { number: self.number, kind, last, keeps_head, deadline };
        settings.protocol.again(&mut self.kept, next)
    }
}
