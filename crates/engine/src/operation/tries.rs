//! The retry loop's state, shared by asynchronous and blocking operations.
//!
//! It takes the result of each attempt, and returns the result of the call or the time of the next attempt.

use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Account, Budget, Classification, FailedAttempt, Schedule, SentAt, StopReason};

use super::RetryError;
use super::call_state::{CallState, DESTINATION};
use super::policy::Policy;
use super::timer::Timer;
use crate::call::clock::Instant;
use crate::call::options::CallOptions;
use crate::call::progress::Granted;
use crate::call::random::CallRandom;
use crate::call::report::Report;

/// The state of a call. The caller of its methods makes the attempts.
///
/// A call that succeeds on its first attempt needs only the policy. The first failure allocates the rest in one box.
pub(super) struct Tries<Backoff: Schedule, B, J, N, Clock> {
    classify: J,
    notify: N,
    // Always `Some` between two method calls.
    course: Option<Course<Backoff, B>>,
    /// The time at which the call first returned `Pending`.
    started: Option<Instant>,
    sent_at: SentAt,
    /// The number of the attempt in flight.
    number: u32,
    timer: Clock,
    /// `true` if waits do not need a tokio runtime.
    own_timer: bool,
}

enum Course<Backoff: Schedule, B> {
    /// No attempt has failed, and no state was needed before the first one.
    Plain(Policy<Backoff, B>),
    Full(Box<CallState<Backoff, B>>),
}

impl<Backoff: Schedule, B, J, N, Clock: Timer> Tries<Backoff, B, J, N, Clock> {
    #[inline]
    pub(super) fn new(
        policy: Policy<Backoff, B>,
        options: Option<&CallOptions>,
        classify: J,
        notify: N,
        (timer, own_timer): (Clock, bool),
    ) -> Self {
        let course = if options.is_none() && policy.is_plain() {
            Course::Plain(policy)
        } else {
            Course::Full(CallState::new(policy, options, own_timer, &timer))
        };
        let (course, sent_at) = (Some(course), SentAt::default());
        Self { classify, notify, course, started: None, sent_at, number: 0, timer, own_timer }
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

    /// Records a failed attempt. Returns the granted retry, or the reason why there is none.
    #[inline(never)]
    pub(super) fn fail<E>(&mut self, error: &E) -> Result<Granted, StopReason>
    where
        B: Budget,
        J: Fn(&E) -> Classification,
    {
        let now = now(&self.timer);
        let started = *self.started.get_or_insert(now);
        let classification = (self.classify)(error);
        classification.verdict.failure().ok_or(StopReason::Permanent)?;
        let attempt = FailedAttempt::new(classification, DESTINATION, Duration::ZERO).sent_at(self.sent_at);
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
    pub(super) fn resume<E>(&mut self, error: &E, granted: &Granted) -> Option<Clock::Sleep>
    where
        N: FnMut(&E, Duration),
    {
        let due = self.notify_retry(error, granted)?;
        Some(self.timer.sleep_until(due.since_epoch()))
    }

    /// Notifies the caller and the observer of the retry. Returns its due time, or `None` if it is due immediately.
    pub(super) fn notify_retry<E>(&mut self, error: &E, granted: &Granted) -> Option<Instant>
    where
        N: FnMut(&E, Duration),
    {
        if let Some(Course::Full(call)) = &self.course {
            call.notify_retry(self.number.saturating_add(1));
        }
        let wait = granted.due.map(|due| due.saturating_duration_since(granted.now));
        (self.notify)(error, wait.unwrap_or_default());
        granted.due
    }

    /// Records that the call ends with an error. Returns the error together with the report.
    #[inline(never)]
    pub(super) fn give_up<E>(&mut self, error: E, stop: StopReason) -> RetryError<E> {
        let (number, started) = (self.number, self.started);
        let report = match self.call() {
            Some((call, timer)) => call.give_up(number, stop, started, || now(timer)),
            None => Report::of_nothing(stop),
        };
        RetryError::new(error, report)
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
            Course::Plain(policy) => CallState::new(policy, None, self.own_timer, &self.timer),
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
