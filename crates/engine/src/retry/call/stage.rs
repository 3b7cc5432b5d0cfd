//! The stages before the next attempt: confirm it, drain the refused response, wait, run the hook, wait until a service
//! is ready, send.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_core::{Schedule, StopReason};
use tokio::task::coop::poll_proceed;
use tower_service::Service;

use super::opening::Opening;
use super::timers::{LimitPassed, poll_by, poll_sleep};
use super::{RetryDriver, RetryState};
use crate::call::clock;
use crate::call::clock::Instant;
use crate::call::deadline::Deadline;
use crate::call::hook::AttemptContext;
use crate::call::layer_terms::LayerTerms;
use crate::call::progress::{Granted, Progress};
use crate::call::protocol::Protocol;
use crate::call::timed_out::TimeLimit;
use crate::error_mode::{AttemptTimer, ErrorMode};
use crate::protocol::{AnswerOf, AttemptKind, CallTypes, ClassifyOutcome, NextAttempt, Replay, ResultOf};
use crate::shared::send_next;

/// The future of a running hook, which returns the head.
type HookFuture<Head> = Pin<Box<dyn Future<Output = Box<Head>> + Send>>;

/// The source of the next attempt.
pub(super) enum Next<T: CallTypes> {
    /// The saved request.
    Saved(T::Saved),
    /// The attempt itself, created before it can be sent. Its head is stored separately, because a hook may have it.
    Made(T::Rest),
}

pin_project! {
    /// The stage of the next attempt. The variants are in the order in which [`RetryDriver::poll_stages`] visits them.
    ///
    /// An attempt is larger than the saved request, so it is created as late as possible: for its hook or, without a
    /// hook, when its service is ready.
    #[project = StageView]
    pub(super) enum Stage<T: CallTypes> {
        // The budget has not confirmed the retry yet. If it refuses, the held outcome is returned.
        Confirming,
        // The delay runs, and then the body of the next attempt is opened. If that fails, the held outcome is returned.
        Opening { opening: Opening<T> },
        // The refused response is being drained, until `by` at the latest.
        Draining { #[pin] drain: T::Drain, by: Instant, due: Option<Instant> },
        // The attempt is due at this time, or immediately if it is `None`.
        Waiting { due: Option<Instant> },
        // A hook is running for the attempt's head.
        Hooking { hook: HookFuture<T::Head> },
        // The service is being polled until it is ready. The attempt already exists if a hook has processed it.
        Readying,
        // The attempt is in flight.
        Sent,
    }
}

impl<T: CallTypes<Strategy: Schedule>> RetryDriver<T> {
    /// Drops the outcome and starts the stages before the retry, which is created from the saved request.
    pub(super) fn begin_retry(&mut self, result: ResultOf<T>, granted: Granted, saved: T::Saved) {
        let settings = &*self.shared.policy.settings;
        let retrying = self.retrying.get_or_insert_with(RetryState::new).as_mut().project();
        if !granted.replaces {
            self.number = self.number.saturating_add(1);
            if let Some(progress) = retrying.progress {
                progress.notify_retry(&settings.observer, self.number);
            }
        }
        let progress = retrying.progress.as_ref();
        let end = progress.and_then(|progress| progress.time_limit(&settings.limits, &self.context));
        let (mut stage, due) = (retrying.stage, granted.due);
        *retrying.next = Some(Next::Saved(saved));
        *retrying.ready_by = end;
        match result {
            Ok(response) => {
                let (drain, refused) = settings.protocol.drain(response);
                if refused.is_some() && (T::Mode::INTERRUPTS || settings.hook.is_some()) {
                    *retrying.refused = refused;
                }
                let drained = granted.now.later(settings.drain_time);
                let by = end.map_or(drained, |end| drained.min(end));
                stage.set(Stage::Draining { drain, by, due });
            }
            Err(error) => {
                *retrying.last_error = Some(error);
                stage.set(Stage::Waiting { due });
            }
        }
    }

    /// Polls until the next attempt is in flight, or until no further attempt is possible.
    // Not inlined, so that a call that succeeds on the first attempt does not reserve stack space for it.
    #[inline(never)]
    pub(in crate::retry) fn poll_between(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut T::Timer>,
    ) -> Poll<ControlFlow<AnswerOf<T>, T::Future>> {
        // A service that is always ready and always refuses must not starve other tasks.
        let turn = ready!(poll_proceed(cx));
        let between = ready!(self.poll_stages(cx, timer));
        turn.made_progress();
        Poll::Ready(between)
    }

    fn poll_stages(
        &mut self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut T::Timer>,
    ) -> Poll<ControlFlow<AnswerOf<T>, T::Future>> {
        loop {
            // If a call is polled again after completion, it stays pending.
            let Some(retrying) = &mut self.retrying else { return Poll::Pending };
            let mut this = retrying.as_mut().project();
            let ended = match this.stage.as_mut().project() {
                StageView::Confirming => {
                    let confirmed = ready!(self.poll_confirmed(cx));
                    self.confirm(confirmed)
                }
                StageView::Opening { opening } => {
                    let limits = &self.shared.policy.settings.limits;
                    let end = || this.progress.as_ref().and_then(|progress| progress.time_limit(limits, &self.context));
                    let opened = ready!(opening.poll(this.sleep, cx, end));
                    let unsent = opening.unsent.take();
                    this.stage.set(Stage::Sent);
                    unsent.and_then(|unsent| self.finish_opening(*unsent, opened))
                }
                StageView::Draining { drain, by, due } => {
                    let due = *due;
                    // Without a timer, only immediately available data is drained.
                    if drain.poll(cx).is_pending() && clock::has_timer() {
                        ready!(poll_sleep(this.sleep, cx, *by));
                    }
                    // The response is dropped here, so that its connection is released or closed before the next
                    // attempt.
                    this.stage.set(Stage::Waiting { due });
                    None
                }
                StageView::Waiting { due } => {
                    if let Some(due) = *due {
                        ready!(poll_sleep(this.sleep.as_mut(), cx, due));
                    }
                    this.sleep.set(None);
                    let ended = self.too_late();
                    if ended.is_none() {
                        self.finish_wait();
                    }
                    ended
                }
                StageView::Hooking { hook } => {
                    let polled = poll_by(this.sleep, this.ready_by, cx, |cx| hook.as_mut().poll(cx));
                    match ready!(polled) {
                        Ok(mut head) => {
                            *this.carried = T::Protocol::take_carried(&mut head);
                            *this.head = Some(head);
                            this.stage.set(Stage::Readying);
                            None
                        }
                        Err(LimitPassed) => self.time_up(),
                    }
                }
                StageView::Readying => {
                    let service = this.service.get_or_insert_with(|| self.shared.spare());
                    let polled = poll_by(this.sleep, this.ready_by, cx, |cx| service.poll_ready(cx));
                    match ready!(polled) {
                        Ok(Ok(())) => {
                            let ended = self.too_late();
                            if ended.is_none()
                                && let Some(sent) = self.send(timer.as_mut())
                            {
                                return Poll::Ready(ControlFlow::Continue(sent));
                            }
                            ended
                        }
                        Ok(Err(error)) => {
                            let last = self.last_error().unwrap_or_else(|| T::Mode::own(error));
                            Some(self.end_call(Err(last), StopReason::NotReady))
                        }
                        Err(LimitPassed) => self.time_up(),
                    }
                }
                StageView::Sent => return Poll::Pending,
            };
            if let Some(ended) = ended {
                return Poll::Ready(ControlFlow::Break(ended));
            }
        }
    }

    /// Continues after the delay: with the hook for the head of the next attempt if there is one, otherwise with the
    /// service.
    fn finish_wait(&mut self) -> Option<()> {
        let mut retrying = self.retrying.as_mut()?.as_mut().project();
        retrying.stage.set(Stage::Readying);
        let hook = self.shared.policy.settings.hook.clone()?;
        let (mut head, rest) = match retrying.next.take()? {
            Next::Made(rest) => (retrying.head.take()?, rest),
            Next::Saved(saved) => {
                let attempt = self.next_attempt(saved);
                let (head, rest) = self.shared.policy.settings.protocol.split(attempt);
                (Box::new(head), rest)
            }
        };
        let mut retrying = self.retrying.as_mut()?.as_mut().project();
        *retrying.next = Some(Next::Made(rest));
        let cause = retrying.progress.as_ref().and_then(Progress::last_failure);
        let (refused, carried) = (retrying.refused.clone(), retrying.carried.take());
        let attempting = AttemptContext { number: self.number, cause, refused, carried };
        let hook = Box::pin(async move {
            hook.before_attempt(&mut head, attempting).await;
            head
        });
        retrying.stage.set(Stage::Hooking { hook });
        Some(())
    }

    /// Sends the attempt through the service, which is ready.
    fn send(&mut self, timer: Pin<&mut T::Timer>) -> Option<T::Future> {
        // Set first, because a call whose service panics stays pending if it is polled again.
        self.retrying.as_mut()?.as_mut().project().stage.set(Stage::Sent);
        let attempt = self.take_attempt()?;
        let settings = &self.shared.policy.settings;
        self.sent_at = self.context.on_send(&settings.strategy);
        T::Mode::timer(timer).map(AttemptTimer::reset);
        let retrying = self.retrying.as_mut()?.as_mut().project();
        *retrying.last_error = None;
        if let Some(progress) = retrying.progress {
            progress.on_send(Instant::now());
        }
        let limit = settings.attempt_limit(self.context.options.as_ref()).filter(|_| T::Mode::INTERRUPTS);
        let mut terms = LayerTerms::of(limit, retrying.source);
        if *retrying.fresh {
            terms.get_or_insert_default().fresh = true;
        }
        let service = retrying.service.as_mut()?;
        let (sent, tried) = send_next(service, attempt, retrying.trail, self.context.deadline, terms);
        self.tried = tried;
        // Only a clone is kept, because a refused instance is still in the inner service's queue (trap 50).
        *service = service.clone();
        Some(sent)
    }

    /// Takes the next attempt, or creates it from the saved request.
    fn take_attempt(&mut self) -> Option<T::Attempt> {
        let retrying = self.retrying.as_mut()?.as_mut().project();
        Some(match retrying.next.take()? {
            Next::Saved(saved) => self.next_attempt(saved),
            Next::Made(rest) => {
                let protocol = &self.shared.policy.settings.protocol;
                let mut attempt = protocol.join(*retrying.head.take()?, rest);
                // The attempt may have been created some time ago.
                protocol.refresh(&mut attempt, self.context.deadline.map(Deadline::at));
                attempt
            }
        })
    }

    /// Creates the next attempt from the saved request, which stays saved for later attempts.
    fn next_attempt(&mut self, saved: T::Saved) -> T::Attempt {
        let settings = &self.shared.policy.settings;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let kind = match progress {
            Some(progress) if progress.replaces() => AttemptKind::Replacement,
            _ => AttemptKind::Retry,
        };
        let last = self.number >= self.context.max_attempts(&settings.limits);
        let mut next = NextAttempt::new(&settings.protocol, &self.context, self.number, kind, last);
        next.unproven = progress.is_none_or(|progress| progress.unproven);
        settings.protocol.again(saved, next, &mut self.saved)
    }

    /// Ends a call whose deadline has passed while no attempt is in flight. Returns `None` if there is
    /// time left, or if neither the error type nor the protocol can represent a passed deadline. The call then
    /// continues.
    // DL-3, RET-3
    fn too_late(&mut self) -> Option<AnswerOf<T>> {
        let deadline = self.context.deadline.filter(|_| T::Mode::ENDS_LATE)?;
        let now = Instant::now();
        if deadline > now { None } else { self.end_too_late(now) }
    }

    #[cold]
    fn end_too_late(&mut self, now: Instant) -> Option<AnswerOf<T>> {
        let stop = StopReason::DeadlineExceeded;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        let last_failure = progress.and_then(Progress::last_failure);
        let text = match last_failure {
            Some(failure) => format!("the deadline passed before a retry; {failure} before"),
            None => "the deadline passed before the call was sent".to_owned(),
        };
        // An unsent attempt is not counted.
        let unsent = if last_failure.is_none() { 0 } else { self.number };
        let number = std::mem::replace(&mut self.number, unsent);
        let ended = if T::Mode::ANSWERS {
            self.end_late(&text, stop)
        } else {
            let error = self.late_error(TimeLimit::Deadline, now);
            error.map(|error| self.end_call(Err(error), stop))
        };
        if ended.is_none() {
            self.number = number;
        }
        ended
    }

    /// Ends a call whose service or hook was not ready in time. Returns `None` if the error type cannot represent that.
    /// The call then continues to wait, until a deadline for which the protocol has a response.
    #[cold]
    fn time_up(&mut self) -> Option<AnswerOf<T>> {
        let now = Instant::now();
        let limit = match self.context.deadline {
            Some(deadline) if deadline <= now => TimeLimit::Deadline,
            _ => TimeLimit::Elapsed,
        };
        if T::Mode::ANSWERS
            && let Some(ended) = self.too_late()
        {
            return Some(ended);
        }
        if let Some(error) = self.late_error(limit, now) {
            return Some(self.end_call(Err(error), StopReason::NotReady));
        }
        if T::Mode::ANSWERS
            && limit == TimeLimit::Elapsed
            && let Some(retrying) = &mut self.retrying
        {
            *retrying.as_mut().project().ready_by = self.context.deadline;
        }
        None
    }

    /// Returns the error of a call that is out of time while no attempt is in flight. It is the last attempt's error,
    /// or a `TimedOut` if the error type can contain it.
    fn late_error(&mut self, limit: TimeLimit, now: Instant) -> Option<T::Error> {
        self.last_error().or_else(|| self.timed_out((limit, None), self.context.started, now))
    }

    /// Takes the last attempt's error.
    fn last_error(&mut self) -> Option<T::Error> {
        self.retrying.as_mut()?.as_mut().project().last_error.take()
    }
}
