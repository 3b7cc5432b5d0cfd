//! The attempts of one operation, common to the asynchronous and the blocking form.
//!
//! The input is the result of each attempt. The output is the result of the call, or the time at which the next attempt
//! is due.

use std::ops::ControlFlow;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Account, Budget, Classification, Schedule, SentAt, StopReason};
use tokio::time::Instant;

use super::RetryError;
use super::call_state::{CallState, DESTINATION};
use super::policy::Policy;
use crate::call::options::CallOptions;
use crate::call::progress::{FailedAttempt, Granted};
use crate::call::random::CallRandom;
use crate::call::report::Report;

/// The state of a call, whose attempts the driver makes.
///
/// A call that succeeds at once has only a policy. The first failure allocates the rest, in one box.
pub(super) struct Tries<D: Schedule, B, J, N> {
    classify: J,
    notify: N,
    // Always present between two method calls.
    course: Option<Course<D, B>>,
    /// The time at which the call was first pending.
    started: Option<Instant>,
    sent_at: SentAt,
    /// The number of the attempt in flight.
    number: u32,
    /// `true` if a wait blocks the thread.
    blocking: bool,
}

/// A failed attempt whose retry this process's budget has granted.
pub(super) struct GrantedRetry<E> {
    pub(super) error: E,
    pub(super) granted: Granted,
}

enum Course<D: Schedule, B> {
    /// No attempt has failed, and the policy needed nothing before the first one.
    Plain(Policy<D, B>),
    Full(Box<CallState<D, B>>),
}

impl<D: Schedule, B, J, N> Tries<D, B, J, N> {
    #[inline]
    pub(super) fn new(
        policy: Policy<D, B>,
        options: Option<&CallOptions>,
        classify: J,
        notify: N,
        blocking: bool,
    ) -> Self {
        let course = if options.is_none() && policy.is_plain() {
            Course::Plain(policy)
        } else {
            Course::Full(CallState::new(policy, options, blocking))
        };
        Self { classify, notify, course: Some(course), started: None, sent_at: SentAt::default(), number: 0, blocking }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Starts the call's time, unless it has already started.
    pub(super) fn takes_time(&mut self) {
        self.started.get_or_insert_with(Instant::now);
    }

    /// Records the start of the next attempt, and with the first one the start of the call.
    #[inline]
    pub(super) fn attempt(&mut self)
    where
        B: Budget,
    {
        self.number = self.number.saturating_add(1);
        match &mut self.course {
            Some(Course::Plain(policy)) => self.sent_at = policy.schedule().on_send(),
            Some(Course::Full(call)) => self.sent_at = call.on_send(self.number),
            None => {}
        }
    }

    /// Records the end of an attempt. Returns the call's result, or the granted retry.
    #[inline]
    pub(super) fn settle<T, E>(
        &mut self,
        result: Result<T, E>,
    ) -> ControlFlow<Result<T, RetryError<E>>, GrantedRetry<E>>
    where
        B: Budget,
        J: Fn(&E) -> Classification,
    {
        match result {
            Ok(value) => {
                self.succeed();
                ControlFlow::Break(Ok(value))
            }
            Err(error) => match self.fail(error) {
                ControlFlow::Break(error) => ControlFlow::Break(Err(error)),
                ControlFlow::Continue(retry) => ControlFlow::Continue(retry),
            },
        }
    }

    /// Records a failed attempt. Returns the call's error, or the granted retry.
    #[inline(never)]
    fn fail<E>(&mut self, error: E) -> ControlFlow<RetryError<E>, GrantedRetry<E>>
    where
        B: Budget,
        J: Fn(&E) -> Classification,
    {
        let now = Instant::now();
        let started = *self.started.get_or_insert(now);
        let (number, sent_at) = (self.number, self.sent_at);
        let classification = (self.classify)(&error);
        let Some(call) = self.call() else {
            let report = Report::of_nothing(StopReason::Forbidden);
            return ControlFlow::Break(RetryError::new(error, report, Duration::ZERO));
        };
        let stop = match classification.verdict.failure() {
            None => StopReason::Permanent,
            Some(failure) => {
                let attempt = FailedAttempt {
                    number,
                    now,
                    classification,
                    failure: *failure,
                    refused: None,
                    undone: None,
                    source_failed: false,
                    at_hand: true,
                    elsewhere: false,
                    sent_at,
                    error: None,
                };
                match call.failed(started, attempt) {
                    Ok(granted) => return ControlFlow::Continue(GrantedRetry { error, granted }),
                    Err(stop) => stop,
                }
            }
        };
        let report = call.give_up(number, stop, started);
        ControlFlow::Break(RetryError::new(error, report, started.elapsed()))
    }

    /// Polls for the budget's confirmation of the granted retry.
    pub(super) fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        match &mut self.course {
            Some(Course::Full(call)) => call.poll_confirmed(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Withdraws a retry that was confirmed after the call's time was over.
    pub(super) fn check_in_time(&mut self) -> Result<(), StopReason> {
        match &mut self.course {
            Some(Course::Full(call)) => call.check_in_time(),
            _ => Ok(()),
        }
    }

    /// Continues after the budget's confirmation. Returns the call's error, or the time at which the retry is due;
    /// `None` for immediately.
    pub(super) fn resume<E>(
        &mut self,
        retry: GrantedRetry<E>,
        confirmed: Result<(), StopReason>,
    ) -> ControlFlow<RetryError<E>, Option<Instant>>
    where
        N: FnMut(&E, Duration),
    {
        let GrantedRetry { error, granted } = retry;
        let number = self.number;
        if let Err(stop) = confirmed {
            let started = self.started.unwrap_or(granted.now);
            let report = match self.call() {
                Some(call) => call.give_up(number, stop, started),
                None => Report::of_nothing(stop),
            };
            let elapsed = granted.now.saturating_duration_since(started);
            return ControlFlow::Break(RetryError::new(error, report, elapsed));
        }
        if let Some(Course::Full(call)) = &self.course {
            call.notify_retry(number.saturating_add(1));
        }
        let wait = granted.due.map(|due| due.saturating_duration_since(granted.now));
        (self.notify)(&error, wait.unwrap_or_default());
        ControlFlow::Continue(granted.due)
    }

    /// Records that the call ends with a value.
    #[inline]
    fn succeed(&mut self)
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
        if let Some(call) = self.call() {
            call.succeed(number, sent_at, started);
        }
    }

    /// Returns the state of the call, creating it if necessary.
    fn call(&mut self) -> Option<&mut CallState<D, B>> {
        let call = match self.course.take()? {
            Course::Plain(policy) => CallState::new(policy, None, self.blocking),
            Course::Full(call) => call,
        };
        match self.course.insert(Course::Full(call)) {
            Course::Full(call) => Some(call),
            Course::Plain(_) => None,
        }
    }
}
