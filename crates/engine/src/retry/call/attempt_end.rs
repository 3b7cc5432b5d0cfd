//! The end of an attempt: its outcome is classified, and then either ends the call or is retried.

use std::error::Error;
use std::ops::ControlFlow;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use reattempt_control::EndpointId;
use reattempt_core::{Classification, FailedAttempt, FailureKind, Schedule, StopReason, Verdict};
use reattempt_replay::ReplayBody;

use super::{HeldOutcome, RetryDriver, RetryState, destination};
use crate::call::clock::Instant;
use crate::call::cut_off::CutOff;
use crate::call::deadline::PASSED;
use crate::call::in_use;
use crate::call::progress::{Granted, Progress};
use crate::call::timed_out::{TimeLimit, TimedOut};
use crate::error_mode::ErrorMode;
use crate::protocol::{
    AnswerOf, CallTypes, ClassifyOutcome, NestedMarker, OutcomeFacts, Protocol, RequestProtocol, ResultOf, Saved,
    is_own_deadline,
};

impl<T: CallTypes<Strategy: Schedule>> RetryDriver<T> {
    /// Returns the endpoint of the attempt in flight, or of the last one.
    #[cold]
    pub(super) fn endpoint(&self) -> Option<EndpointId> {
        self.tried.pick().map(|pick| pick.id)
    }

    /// Returns the time at which the attempt in flight is interrupted.
    pub(in crate::retry) fn interrupt_due(&self, now: Instant) -> Option<Instant> {
        let timeout = self.shared.policy.settings.attempt_limit(self.context.options.as_ref());
        let timeout = timeout.filter(|_| T::Mode::INTERRUPTS);
        let timeout = timeout.map(|timeout| now.later(timeout));
        timeout.into_iter().chain(self.context.deadline).min()
    }

    /// Returns whose time ran out in an attempt that is interrupted by this limit.
    #[cold]
    pub(in crate::retry) fn whose_time(&self, limit: TimeLimit) -> CutOff {
        match limit {
            _ if self.is_source_pending() => CutOff::Upload,
            TimeLimit::Attempt => CutOff::Attempt,
            TimeLimit::Deadline | TimeLimit::Elapsed => CutOff::Call,
        }
    }

    /// Returns the error of an interrupted attempt, or `None` if the protocol has a response for it.
    pub(in crate::retry) fn interrupted(&mut self, since: Instant) -> (Option<T::Error>, TimeLimit) {
        let now = Instant::now();
        let limit = match self.context.deadline {
            Some(deadline) if deadline <= now => TimeLimit::Deadline,
            _ => TimeLimit::Attempt,
        };
        let endpoint = self.endpoint();
        (self.timed_out((limit, endpoint), Some(since), now), limit)
    }

    pub(super) fn timed_out(
        &mut self,
        (limit, endpoint): (TimeLimit, Option<EndpointId>),
        since: Option<Instant>,
        now: Instant,
    ) -> Option<T::Error> {
        let after = since.map(|since| now.saturating_duration_since(since)).unwrap_or_default();
        let retrying = self.retrying.as_mut().map(|retrying| retrying.as_mut().project());
        let refused = retrying.and_then(|retrying| retrying.refused.clone());
        let endpoint = endpoint.and_then(EndpointId::name);
        let (source, uploading) = (T::Protocol::source_of_time_limit(), since.is_some() && self.is_source_pending());
        T::Mode::timed_out(TimedOut { limit, after, endpoint, refused, source, uploading })
    }

    /// Returns the end of a call if the inner client or the server enforced the call's own deadline. This happens
    /// before classification, so the call ends as if this layer's timer had expired first.
    // TN-4
    #[inline]
    pub(in crate::retry) fn overdue(&mut self, result: &ResultOf<T>, since: Option<Instant>) -> Option<AnswerOf<T>> {
        let deadline = self.context.deadline?;
        // Few outcomes come from a timer.
        let outcome = result.as_ref().map_err(T::Mode::view);
        if !T::Mode::ENDS_LATE || !self.shared.policy.settings.protocol.is_timer(outcome) {
            return None;
        }
        self.expired_below(result, deadline, since)
    }

    #[cold]
    fn expired_below(
        &mut self,
        result: &ResultOf<T>,
        deadline: Instant,
        since: Option<Instant>,
    ) -> Option<AnswerOf<T>> {
        let protocol = &self.shared.policy.settings.protocol;
        let outcome = result.as_ref().map_err(T::Mode::view);
        if !is_own_deadline(protocol, outcome, Some(deadline), self.context.started) {
            return None;
        }
        let stop = StopReason::DeadlineExceeded;
        match self.timed_out((TimeLimit::Deadline, self.endpoint()), since, Instant::now()) {
            Some(error) => Some(self.end_call(Err(error), stop)),
            None => self.end_late(PASSED, stop),
        }
    }

    /// Classifies a finished attempt, which either ends the call or may be retried.
    #[inline]
    pub(in crate::retry) fn classify_attempt(
        &mut self,
        result: &ResultOf<T>,
        interrupted: Option<TimeLimit>,
    ) -> ControlFlow<StopReason, (Classification, OutcomeFacts)> {
        if matches!(interrupted, Some(TimeLimit::Deadline | TimeLimit::Elapsed)) {
            return ControlFlow::Break(StopReason::DeadlineExceeded);
        }
        let protocol = &self.shared.policy.settings.protocol;
        let options = self.context.options.as_ref();
        let outcome = result.as_ref().map_err(T::Mode::view);
        let classification = protocol.classify_outcome(outcome, options, self.saved.as_ref());
        if classification.verdict == Verdict::Success {
            return ControlFlow::Break(StopReason::Succeeded);
        }
        let facts = protocol.facts(outcome).under(classification.verdict);
        // An unprocessed attempt may be replaced, whatever its code (CALL-2).
        if classification.verdict.failure().is_some() || facts.undone.is_some() {
            return ControlFlow::Continue((classification, facts));
        }
        if facts.responded {
            self.on_permanent_failure(classification.hint);
        }
        ControlFlow::Break(StopReason::Permanent)
    }

    /// Records a retryable failure, and begins the retry if it is granted.
    // Not inlined, so that a call that succeeds on the first attempt does not reserve stack space for it.
    #[inline(never)]
    pub(in crate::retry) fn failed(
        &mut self,
        result: ResultOf<T>,
        (classification, facts): (Classification, OutcomeFacts),
        cx: &mut Context<'_>,
    ) -> ControlFlow<AnswerOf<T>> {
        match self.decide(&result, classification, facts) {
            Ok(granted) => match self.poll_confirmed(cx) {
                Poll::Ready(confirmed) => self.resume(HeldOutcome { result, granted }, confirmed),
                Poll::Pending => {
                    self.hold(HeldOutcome { result, granted });
                    ControlFlow::Continue(())
                }
            },
            Err(stop) => ControlFlow::Break(self.give_up(result, classification, stop)),
        }
    }

    /// Ends the call without a retry. Returns the outcome, unless the reason is the deadline and the protocol has a
    /// response for that.
    // RET-3
    fn give_up(&mut self, result: ResultOf<T>, classification: Classification, stop: StopReason) -> AnswerOf<T> {
        if T::Mode::ANSWERS && stop == StopReason::DeadlineExceeded {
            let failure = classification.verdict.failure();
            let failure = failure.map(|failure| format!(" ({failure})")).unwrap_or_default();
            let text = format!(
                "the deadline would pass before the call is tried again; attempt {} failed{failure}",
                self.number
            );
            if let Some(answer) = self.end_late(&text, stop) {
                return answer;
            }
        }
        self.end_call(result, stop)
    }

    /// Decides whether to retry. After that, only the retry uses the saved request.
    fn decide(
        &mut self,
        result: &ResultOf<T>,
        classification: Classification,
        facts: OutcomeFacts,
    ) -> Result<Granted, StopReason> {
        let now = Instant::now();
        self.takes_time(|| now);
        if self.marker.as_ref().is_some_and(NestedMarker::take_given_up) {
            self.context.forbidden = Some(StopReason::Nested);
        }
        let policy = &self.shared.policy;
        if let (1, Some(saved)) = (self.number, &self.saved) {
            self.context.set_safety(policy.settings.protocol.retry_safety(saved.view()));
        }
        let retrying = self.retrying.get_or_insert_with(RetryState::new).as_mut().project();
        let tried = &self.tried;
        let proven = facts.undone.is_some() || matches!(classification.verdict, Verdict::NotProcessed(_));
        // The server that does the work is asked again.
        let follows = !classification.verdict.is_pending();
        let mut elsewhere = follows && tried.follow(retrying.trail) && !facts.from_fallback;
        // Only the server or tier that received the key recognises it (D-17).
        match tried.pick().and_then(|pick| pick.tier) {
            _ if facts.from_fallback => self.context.void_key(),
            Some(tier) if !proven && self.context.needs_key() => {
                retrying.trail.stay_in(tier.id);
                elsewhere = tier.elsewhere;
                if !tier.elsewhere {
                    self.context.void_key();
                }
            }
            _ => {}
        }
        let error = result.as_ref().err().map(T::Mode::view);
        *retrying.fresh = in_use::FRESH_RETRIES.is_begun() && lost_http1(&classification, &facts, error);
        let attempt = FailedAttempt {
            // If a guard refused the backup, the refused attempt was for another server.
            refused: facts.refused.filter(|_| !facts.from_fallback),
            undone: facts.undone,
            fault: facts.fault,
            responded: facts.responded,
            source_failed: error.is_some()
                && self.saved.as_ref().and_then(Saved::body).is_some_and(ReplayBody::source_failed),
            replayable: self.saved.as_ref().is_some_and(Saved::at_hand),
            elsewhere,
            sent_at: self.sent_at,
            ..FailedAttempt::new(classification, "", Duration::ZERO)
        };
        let progress = retrying.progress.get_or_insert_with(|| {
            let protocol = &policy.settings.protocol;
            let destination = destination(protocol, self.saved.as_ref(), self.target.as_deref());
            let started = self.context.started.unwrap_or(now);
            Progress::new(&policy.settings, &self.context, started, destination)
        });
        let reported =
            (tried.pick().map(|pick| pick.id), T::Protocol::error_text(result.as_ref().map_err(T::Mode::view)));
        let granted = progress.failed(&policy.settings, &self.context, now, attempt, reported);
        if facts.responded && matches!(granted, Err(StopReason::Permanent)) {
            self.on_permanent_failure(classification.hint);
        }
        granted
    }
}

/// Returns `true` if an attempt lost an HTTP/1 connection, or met a 408, which servers also send on idle connections
/// (RFC 9110 §15.5.9).
fn lost_http1(classification: &Classification, facts: &OutcomeFacts, error: Option<&(dyn Error + 'static)>) -> bool {
    classification.verdict.failure().is_some_and(|failure| match (failure.kind(), error) {
        (FailureKind::Network, Some(error)) => facts.undone.is_none() && !reattempt_http::is_of_http2(error),
        (_, None) => failure.code() == Some(StatusCode::REQUEST_TIMEOUT.as_u16()),
        _ => false,
    })
}
