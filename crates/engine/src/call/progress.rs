//! The progress of a call after its first failure: the state of its decisions, and its report.
//!
//! The retry future, the implementation of `tower::retry::Policy` and `retry` create it at the first failure.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_control::EndpointId;
use reattempt_core::event::sent_after_failure;
use reattempt_core::{
    Account, Budget, Call, Decision, Delays, Evidence, FailedAttempt, Failure, FailureKind, Limits, Proof, Schedule,
    StopReason, Work,
};

use super::context::CallContext;
use super::log::{CallLog, Observing, end_event};
use super::schedule::{CallDelays, ChosenSchedule};
use super::settings::Settings;
use crate::call::clock;
use crate::call::clock::Instant;
use crate::call::errors::chain;
use crate::call::observe::{Event, notify};
use crate::call::protocol::Protocol;
use crate::call::random::CallRandom;
use crate::call::report::{AttemptOutcome, Report};

/// The state of a call with at least one failed attempt.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct Progress<D> {
    call: Call<CallDelays<D>>,
    started: Instant,
    /// The time and the attempts before `started`, if the call [continues](Self::continue_at) after a success.
    earlier: (Duration, u32),
    random: CallRandom,
    log: CallLog,
    /// The time at which the attempt in flight was sent.
    sent: Instant,
    /// `true` if that attempt follows a failure of this call.
    is_retry: bool,
    /// The proof that alone allowed the granted retry, if there is one.
    proof: Option<Proof>,
    /// `true` if the end of the last attempt has been logged.
    noted: bool,
    /// `true` if a server may have processed a failed attempt.
    pub(crate) unproven: bool,
}

/// The outcome of the last attempt, for the report: the response's code, if it has one, or the error.
pub type LastOutcome<'a> = Result<Option<u16>, &'a (dyn Error + 'static)>;

/// A granted retry.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct Granted {
    /// The time of the decision.
    pub(crate) now: Instant,
    /// The time at which the retry is due, or `None` if it is due immediately.
    pub due: Option<Instant>,
    /// `true` if it replaces the failed attempt.
    pub(crate) replaces: bool,
}

impl<D: Delays> Progress<D> {
    /// Begins with the first failed attempt of a call.
    pub fn new<P, Strategy, B>(
        settings: &Settings<P, Strategy, B>,
        context: &CallContext,
        started: Instant,
        destination: Cow<'_, str>,
    ) -> Self
    where
        P: Protocol,
        Strategy: Schedule<Delays = D>,
    {
        Self {
            call: Call::new(&ChosenSchedule::of(&settings.strategy, context)),
            started,
            earlier: (Duration::ZERO, 0),
            random: context.random(settings),
            log: CallLog::new(destination.into()),
            sent: started,
            is_retry: false,
            proof: None,
            noted: false,
            unproven: false,
        }
    }

    /// Returns the time at which the last attempt was sent.
    pub(crate) fn sent(&self) -> Duration {
        let sent = self.sent.since_epoch();
        if self.is_retry { sent_after_failure(sent) } else { sent }
    }

    pub(crate) fn destination(&self) -> &str {
        &self.log.destination
    }

    /// Returns the time at which this call stops waiting, if there is a limit.
    pub fn time_limit(&self, limits: &Limits, context: &CallContext) -> Option<Instant> {
        let elapsed = context.limits(limits).max_elapsed;
        let latest = elapsed.map(|most| self.started.later(most));
        latest.into_iter().chain(context.deadline).min()
    }

    /// Decides whether to retry after an attempt that failed at `now`, and notifies the observer of the failure and the
    /// decision. The caller passes the facts about the attempt; this method adds the times and the destination.
    pub fn failed<P, Strategy, B>(
        &mut self,
        settings: &Settings<P, Strategy, B>,
        context: &CallContext,
        now: Instant,
        attempt: FailedAttempt<'_>,
        (endpoint, error): (Option<EndpointId>, Option<Box<str>>),
    ) -> Result<Granted, StopReason>
    where
        P: Protocol,
        Strategy: Schedule<Delays = D>,
        B: Budget,
    {
        let verdict = attempt.classification.verdict;
        let elapsed = now.saturating_duration_since(self.started);
        let failed = FailedAttempt {
            can_wait: if context.own_timer { || true } else { clock::has_timer },
            elapsed,
            until_deadline: context.deadline.map(|deadline| deadline.saturating_duration_since(now)),
            destination: &self.log.destination,
            now: now.since_epoch(),
            sent: self.sent(),
            ..attempt
        };
        let (number, replaced) = (self.call.attempt().saturating_add(self.earlier.1), self.call.resends());
        let terms = context.terms(&settings.limits);
        let decision = self.call.failed(
            &terms,
            &failed,
            &ChosenSchedule::of(&settings.strategy, context),
            &settings.budget,
            &mut self.random,
        );
        let evidence = self.call.evidence();
        self.unproven |= evidence.is_some_and(|evidence| evidence.work == Work::Maybe);
        // A response that is not the result yet is a success, unless the client asks again.
        if let Decision::Return(stop @ (StopReason::Permanent | StopReason::Succeeded)) = decision {
            return Err(stop);
        }
        // An attempt that is replaced may have any code, even one that is not a failure (CALL-2).
        let failure = verdict.failure().copied().unwrap_or(Failure::new(FailureKind::Network));
        let cause = evidence.and_then(|evidence| settings.causes.record(failed.destination, evidence, failed.now));
        let not_sent = attempt.refused.map(|_| Proof::NotSent);
        let proof = not_sent.or_else(|| evidence.and_then(Evidence::proof));
        let outcome = AttemptOutcome::Failed { failure, error, cause };
        let ended = self.earlier.0.saturating_add(elapsed);
        self.log.record(ended, (number, replaced), endpoint.and_then(EndpointId::name), outcome);
        self.noted = true;
        if !verdict.is_pending() {
            self.log.notify_failure(&settings.observer);
        }
        if let Decision::Return(reason) = decision {
            return Err(reason);
        }
        self.proof = proof.filter(|_| !terms.repeatable);
        match decision {
            Decision::Retry { after } => {
                self.log.set_retry(Some(after), self.proof);
                let due = (!after.is_zero()).then(|| now.later(after));
                let replaces = self.call.resends();
                if replaces {
                    let event = Event::WillRetry { attempt: number, after, proof: self.proof };
                    self.log.notify(&settings.observer, &event);
                }
                Ok(Granted { now, due, replaces })
            }
            _ => {
                self.log.set_retry(None, self.proof);
                let proof = proof.unwrap_or(Proof::NotConnected);
                self.log.notify(&settings.observer, &Event::WillReplace { attempt: number, proof });
                Ok(Granted { now, due: None, replaces: true })
            }
        }
    }

    /// Resets the limits as for a new call, because attempt `number` has made progress. The log continues.
    pub fn continue_at<P, Strategy, B>(
        &mut self,
        settings: &Settings<P, Strategy, B>,
        context: &CallContext,
        now: Instant,
        number: u32,
    ) where
        P: Protocol,
        Strategy: Schedule<Delays = D>,
    {
        self.call = Call::new(&ChosenSchedule::of(&settings.strategy, context));
        let time = self.earlier.0.saturating_add(now.saturating_duration_since(self.started));
        self.earlier = (time, number.saturating_sub(1));
        self.started = now;
    }

    /// Records that an attempt is being sent at `now`, which uses its permit.
    pub fn on_send(&mut self, now: Instant) {
        self.noted = false;
        (self.sent, self.is_retry) = (now, true);
        self.call.on_send();
    }

    /// Returns `true` if the last granted attempt replaces the one before it.
    pub fn replaces(&self) -> bool {
        self.call.resends()
    }

    /// Polls for the budget's confirmation of the granted retry.
    ///
    /// If it returns an error, the call ends with its last attempt's outcome.
    pub fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        let confirmed = self.call.poll_confirmed(cx);
        if let Poll::Ready(Err(_)) = confirmed {
            // The retry's delay did not take place.
            self.log.set_retry(None, None);
        }
        confirmed
    }

    /// Withdraws a retry that was confirmed at `now`, if that is too late for the call. If the error mode ends calls at
    /// their deadline, the call ends with the deadline instead.
    pub fn check_in_time(
        &mut self,
        limits: &Limits,
        context: &CallContext,
        now: Instant,
        ends_at_deadline: bool,
    ) -> Result<(), StopReason> {
        let most = context.limits(limits).max_elapsed;
        let stop = if !ends_at_deadline && context.deadline.is_some_and(|deadline| deadline <= now) {
            StopReason::DeadlineExceeded
        } else if most.is_some_and(|most| self.started.later(most.saturating_add(clock::TIMER_SLACK)) < now) {
            StopReason::ElapsedExhausted
        } else {
            return Ok(());
        };
        self.call.revoke();
        self.log.set_retry(None, None);
        Err(stop)
    }

    /// Withdraws a granted retry, because its request is no longer available.
    pub fn revoke(&mut self) {
        self.call.revoke();
    }

    /// Withdraws a granted retry, because its request body could not be opened.
    pub fn revoke_unopened(&mut self, error: Arc<dyn Error + Send + Sync>) {
        self.call.revoke();
        self.log.set_unopened(error);
    }

    /// Takes the account, which must be reported to the budget at the end of the call.
    pub fn account(&mut self) -> Account {
        self.call.take_account()
    }

    /// Notifies the observer of a retry, which is attempt `number`.
    pub fn notify_retry(&self, observer: &Observing, number: u32) {
        let after = self.call.last_delay().unwrap_or_default();
        self.log.notify(observer, &Event::WillRetry { attempt: number, after, proof: self.proof });
    }

    /// Returns the failure of the last attempt.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        self.log.last_failure()
    }

    /// Records the end of the call and notifies the observer. If the last attempt could have been retried, its end is
    /// already recorded.
    pub fn report_end(
        &mut self,
        observer: &Observing,
        (number, endpoint): (u32, Option<EndpointId>),
        stop: StopReason,
        last: LastOutcome<'_>,
        now: impl FnOnce() -> Instant,
    ) {
        if !self.noted && number > 0 && stop != StopReason::NotReady {
            let outcome = match (stop, last) {
                (StopReason::Succeeded, _) => AttemptOutcome::Succeeded,
                (_, Ok(code)) => AttemptOutcome::PermanentFailure { code, error: None },
                (_, Err(error)) => AttemptOutcome::PermanentFailure { code: None, error: Some(chain(error)) },
            };
            let ended = self.earlier.0.saturating_add(now().saturating_duration_since(self.started));
            let endpoint = endpoint.and_then(EndpointId::name);
            self.log.record(ended, (number, self.call.resends()), endpoint, outcome);
            if stop != StopReason::Succeeded {
                self.log.notify_failure(observer);
            }
        }
        let none = if stop == StopReason::NotReady { 0 } else { number };
        let (attempts, endpoint) = match self.log.last() {
            Some(last) => (last.number, last.endpoint.as_deref()),
            None => (none, None),
        };
        self.log.notify(observer, &end_event(attempts, stop, endpoint));
    }

    /// Takes the report of the finished call.
    pub fn report<P: Protocol>(&mut self, protocol: &P, stop: StopReason) -> Report {
        let last = self.log.last().map(|last| last.number);
        self.log.take_report(protocol, (last.unwrap_or_default(), last), stop)
    }
}

/// Reports the end of a call to the observer and the caller's slot. Returns the report for a response after a failure.
pub(crate) fn report_end<'a, P: Protocol, Strategy: Schedule, B>(
    settings: &Settings<P, Strategy, B>,
    context: &CallContext,
    (number, endpoint): (u32, Option<EndpointId>),
    stop: StopReason,
    progress: Option<&mut Progress<Strategy::Delays>>,
    destination: impl FnOnce() -> Cow<'a, str>,
    last: LastOutcome<'_>,
) -> Option<Report> {
    let slot = context.slot();
    let failed_before = progress.is_some();
    if !failed_before && slot.is_none() {
        let observer = settings.observer.as_ref()?;
        if stop == StopReason::Succeeded {
            // A call that succeeds on the first attempt has only this event.
            let endpoint = endpoint.and_then(EndpointId::name);
            notify(&**observer, &destination(), &end_event(number, stop, endpoint.as_deref()));
            return None;
        }
    }
    let mut new = None;
    let progress = progress.unwrap_or_else(|| {
        let started = context.started.unwrap_or_else(Instant::now);
        new.insert(Progress::new(settings, context, started, destination()))
    });
    progress.report_end(&settings.observer, (number, endpoint), stop, last, Instant::now);
    let report = progress.report(&settings.protocol, stop);
    match slot {
        Some(slot) if failed_before => {
            slot.put(report.clone());
            Some(report)
        }
        Some(slot) => {
            slot.put(report);
            None
        }
        None => failed_before.then_some(report),
    }
}
