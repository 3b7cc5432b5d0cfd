//! The log of a call: its finished attempts, for the observer and the report.
//!
//! It is created at the first failure or with the first hedge.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{Failure, Proof, StopReason};

use super::observe::{Event, Observer, notify};
use super::protocol::Protocol;
use super::report::{AttemptOutcome, AttemptReport, Attempts, Report, Unopened};

/// The observer of a policy, if one is set.
pub(crate) type Observing = Option<Arc<dyn Observer>>;

/// The maximum number of attempts in a report, because a call without limits may run for days.
const MOST_REPORTED: usize = 64;

/// The finished attempts of a call, and its destination, which is the budget's key.
pub(crate) struct CallLog {
    pub(crate) destination: Box<str>,
    attempts: Attempts,
    omitted: u32,
    unopened: Option<Unopened>,
}

impl CallLog {
    pub(crate) fn new(destination: Box<str>) -> Self {
        Self { destination, attempts: Attempts::new(), omitted: 0, unopened: None }
    }

    /// Returns the attempt that ended last.
    pub(crate) fn last(&self) -> Option<&AttemptReport> {
        self.attempts.last()
    }

    /// Returns the failure of the last attempt.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        match self.last()?.outcome {
            AttemptOutcome::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Sets the delay after the last attempt, and the proof that alone allows it to be repeated. Both are `None` once
    /// no retry follows.
    pub(crate) fn set_retry(&mut self, delay: Option<Duration>, proof: Option<Proof>) {
        if let Some(last) = self.attempts.last_mut() {
            (last.delay, last.repeated_by) = (delay, proof);
        }
    }

    /// Records that the body could not be opened for the next attempt.
    pub(crate) fn set_unopened(&mut self, error: Arc<dyn Error + Send + Sync>) {
        self.unopened = Some(Unopened(error));
    }

    /// Records the end of an attempt, with the time since the start of the call.
    pub(crate) fn record(
        &mut self,
        ended: Duration,
        (number, replacement): (u32, bool),
        endpoint: Option<Arc<str>>,
        outcome: AttemptOutcome,
    ) {
        if self.attempts.len() == MOST_REPORTED {
            // An attempt in the middle is omitted, because the first and the last are the most informative.
            self.attempts.remove(MOST_REPORTED / 2);
            self.omitted = self.omitted.saturating_add(1);
        }
        let (delay, repeated_by) = (None, None);
        self.attempts.push(AttemptReport { number, replacement, endpoint, ended, outcome, delay, repeated_by });
    }

    /// Notifies the observer of an event.
    pub(crate) fn notify(&self, observer: &Observing, event: &Event<'_>) {
        if let Some(observer) = observer {
            notify(&**observer, &self.destination, event);
        }
    }

    /// Notifies the observer of the failure that was recorded last.
    pub(crate) fn notify_failure(&self, observer: &Observing) {
        if let Some(last) = self.last() {
            let endpoint = last.endpoint.as_deref();
            let event = Event::AttemptFailed { attempt: last.number, outcome: &last.outcome, endpoint };
            self.notify(observer, &event);
        }
    }

    /// Takes the report of a call that ended after `sent` attempts, with the outcome of attempt `winner`.
    pub(crate) fn take_report<P: Protocol>(
        &mut self,
        protocol: &P,
        (sent, winner): (u32, Option<u32>),
        stop: StopReason,
    ) -> Report {
        // The retry after this delay was never sent, so the delay does not belong in the report.
        if matches!(stop, StopReason::BodyNotKept | StopReason::BodyNotOpened) {
            self.set_retry(None, None);
        }
        Report {
            attempts: std::mem::take(&mut self.attempts),
            omitted: self.omitted,
            sent,
            winner,
            stop,
            code_names: P::CODE_NAMES,
            body_limits: protocol.body_limits().filter(|_| stop == StopReason::BodyNotKept),
            unopened: self.unopened.take(),
        }
    }
}

/// Returns the event for the end of a call. `endpoint` is the one that responded, if the call succeeded.
pub(crate) fn end_event(attempts: u32, stop: StopReason, endpoint: Option<&str>) -> Event<'_> {
    match stop {
        StopReason::Succeeded => Event::Succeeded { attempts, endpoint },
        reason => Event::GaveUp { attempts, reason },
    }
}
