//! The retry loop's state, shared by asynchronous and blocking operations.
//!
//! It takes the result of each attempt, and returns the result of the call or the time of the next attempt.

use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Account, Budget, FailedAttempt, Schedule, SentAt, StopReason, Verdict};

use super::RetryError;
use super::call_state::{CallState, DESTINATION};
use super::policy::Policy;
use super::rules::{ClassifiedResult, Rules};
use super::safety::Safety;
use super::timer::Timer;
use crate::call::clock::Instant;
use crate::call::options::CallOptions;
use crate::call::progress::Granted;
use crate::call::random::CallRandom;
use crate::call::report::Report;

/// The state of a call. The caller of its methods makes the attempts.
///
/// A call that succeeds on its first attempt needs only the policy. The first failure allocates the rest in one box.
pub(super) struct Tries<Backoff: Schedule, B, R, Clock> {
    rules: R,
    // Always `Some` between two method calls.
    course: Option<Course<Backoff, B>>,
    /// The time at which the call first returned `Pending`.
    started: Option<Instant>,
    sent_at: SentAt,
    /// The number of the attempt in flight.
    number: u32,
    timer: Clock,
    safety: Safety,
}

/// The result of a failed attempt.
pub(super) enum FailedResult<T, E> {
    /// A value that the rules refuse, with the reason.
    Value(T, ClassifiedResult),
    Error(E),
}

enum Course<Backoff: Schedule, B> {
    /// No attempt has failed, and no state was needed before the first one.
    Plain(Policy<Backoff, B>),
    Full(Box<CallState<Backoff, B>>),
}

impl<Backoff: Schedule, B, R, Clock: Timer> Tries<Backoff, B, R, Clock> {
    #[inline]
    pub(super) fn new(
        policy: Policy<Backoff, B>,
        options: Option<&CallOptions>,
        rules: R,
        timer: Clock,
        safety: Safety,
    ) -> Self {
        let course = if options.is_none() && policy.is_plain() {
            Course::Plain(policy)
        } else {
            Course::Full(CallState::new(policy, options, safety, &timer))
        };
        let (course, sent_at) = (Some(course), SentAt::default());
        Self { rules, course, started: None, sent_at, number: 0, timer, safety }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Starts measuring the call's elapsed time, unless this was already done.
    pub(super) fn takes_time(&mut self) {
        self.started.get_or_insert_with(|| now(&self.timer));
    }

    /// Records the start of the next attempt.
    #[inline]
    pub(super) fn attempt(&mut self)
    where
        B: Budget,
    {
        self.number = self.number.saturating_add(1);
        match &mut self.course {
            Some(Course::Plain(policy)) => self.sent_at = policy.schedule().on_send(),
            Some(Course::Full(call)) => self.sent_at = call.on_send(|| now(&self.timer)),
            None => {}
        }
    }

    /// Classifies a value, or returns `None` if the call succeeded.
    #[inline]
    pub(super) fn refuses<T, E>(&mut self, value: &T) -> Option<ClassifiedResult>
    where
        R: Rules<T, E>,
    {
        let judged = self.rules.of_value(value)?;
        (judged.classification.verdict != Verdict::Success).then_some(judged)
    }

    /// Records a failed attempt. Returns the granted retry, or the reason why there is none.
    #[inline(never)]
    pub(super) fn fail<T, E>(&mut self, failed: &FailedResult<T, E>) -> Result<Granted, StopReason>
    where
        B: Budget,
        R: Rules<T, E>,
    {
        let now = now(&self.timer);
        let started = *self.started.get_or_insert(now);
        let judged = match failed {
            FailedResult::Value(_, judged) => *judged,
            FailedResult::Error(error) => self.rules.of_error(error),
        };
        let mut classification = judged.classification;
        if let (Some(true), Verdict::NotProcessed(failure)) = (self.safety.redirects, classification.verdict) {
            classification.verdict = Verdict::Transient(failure.after_hop());
        }
        let responded = matches!(failed, FailedResult::Value(..));
        if classification.verdict.failure().is_none() {
            if let (true, Some((call, _))) = (responded, self.call()) {
                call.fail_permanently(classification.hint);
            }
            return Err(StopReason::Permanent);
        }
        let attempt = FailedAttempt {
            fault: judged.fault,
            responded,
            ..FailedAttempt::new(classification, DESTINATION, Duration::ZERO).sent_at(self.sent_at)
        };
        self.call().ok_or(StopReason::Forbidden)?.0.failed(started, now, attempt)
    }

    /// Polls for the budget's confirmation of the granted retry.
    pub(super) fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        match &mut self.course {
            Some(Course::Full(call)) => call.poll_confirmed(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Withdraws a retry that was confirmed too late for the call.
    pub(super) fn check_in_time(&mut self) -> Result<(), StopReason> {
        match &mut self.course {
            Some(Course::Full(call)) => call.check_in_time(now(&self.timer)),
            _ => Ok(()),
        }
    }

    /// Notifies the caller and the observer of the retry. Returns its delay, or `None` if there is no delay.
    pub(super) fn resume<T, E>(&mut self, failed: &FailedResult<T, E>, granted: &Granted) -> Option<Clock::Sleep>
    where
        R: Rules<T, E>,
    {
        let due = self.notify_retry(failed, granted)?;
        Some(self.timer.sleep_until(due.since_epoch()))
    }

    /// Notifies the caller and the observer of the retry. Returns its due time, or `None` if it is due immediately.
    pub(super) fn notify_retry<T, E>(&mut self, failed: &FailedResult<T, E>, granted: &Granted) -> Option<Instant>
    where
        R: Rules<T, E>,
    {
        if let Some(Course::Full(call)) = &self.course {
            call.notify_retry(self.number.saturating_add(1));
        }
        let wait = granted.due.map(|due| due.saturating_duration_since(granted.now));
        let result = match failed {
            FailedResult::Value(value, _) => Ok(value),
            FailedResult::Error(error) => Err(error),
        };
        self.rules.on_retry(result, wait.unwrap_or_default());
        granted.due
    }

    /// Records that the call ends with a failure. Returns the value as it was, or the error together with the report.
    #[inline(never)]
    pub(super) fn give_up<T, E>(&mut self, failed: FailedResult<T, E>, stop: StopReason) -> Result<T, RetryError<E>> {
        let (number, started) = (self.number, self.started);
        let code = match &failed {
            FailedResult::Value(_, judged) => judged.code,
            FailedResult::Error(_) => None,
        };
        let report = match self.call() {
            Some((call, timer)) => call.give_up(number, stop, code, started, || now(timer)),
            None => Report::of_nothing(stop),
        };
        match failed {
            FailedResult::Value(value, _) => Ok(value),
            FailedResult::Error(error) => Err(RetryError::new(error, report)),
        }
    }

    /// Records that the call ends with a value.
    #[inline]
    pub(super) fn succeed(&mut self)
    where
        B: Budget,
    {
        match &mut self.course {
            Some(Course::Plain(policy)) if !policy.is_observed() => {
                let mut random = CallRandom::unseeded(None);
                policy.schedule().on_success(self.sent_at, &mut random);
                Account::settle_unpaid(DESTINATION, policy.budget());
            }
            _ => self.succeed_in_full(),
        }
    }

    #[inline(never)]
    fn succeed_in_full(&mut self)
    where
        B: Budget,
    {
        let (number, sent_at, started) = (self.number, self.sent_at, self.started);
        if let Some((call, timer)) = self.call() {
            call.succeed(number, sent_at, started, || now(timer));
        }
    }

    /// Returns the state of the call, which is created if necessary, and the timer.
    fn call(&mut self) -> Option<(&mut CallState<Backoff, B>, &Clock)> {
        let call = match self.course.take()? {
            Course::Plain(policy) => CallState::new(policy, None, self.safety, &self.timer),
            Course::Full(call) => call,
        };
        match self.course.insert(Course::Full(call)) {
            Course::Full(call) => Some((call, &self.timer)),
            Course::Plain(_) => None,
        }
    }
}

fn now(timer: &impl Timer) -> Instant {
    Instant::at(timer.now())
}
