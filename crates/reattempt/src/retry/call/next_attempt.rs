//! The next attempt of a call: prepared, made from the saved request and sent.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use reattempt_core::{Budget, Schedule, StopReason};
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;
use tower_service::Service;

use super::{Call, Onwards};
use crate::call::deadline::Deadline;
use crate::call::hook::AttemptContext;
use crate::call::options::CallOptions;
use crate::call::progress::Progress;
use crate::call::timed_out::TimeLimit;
use crate::error_mode::ErrorMode;
use crate::protocol::{AttemptKind, ClassifyOutcome, NextAttempt, Replay};
use crate::retry::preparation::Arrived;

impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// Polls until the next attempt is under way, or there can be none.
    // Not inlined, so that a call that succeeds at once needs no room for it.
    #[inline(never)]
    pub(in crate::retry) fn poll_between(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut M::Timer>,
    ) -> Poll<Onwards<K::Answer, M::Error, S::Future>> {
        // A service that is always ready and always refuses must not keep others from their turn.
        let turn = ready!(poll_proceed(cx));
        let between = ready!(self.poll_preparation(cx, timer));
        turn.made_progress();
        Poll::Ready(between)
    }

    fn poll_preparation(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut M::Timer>,
    ) -> Poll<Onwards<K::Answer, M::Error, S::Future>> {
        loop {
            // Polled again after its end, a call stays pending.
            let Some(retrying) = &mut self.retrying else { return Poll::Pending };
            let arrived = ready!(retrying.as_mut().project().preparation.poll(cx));
            match arrived {
                Arrived::Due(sent) => {
                    if let Some(ended) = self.too_late() {
                        if let Some(service) = sent {
                            self.shared.give_back(service);
                        }
                        return Poll::Ready(ControlFlow::Break(ended));
                    }
                    if self.resume(sent).is_none() {
                        return self.lost();
                    }
                }
                Arrived::Ready(mut service) => {
                    if let Some(ended) = self.too_late() {
                        return Poll::Ready(ControlFlow::Break(ended));
                    }
                    let Some(attempt) = self.assemble() else { return self.lost() };
                    self.sending();
                    M::reset(timer);
                    let attempt = service.call(attempt);
                    if let Some(retrying) = &mut self.retrying {
                        // Only a clone is kept: an instance that was shed is still queued below (trap 50).
                        retrying.as_mut().project().preparation.sent(service.clone());
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
                    if M::ANSWERS
                        && let Some(ended) = self.too_late()
                    {
                        return Poll::Ready(ControlFlow::Break(ended));
                    }
                    match self.late_error(limit, now) {
                        Some(error) => return self.ended(error, StopReason::NotReady),
                        // Without an error that can express it the call waits on, though not past a
                        // deadline that the protocol answers.
                        None if M::ANSWERS && limit == TimeLimit::Elapsed => {
                            self.bound_by_deadline();
                        }
                        None => {}
                    }
                }
            }
        }
    }

    /// Ends a call whose deadline has passed while no attempt was under way (DL-3, RET-3). Returns `None` if there
    /// is time left, or if neither the error type nor the protocol can express that: such a call goes on.
    fn too_late(&mut self) -> Option<Result<K::Answer, M::Error>> {
        let deadline = self.context.deadline.filter(|_| M::ENDS_LATE)?;
        let now = Instant::now();
        if deadline > now { None } else { self.end_too_late(now) }
    }

    #[cold]
    fn end_too_late(&mut self, now: Instant) -> Option<Result<K::Answer, M::Error>> {
        let stop = StopReason::DeadlineExceeded;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let last_failure = progress.and_then(Progress::last_failure);
        let text = match last_failure {
            Some(failure) => format!("the deadline passed before a retry; {failure} before"),
            None => "the deadline passed before the call was sent".to_owned(),
        };
        // An attempt that was not sent does not count.
        let unsent = if last_failure.is_none() { 0 } else { self.number };
        let number = std::mem::replace(&mut self.number, unsent);
        let ended = if M::ANSWERS {
            self.end_late(&text, stop)
        } else {
            let error = self.late_error(TimeLimit::Deadline, now);
            error.map(|error| self.end(Err(error), stop))
        };
        if ended.is_none() {
            self.number = number;
        }
        ended
    }

    /// Returns the error of a call whose time is over while no attempt is under way. It is the last attempt's, or
    /// a `TimedOut` if the error type can contain it.
    fn late_error(&mut self, limit: TimeLimit, now: Instant) -> Option<M::Error> {
        self.last_error()
            .or_else(|| self.timed_out(M::interrupt()?, limit, self.context.started, now))
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

    /// Ends a call whose request is lost, with any error that can be made. No input leads here: nothing else has used
    /// the request since its retry was granted, and each head that is at hand can be restored (trap 34).
    #[cold]
    fn lost(&mut self) -> Poll<Onwards<K::Answer, M::Error, S::Future>> {
        let stop = StopReason::BodyNotKept;
        let ended = match self.late_error(TimeLimit::Elapsed, Instant::now()) {
            Some(error) => Some(self.end(Err(error), stop)),
            None => self.end_late("the saved request is lost", stop),
        };
        ended.map_or(Poll::Pending, |ended| Poll::Ready(ControlFlow::Break(ended)))
    }

    /// Continues with the attempt that is due: by the service that has sent one before, and through the hook if
    /// there is one. Returns `None` if the hook is due and the request is lost.
    fn resume(&mut self, sent: Option<S>) -> Option<()> {
        let service = sent.unwrap_or_else(|| self.shared.spare());
        if self.shared.policy.settings.hook.is_some() {
            let head = self.next_head()?;
            let retrying = self.retrying.as_mut()?.as_mut();
            let cause = retrying.progress.as_ref().and_then(Progress::last_failure);
            let refused = retrying.refused.clone();
            let attempting = AttemptContext { number: self.number, cause, refused };
            retrying.prepare(&self.shared.policy.settings, service, head, attempting);
        } else {
            self.retrying.as_mut()?.as_mut().project().preparation.ready(service);
        }
        Some(())
    }

    /// Takes the head of the next attempt for a hook. Returns `None` if the request is lost.
    fn next_head(&mut self) -> Option<K::Head> {
        let retrying = self.retrying.as_mut()?.as_mut().project();
        let first = retrying.preparation.take_head();
        first.or_else(|| {
            let attempt = self.again()?;
            let (head, rest) = self.shared.policy.settings.protocol.split(attempt);
            self.retrying.as_mut()?.as_mut().project().preparation.keep_rest(rest);
            Some(head)
        })
    }

    /// Returns the attempt to be sent now. Returns `None` if the request is lost.
    fn assemble(&mut self) -> Option<K::Attempt> {
        let retrying = self.retrying.as_mut()?.as_mut().project();
        let Some((head, rest)) = retrying.preparation.take_made() else { return self.again() };
        let protocol = &self.shared.policy.settings.protocol;
        let mut attempt = protocol.join(head?, rest);
        // Time has passed since it was made.
        protocol.refresh(&mut attempt, self.context.deadline.map(Deadline::at));
        Some(attempt)
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
    fn again(&mut self) -> Option<K::Attempt> {
        let settings = &self.shared.policy.settings;
        let last = self.number >= self.context.max_attempts(&settings.limits)
            && !settings.protocol.replaces();
        let deadline = self.context.deadline.map(Deadline::at);
        let options = self.context.options.as_ref();
        let keeps_head =
            settings.protocol.classifies() || options.is_some_and(CallOptions::classifies);
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let kind = match progress {
            Some(progress) if progress.replaces() => AttemptKind::Replacement,
            _ => AttemptKind::Retry,
        };
        let (number, unproven) = (self.number, progress.is_none_or(Progress::is_unproven));
        let next = NextAttempt { number, kind, last, keeps_head, deadline, unproven };
        settings.protocol.again(&mut self.kept, next)
    }
}
