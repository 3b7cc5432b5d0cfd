//! One call, from its request to its outcome.
//!
//! While the first attempt runs it holds what was kept of the request and nothing else. The first
//! failure makes one box with all that only retries need: the state of the decisions and the course
//! between attempts.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_core::{Admission, Budget, Failure, Judgement, Schedule, StopReason, Verdict};
use tokio::time::Instant;
use tower_service::Service;

use super::course::{Arrived, Bounds, Course};
use super::progress::{FailedAttempt, conclude};
use super::service::Shared;
use super::{Progress, Setting};
use crate::error_mode::ErrorMode;
use crate::protocol::{Carry, Judge, NestedMarker, NextAttempt, chain};
use crate::{
    Attempting, CallOptions, Deadline, RefusedResponse, RetryPolicy, TimeLimit, TimedOut, clock,
};

/// A call.
pub(super) struct Call<S, Req, K, D, B, M>
where
    K: Carry<Req> + Judge<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    shared: SharedBy<S, K, D, B, M>,
    kept: Option<K::Kept>,
    /// Whom a request is for of which nothing is kept, where its success counts for the budget.
    target: Option<Box<str>>,
    setting: Setting,
    /// Whether the request was kept at all.
    carried: bool,
    /// The number of the attempt under way, from 1.
    number: u32,
    admission: Admission,
    /// What this layer leaves in the request for inner ones.
    marker: Option<NestedMarker>,
    /// When the attempt was first found not to be ready at once, where a limit needs that.
    attempt_started: Option<Instant>,
    retrying: Option<BoxedRetrying<S, Req, K, D, M>>,
}

/// What a call shares with all others of its client.
pub(super) type SharedBy<S, K, D, B, M> = Arc<Shared<S, RetryPolicy<K, D, B, M>>>;

/// The call is over, or goes on with `N`.
type Onwards<T, E, N> = ControlFlow<Result<T, E>, N>;

type BoxedRetrying<S, Req, K, D, M> = Pin<
    Box<
        Retrying<
            S,
            <K as Judge<<S as Service<<K as Carry<Req>>::Attempt>>::Response>>::Discard,
            <K as crate::Protocol>::Head,
            <K as Carry<Req>>::Rest,
            <M as ErrorMode<<S as Service<<K as Carry<Req>>::Attempt>>::Error>>::Error,
            <D as Schedule>::Delays,
        >,
    >,
>;

pin_project! {
    /// All that only retries need.
    struct Retrying<S, R, H, T, E, D> {
        progress: Option<Progress<D>>,
        // The error that the last attempt ended with, in case no further one can be made.
        last_error: Option<E>,
        // The head of the response that was refused last, where a hook or an error may want it.
        refused: Option<RefusedResponse>,
        // The attempt without its head, while a hook has that.
        rest: Option<T>,
        #[pin]
        course: Course<S, R, H>,
    }
}

impl<S, R, H, T, E, D> Retrying<S, R, H, T, E, D> {
    fn new() -> Pin<Box<Self>> {
        Box::pin(Self {
            progress: None,
            last_error: None,
            refused: None,
            rest: None,
            course: Course::new(),
        })
    }
}

impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    K: Carry<Req> + Judge<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

/// The beginning of a call.
impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Carry<Req> + Judge<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// The call of `request`, and its first attempt.
    #[inline]
    pub(super) fn new(
        shared: &SharedBy<S, K, D, B, M>,
        of_handle: Option<&CallOptions>,
        mut request: Req,
    ) -> (Self, K::Attempt) {
        let settings = &*shared.policy.settings;
        let admitted = settings.protocol.admit(&mut request);
        let told = admitted.deadline.map(Deadline::instant);
        let (setting, carried) = Setting::new(settings, admitted, of_handle);
        if let Some(deadline) = setting.deadline.filter(|_| setting.deadline != told) {
            settings.protocol.hand_on(&mut request, Deadline::at(deadline));
        }
        let (mut marker, mut kept, mut target) = (None, None, None);
        let attempt = if carried {
            marker = settings.nested.then(NestedMarker::default);
            let (attempt, whole) = settings.protocol.keep(request, marker.as_ref());
            kept = Some(whole);
            attempt
        } else {
            if !settings.budget.is_full() {
                target = Some(settings.protocol.target(&request).into());
            }
            settings.protocol.pass(request)
        };
        let call = Self {
            shared: Arc::clone(shared),
            kept,
            target,
            setting,
            carried,
            number: 1,
            admission: Admission::default(),
            marker,
            attempt_started: None,
            retrying: None,
        };
        (call, attempt)
    }

    /// Sends the first attempt by the readied service `inner`, unless a hook has to see it first.
    #[inline]
    pub(super) fn first_attempt(
        &mut self,
        inner: &mut S,
        attempt: K::Attempt,
    ) -> Option<S::Future> {
        if self.shared.policy.settings.hook.is_none() {
            self.admit();
            return Some(inner.call(attempt));
        }
        // The attempt waits for its hook, and with it the very instance that was readied for it.
        let spare = inner.clone();
        let readied = std::mem::replace(inner, spare);
        self.prepare(readied, attempt, None);
        if let Some(retrying) = &mut self.retrying {
            retrying.as_mut().project().course.bound(self.setting.deadline);
        }
        None
    }

    /// Notes the moment an attempt is sent, for schedules that are shared by many calls.
    #[inline]
    fn admit(&mut self) {
        self.admission = self.setting.admit(&self.shared.policy.settings.schedule);
    }

    /// Gives the attempt's head to the hook, and has `service` readied for the attempt.
    fn prepare(&mut self, service: S, attempt: K::Attempt, cause: Option<Failure>) {
        let settings = &self.shared.policy.settings;
        let (mut head, rest) = settings.protocol.split(attempt);
        let hook = settings.hook.clone();
        let retrying = self.retrying.get_or_insert_with(Retrying::new).as_mut().project();
        let refused = retrying.refused.clone();
        let attempting = Attempting { number: self.number, cause, refused };
        let preparing = Box::pin(async move {
            if let Some(hook) = hook {
                hook.before_attempt(&mut head, attempting).await;
            }
            head
        });
        *retrying.rest = Some(rest);
        retrying.course.prepare(service, Some(preparing));
    }
}

/// The end of an attempt.
impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Carry<Req> + Judge<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// When the attempt under way is to be interrupted.
    pub(super) fn interrupt_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.attempt_started = Some(now);
        let own = self.setting.options.as_ref().and_then(CallOptions::get_attempt_timeout);
        let timeout = own.or(self.shared.policy.settings.attempt_timeout);
        let timeout = timeout.map(|timeout| clock::later(now, timeout));
        timeout.into_iter().chain(self.setting.deadline).min()
    }

    /// The error of an attempt that has been interrupted.
    pub(super) fn interrupted(&mut self, interrupt: M::Interrupt) -> (M::Error, TimeLimit) {
        let now = Instant::now();
        let limit = match self.setting.deadline {
            Some(deadline) if deadline <= now => TimeLimit::Deadline,
            _ => TimeLimit::Attempt,
        };
        (self.timed_out(interrupt, limit, self.attempt_started, now), limit)
    }

    fn timed_out(
        &mut self,
        interrupt: M::Interrupt,
        limit: TimeLimit,
        since: Option<Instant>,
        now: Instant,
    ) -> M::Error {
        let after = since.map(|since| now.saturating_duration_since(since)).unwrap_or_default();
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        let refused = retrying.and_then(|retrying| retrying.refused.clone());
        M::timed_out(
            interrupt,
            TimedOut { limit, after, refused, source: K::source_of_time_limit() },
        )
    }

    /// Judges an attempt that has ended: the call ends with it, or goes on between attempts.
    #[inline]
    pub(super) fn settle(
        &mut self,
        result: Result<S::Response, M::Error>,
        interrupted: Option<TimeLimit>,
    ) -> Onwards<S::Response, M::Error, ()> {
        let protocol = &self.shared.policy.settings.protocol;
        if matches!(interrupted, Some(TimeLimit::Deadline | TimeLimit::Elapsed)) {
            return ControlFlow::Break(self.end(result, StopReason::DeadlineExceeded));
        }
        let judgement =
            protocol.judge(result.as_ref().map_err(M::view), self.setting.options.as_ref());
        match judgement.verdict.failure() {
            None if judgement.verdict == Verdict::Success => {
                ControlFlow::Break(self.end(result, StopReason::Succeeded))
            }
            None => ControlFlow::Break(self.end(result, StopReason::Permanent)),
            Some(failure) => {
                let failure = *failure;
                self.failed(result, judgement, failure)
            }
        }
    }

    /// The attempt failed in a way that a retry may mend: decides whether there is one.
    fn failed(
        &mut self,
        result: Result<S::Response, M::Error>,
        mut judgement: Judgement,
        failure: Failure,
    ) -> Onwards<S::Response, M::Error, ()> {
        let shared = Arc::clone(&self.shared);
        let policy = &shared.policy;
        let protocol = &policy.settings.protocol;
        if result.is_err() && self.kept.as_ref().is_some_and(|kept| protocol.source_failed(kept)) {
            // However the client puts it: it was the caller's own body that failed.
            return ControlFlow::Break(self.end(result, StopReason::Permanent));
        }
        if self.marker.as_ref().is_some_and(NestedMarker::take_given_up) {
            self.setting.forbidden = Some(StopReason::Nested);
        }
        if protocol.may_be_redirected() && matches!(judgement.verdict, Verdict::Unprocessed(_)) {
            judgement.verdict = Verdict::Transient(failure);
        }
        let attempt = FailedAttempt {
            number: self.number,
            judgement,
            failure,
            at_hand: self.kept.as_ref().is_some_and(|kept| protocol.at_hand(kept)),
            admission: self.admission,
            error: result.as_ref().err().map(|error| chain(M::view(error))),
        };
        let destination =
            self.kept.as_ref().map(|kept| protocol.destination(kept)).unwrap_or_default();
        let retrying = self.retrying.get_or_insert_with(Retrying::new).as_mut().project();
        let progress = retrying
            .progress
            .get_or_insert_with(|| Progress::new(policy, &self.setting, &destination));
        let granted = match progress.failed(policy, &self.setting, attempt) {
            Ok(granted) => granted,
            Err(stop) => return ControlFlow::Break(self.end(result, stop)),
        };
        if let Some(kept) = &self.kept {
            // What still reads the body for the attempt that is over could use up what is kept.
            protocol.supersede(kept);
            if !protocol.at_hand(kept) {
                return ControlFlow::Break(self.end(result, StopReason::BodyNotKept));
            }
        }
        self.number = self.number.saturating_add(1);
        progress.tell_retry(policy, self.number);
        let (discard, refused) = match result {
            Ok(response) => {
                let (discard, refused) = protocol.discard(response);
                (Some(discard), refused)
            }
            Err(error) => {
                *retrying.last_error = Some(error);
                (None, None)
            }
        };
        if refused.is_some() && (M::INTERRUPTS || policy.settings.hook.is_some()) {
            *retrying.refused = refused;
        }
        let end = progress.end(policy, &self.setting);
        let drained = clock::later(granted.now, policy.settings.discard_time);
        let bounds = Bounds { discard: end.map_or(drained, |end| drained.min(end)), ready: end };
        retrying.course.begin(discard, granted, bounds);
        ControlFlow::Continue(())
    }

    /// Polls until the next attempt is under way, or there can be none.
    pub(super) fn poll_between(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut M::Timer>,
    ) -> Poll<Onwards<S::Response, M::Error, S::Future>> {
        loop {
            // Polled again after it has ended, a call stays silent.
            let Some(retrying) = &mut self.retrying else { return Poll::Pending };
            let mut retrying = retrying.as_mut().project();
            match ready!(retrying.course.as_mut().poll(cx)) {
                Arrived::Unprepared => self.resume(),
                Arrived::Ready(mut service, head) => {
                    let Some(attempt) = self.assemble(head) else {
                        // It was at hand when the retry was granted, and nothing could use it up since.
                        debug_assert!(false, "a retry was granted without a request");
                        return Poll::Pending;
                    };
                    self.sending();
                    M::reset(timer);
                    return Poll::Ready(ControlFlow::Continue(service.call(attempt)));
                }
                Arrived::Failed(error) => {
                    let last = retrying.last_error.take().unwrap_or_else(|| M::own(error));
                    return Poll::Ready(ControlFlow::Break(
                        self.end(Err(last), StopReason::NotReady),
                    ));
                }
                Arrived::Late => {
                    let error = match retrying.last_error.take() {
                        Some(last) => last,
                        None => {
                            // Without an error that could say so there is nothing to end with.
                            let Some(interrupt) = M::interrupt() else { continue };
                            let now = Instant::now();
                            let limit = match self.setting.deadline {
                                Some(deadline) if deadline <= now => TimeLimit::Deadline,
                                _ => TimeLimit::Elapsed,
                            };
                            self.timed_out(interrupt, limit, self.setting.started, now)
                        }
                    };
                    return Poll::Ready(ControlFlow::Break(
                        self.end(Err(error), StopReason::NotReady),
                    ));
                }
            }
        }
    }

    /// The wait is over: a service for the next attempt, and the hook if there is one.
    fn resume(&mut self) {
        let spare = self.shared.spare();
        if self.shared.policy.settings.hook.is_some()
            && let Some(attempt) = self.next_attempt()
        {
            let cause = self
                .retrying
                .as_ref()
                .and_then(|retrying| retrying.progress.as_ref())
                .and_then(Progress::last_failure);
            self.prepare(spare, attempt, cause);
        } else if let Some(retrying) = &mut self.retrying {
            retrying.as_mut().project().course.prepare(spare, None);
        }
    }

    /// The attempt to be sent now.
    fn assemble(&mut self, head: Option<K::Head>) -> Option<K::Attempt> {
        let mut retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        match (head, retrying.as_mut().and_then(|retrying| retrying.rest.take())) {
            (Some(head), Some(rest)) => Some(self.shared.policy.settings.protocol.join(head, rest)),
            _ => self.next_attempt(),
        }
    }

    /// An attempt is being sent: what was kept for the case that none is goes, and the permit is
    /// spent.
    fn sending(&mut self) {
        self.admit();
        self.attempt_started = None;
        if let Some(retrying) = &mut self.retrying {
            let retrying = retrying.as_mut().project();
            *retrying.last_error = None;
            let permit = retrying.course.permit();
            if let (Some(permit), Some(progress)) = (permit, retrying.progress) {
                progress.paid = permit.spend();
            }
        }
    }

    /// Makes the next attempt of what was kept; the last one gets what was kept itself.
    fn next_attempt(&mut self) -> Option<K::Attempt> {
        let settings = &self.shared.policy.settings;
        let last = self.number >= self.setting.limits(&settings.limits).max_attempts;
        let deadline = self.setting.deadline.map(Deadline::at);
        let next = NextAttempt { number: self.number, last, deadline };
        let (attempt, kept) = settings.protocol.again(self.kept.take()?, next)?;
        self.kept = kept;
        Some(attempt)
    }

    /// The call is over.
    #[inline]
    fn end(
        &mut self,
        result: Result<S::Response, M::Error>,
        stop: StopReason,
    ) -> Result<S::Response, M::Error> {
        let settings = &self.shared.policy.settings;
        if stop == StopReason::Succeeded {
            self.setting.succeeded(&settings.schedule, self.admission);
        }
        let earned = matches!(stop, StopReason::Succeeded | StopReason::Permanent);
        if earned && !settings.budget.is_full() {
            self.credit();
        }
        let silent = settings.observer.is_none()
            && self.setting.options.is_none()
            && self.setting.outer.is_none();
        let result = match silent && self.retrying.is_none() {
            true => result,
            false => self.conclude(result, stop),
        };
        // Now, not when the future is dropped: a permit that was not spent, memory, the upload's
        // right to be repeated.
        self.retrying = None;
        self.kept = None;
        result
    }

    /// Puts a success to the credit of its destination.
    fn credit(&self) {
        let settings = &self.shared.policy.settings;
        let progress = self.retrying.as_ref().and_then(|retrying| retrying.progress.as_ref());
        if let Some(progress) = progress {
            settings.budget.succeeded(progress.destination(), progress.paid);
        } else if let Some(kept) = &self.kept {
            settings.budget.succeeded(&settings.protocol.destination(kept), 0);
        } else if let Some(target) = &self.target {
            settings.budget.succeeded(target, 0);
        }
    }

    /// Tells everybody who wants to know how the call ended.
    fn conclude(
        &mut self,
        mut result: Result<S::Response, M::Error>,
        stop: StopReason,
    ) -> Result<S::Response, M::Error> {
        let policy = &self.shared.policy;
        let protocol = &policy.settings.protocol;
        // A layer that never meant to retry has given nothing up.
        if let (Some(outer), true) = (&self.setting.outer, gave_up(stop) && self.carried) {
            outer.give_up();
        }
        let progress = match &mut self.retrying {
            Some(retrying) => retrying.as_mut().project().progress.take(),
            None => None,
        };
        let destination =
            self.kept.as_ref().map(|kept| protocol.destination(kept)).unwrap_or_default();
        let end = (self.number, stop);
        conclude(policy, &self.setting, end, progress, &destination, &mut result, M::view);
        result
    }
}

/// Whether a call that could have been retried further ends without success.
fn gave_up(stop: StopReason) -> bool {
    !matches!(stop, StopReason::Succeeded | StopReason::Permanent)
}
