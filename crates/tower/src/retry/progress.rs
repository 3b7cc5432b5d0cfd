//! What is known of a call once an attempt has failed: the state that decisions are made from.
//!
//! Made at the first failure. The retry future and the stock `tower::retry::Policy` both keep one.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use reattempt_core::{
    Admission, Budget, Decision, Delays, Failed, Failure, Judgement, Permit, Schedule, ServerHint,
    StopReason, decide,
};
use reattempt_http::Undone;
use reattempt_schedule_exponential::ExponentialDelays;
use tokio::time::Instant;

use super::Setting;
use crate::configured::OfMethod;
use crate::protocol::{Protocol, chain};
use crate::random::CallRandom;
use crate::report::{AttemptOutcome, AttemptReport, Report};
use crate::{CallOptions, Event, RetryPolicy, clock};

/// The delays of the policy's schedule, of the call's own, or of its method's service config.
enum CallDelays<D> {
    Policy(D),
    Call(Box<dyn Delays + Send>),
    Method(ExponentialDelays),
}

impl<D: Delays> CallDelays<D> {
    fn new<T: Schedule<Delays = D>>(of_policy: &T, options: Option<&CallOptions>) -> Self {
        if let Some(own) = options.and_then(CallOptions::get_schedule) {
            return CallDelays::Call(own.delays());
        }
        match options.and_then(CallOptions::method).and_then(OfMethod::delays) {
            Some(delays) => CallDelays::Method(delays),
            None => CallDelays::Policy(of_policy.delays()),
        }
    }
}

/// A call of which an attempt has failed.
pub(crate) struct Progress<D> {
    started: Instant,
    destination: Box<str>,
    delays: CallDelays<D>,
    random: CallRandom,
    previous: Option<Duration>,
    /// What the last retry cost the budget.
    pub(crate) paid: u32,
    attempts: Vec<AttemptReport>,
    omitted: u32,
    /// Whether how the attempt under way ended is among them; so before one is sent.
    noted: bool,
    /// Whether the attempt under way takes the place of another.
    replacement: bool,
    /// What was replaced of this call: each kind is once.
    replaced: Vec<Undone>,
}

/// The most attempts that a report lists: a call without limits may go on for days.
const MOST_REPORTED: usize = 64;

/// An attempt that failed in a way a retry may mend.
pub(crate) struct FailedAttempt {
    pub(crate) number: u32,
    /// When it ended.
    pub(crate) now: Instant,
    pub(crate) judgement: Judgement,
    pub(crate) failure: Failure,
    pub(crate) at_hand: bool,
    pub(crate) admission: Admission,
    pub(crate) error: Option<Box<str>>,
}

/// A retry that has been decided upon.
pub(crate) struct Granted {
    /// When it was decided.
    pub(crate) now: Instant,
    /// When the retry is due; `None` for at once.
    pub(crate) due: Option<Instant>,
    pub(crate) permit: Permit,
    /// Whether it only takes the place of the attempt that failed.
    pub(crate) replaces: bool,
}

impl<D: Delays> Progress<D> {
    pub(crate) fn new<K, T, B, M>(
        policy: &RetryPolicy<K, T, B, M>,
        setting: &Setting,
        started: Instant,
        destination: Cow<'_, str>,
    ) -> Self
    where
        K: Protocol,
        T: Schedule<Delays = D>,
    {
        Self {
            started,
            destination: destination.into(),
            delays: CallDelays::new(&policy.settings.schedule, setting.options.as_ref()),
            random: setting.random(&policy.settings),
            previous: None,
            paid: 0,
            // Most retries succeed.
            attempts: Vec::with_capacity(2),
            omitted: 0,
            noted: false,
            replacement: false,
            replaced: Vec::new(),
        }
    }

    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    /// The moment past which this call waits for nothing more, if there is one.
    pub(crate) fn end<K: Protocol, T: Schedule, B, M>(
        &self,
        policy: &RetryPolicy<K, T, B, M>,
        setting: &Setting,
    ) -> Option<Instant> {
        let elapsed = setting.limits(policy.limits()).max_elapsed;
        let latest = elapsed.map(|most| clock::later(self.started, most));
        latest.into_iter().chain(setting.deadline).min()
    }

    /// Tells what failed, decides what follows, and tells that.
    pub(crate) fn failed<K, T, B, M>(
        &mut self,
        policy: &RetryPolicy<K, T, B, M>,
        setting: &Setting,
        attempt: FailedAttempt,
    ) -> Result<Granted, StopReason>
    where
        K: Protocol,
        T: Schedule<Delays = D>,
        B: Budget,
    {
        let settings = &*policy.settings;
        let now = attempt.now;
        let elapsed = now.saturating_duration_since(self.started);
        self.record(
            elapsed,
            attempt.number,
            AttemptOutcome::Failed { failure: attempt.failure, error: attempt.error },
        );
        self.tell_failure(policy);
        let limits = setting.limits(&settings.limits);
        if setting.forbidden.is_none() && limits.max_attempts > 1 {
            settings.budget.failed(&self.destination, &attempt.failure);
        }
        match setting.options.as_ref().and_then(CallOptions::get_schedule) {
            Some(own) => own.failed(attempt.admission, &attempt.failure, &mut self.random),
            None => settings.schedule.failed(attempt.admission, &attempt.failure, &mut self.random),
        }
        if let Some(reason) = setting.forbidden {
            return Err(reason);
        }
        let failed = Failed {
            judgement: attempt.judgement,
            attempts: attempt.number,
            repeatable: setting.repeatable,
            at_hand: attempt.at_hand,
            previous: self.previous,
            admission: attempt.admission,
            elapsed,
            until_deadline: setting
                .deadline
                .map(|deadline| deadline.saturating_duration_since(now)),
            destination: &self.destination,
            now: clock::since_epoch(now),
        };
        let delays: &mut dyn Delays = match &mut self.delays {
            CallDelays::Policy(delays) => delays,
            CallDelays::Call(delays) => delays,
            CallDelays::Method(delays) => delays,
        };
        match decide(&limits, &failed, delays, &mut self.random, &settings.budget) {
            Decision::Return(reason) => Err(reason),
            Decision::Retry { after, .. }
                if !after.is_zero() && !setting.blocking && !clock::has_timer() =>
            {
                Err(StopReason::NoTimer)
            }
            Decision::Retry { after, permit } => {
                self.previous = Some(after);
                if let ServerHint::Exactly(_) = attempt.judgement.hint {
                    // Rule PB-5
                    self.delays = CallDelays::new(&settings.schedule, setting.options.as_ref());
                }
                if let Some(last) = self.attempts.last_mut() {
                    last.delay = Some(after);
                }
                let due = (!after.is_zero()).then(|| clock::later(now, after));
                Ok(Granted { now, due, permit, replaces: false })
            }
        }
    }

    /// Whether an attempt that came so far and no further is replaced at once, as each kind is once for
    /// a call (rules TR-1, TR-2, TR-4): no limit, no schedule and no budget has to do with that.
    pub(crate) fn replace<K, T, B, M>(
        &mut self,
        policy: &RetryPolicy<K, T, B, M>,
        setting: &Setting,
        attempt: &mut FailedAttempt,
        undone: Undone,
    ) -> Option<Granted>
    where
        K: Protocol,
        T: Schedule<Delays = D>,
    {
        let now = attempt.now;
        let late = setting.deadline.is_some_and(|deadline| deadline <= now);
        let again = self.replaced.contains(&undone);
        if late || again || !attempt.at_hand || setting.forbidden.is_some() {
            return None;
        }
        self.replaced.push(undone);
        let outcome =
            AttemptOutcome::Failed { failure: attempt.failure, error: attempt.error.take() };
        let ended = now.saturating_duration_since(self.started);
        self.record(ended, attempt.number, outcome);
        self.tell_failure(policy);
        self.replacement = true;
        if let Some(observer) = &policy.settings.observer {
            let event = Event::WillReplace { attempt: attempt.number };
            observer.on_event(&self.destination, &event);
        }
        Some(Granted { now, due: None, permit: Permit::free(), replaces: true })
    }

    /// Whether the attempt that is next, or under way, takes the place of another.
    pub(crate) fn replaces(&self) -> bool {
        self.replacement
    }

    /// An attempt is being sent, with this leave.
    pub(crate) fn sending(&mut self, permit: Permit) {
        self.noted = false;
        let paid = permit.spend();
        if !self.replacement {
            self.paid = paid;
        }
    }

    /// Notes how an attempt ended.
    fn record(&mut self, ended: Duration, number: u32, outcome: AttemptOutcome) {
        if self.attempts.len() == MOST_REPORTED {
            // Of the beginning and the end there is most to be learnt.
            self.attempts.remove(MOST_REPORTED / 2);
            self.omitted = self.omitted.saturating_add(1);
        }
        let replacement = std::mem::take(&mut self.replacement);
        self.attempts.push(AttemptReport { number, replacement, ended, outcome, delay: None });
        self.noted = true;
    }

    /// Tells the observer of the attempt noted last.
    fn tell_failure<K: Protocol, T: Schedule, B, M>(&self, policy: &RetryPolicy<K, T, B, M>) {
        if let Some(observer) = &policy.settings.observer
            && let Some(last) = self.attempts.last()
        {
            let event = Event::AttemptFailed { attempt: last.number, outcome: &last.outcome };
            observer.on_event(&self.destination, &event);
        }
    }

    /// Tells the observer that attempt `number` follows.
    pub(crate) fn tell_retry<K: Protocol, T: Schedule, B, M>(
        &self,
        policy: &RetryPolicy<K, T, B, M>,
        number: u32,
    ) {
        if let Some(observer) = &policy.settings.observer {
            let after = self.previous.unwrap_or_default();
            observer.on_event(&self.destination, &Event::WillRetry { attempt: number, after });
        }
    }

    /// How the last attempt failed.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        match self.attempts.last()?.outcome {
            AttemptOutcome::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Notes how the call ended and tells the observer. The end of an attempt that might have been
    /// retried has been noted already.
    pub(crate) fn conclude<K: Protocol, T: Schedule, B, M>(
        &mut self,
        policy: &RetryPolicy<K, T, B, M>,
        number: u32,
        stop: StopReason,
        error: Option<&(dyn Error + 'static)>,
    ) {
        if !self.noted && number > 0 && stop != StopReason::NotReady {
            let outcome = match (stop, error) {
                (StopReason::Succeeded, _) => AttemptOutcome::Succeeded,
                (_, error) => AttemptOutcome::FailedForGood { error: error.map(chain) },
            };
            let ended = Instant::now().saturating_duration_since(self.started);
            self.record(ended, number, outcome);
            if stop != StopReason::Succeeded {
                self.tell_failure(policy);
            }
        }
        if let Some(observer) = &policy.settings.observer {
            let none = if stop == StopReason::NotReady { 0 } else { number };
            let attempts = self.attempts.last().map_or(none, |last| last.number);
            let event = match stop {
                StopReason::Succeeded => Event::Succeeded { attempts },
                reason => Event::GaveUp { attempts, reason },
            };
            observer.on_event(&self.destination, &event);
        }
    }

    /// The report of the call, which has ended.
    pub(crate) fn report(&mut self, stop: StopReason) -> Report {
        // A delay that was chosen but never waited for belongs to no attempt.
        if let Some(last) = self.attempts.last_mut()
            && stop == StopReason::BodyNotKept
        {
            last.delay = None;
        }
        Report { attempts: std::mem::take(&mut self.attempts), omitted: self.omitted, stop }
    }
}

/// Tells everybody who wants to know how a call ended: the observer and the caller's slot. Returns the
/// report for an answer that comes after a failure.
pub(crate) fn conclude<'a, K: Protocol, T: Schedule, B, M>(
    policy: &RetryPolicy<K, T, B, M>,
    setting: &Setting,
    (number, stop): (u32, StopReason),
    progress: Option<&mut Progress<T::Delays>>,
    destination: impl FnOnce() -> Cow<'a, str>,
    error: Option<&(dyn Error + 'static)>,
) -> Option<Report> {
    let slot = setting.options.as_ref().and_then(CallOptions::slot);
    let failed_before = progress.is_some();
    if !failed_before && slot.is_none() && policy.settings.observer.is_none() {
        return None;
    }
    let mut new = None;
    let progress = progress.unwrap_or_else(|| {
        let started = setting.started.unwrap_or_else(Instant::now);
        new.insert(Progress::new(policy, setting, started, destination()))
    });
    progress.conclude(policy, number, stop, error);
    let report = progress.report(stop);
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
