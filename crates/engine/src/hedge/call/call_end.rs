//! The end of a hedged call: losers are cancelled, the budget and the observer are notified, and the response is
//! returned.

use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

use reattempt_core::{Budget, CallEnd, StopReason};

use super::HedgeDriver;
use crate::call::clock::Instant;
use crate::call::deadline::PASSED;
use crate::call::late_answers::leave;
use crate::call::log::end_event;
use crate::call::observe::notify;
use crate::call::report::{AttemptOutcome, Report};
use crate::call::timed_out::{RefusedResponse, TimeLimit, TimedOut};
use crate::error_mode::ErrorMode;
use crate::protocol::{AnswerOf, CallTypes, ClassifyOutcome, Protocol, RequestProtocol, ResultOf, Saved, unanswered};

/// The end of a call.
pub(in crate::hedge) struct Over<R, Attempt> {
    pub(in crate::hedge) outcome: HedgedOutcome<R, Attempt>,
    pub(in crate::hedge) stop: StopReason,
}

/// The outcome of a call.
pub(in crate::hedge) enum HedgedOutcome<R, Attempt> {
    /// The outcome of the attempt with this number.
    Of(u32, R),
    /// An outcome that this layer created.
    Made(Attempt),
}

/// The end of a call with these types.
pub(in crate::hedge) type OverOf<T> = Over<ResultOf<T>, AnswerOf<T>>;

impl<T: CallTypes> HedgeDriver<T> {
    /// Returns `true` if the answers of losing attempts may be awaited.
    pub(in crate::hedge) fn lingers(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.lingers())
    }

    /// Takes the last outcome.
    pub(in crate::hedge) fn last(&mut self, stop: StopReason) -> Option<OverOf<T>> {
        let (number, result) = self.running.as_mut()?.last.take()?;
        Some(Over { outcome: HedgedOutcome::Of(number, result), stop })
    }

    /// Takes the head of the last response, if the protocol can create a response from it.
    pub(super) fn refused(&mut self, stop: StopReason) -> Option<OverOf<T>> {
        let running = self.running.as_mut()?;
        let answer = self.shared.policy.settings.protocol.refused(running.refused.as_ref()?)?;
        Some(Over { outcome: HedgedOutcome::Made(Ok(answer)), stop })
    }

    /// Returns the end of a call whose deadline has passed, if there is an error or a response to return.
    pub(in crate::hedge) fn interrupted(&mut self, since: Instant) -> Option<OverOf<T>> {
        let stop = StopReason::DeadlineExceeded;
        let protocol = &self.shared.policy.settings.protocol;
        let running = self.running.as_mut();
        let refused = running.and_then(|running| match running.last.take() {
            Some((_, Ok(response))) => protocol.drain(response).1,
            _ => running.refused.take(),
        });
        let made = timed_out::<T>(protocol, TimeLimit::Deadline, since, refused)?;
        Some(Over { outcome: HedgedOutcome::Made(made), stop })
    }

    /// Returns the end of a call that is out of time and has no other outcome, if there is an error to return.
    pub(super) fn too_long(&mut self, stop: StopReason) -> Option<OverOf<T>> {
        if !T::Mode::INTERRUPTS {
            return None;
        }
        let limit = match stop {
            StopReason::DeadlineExceeded => TimeLimit::Deadline,
            _ => TimeLimit::Elapsed,
        };
        let refused = self.running.as_mut().and_then(|running| running.refused.take());
        let since = self.context.started.unwrap_or_else(Instant::now);
        let protocol = &self.shared.policy.settings.protocol;
        let made = timed_out::<T>(protocol, limit, since, refused)?;
        Some(Over { outcome: HedgedOutcome::Made(made), stop })
    }

    /// Ends the call: cancels the losers, updates the budget, notifies the observer and creates the report. `first` is
    /// `true` if the first attempt was in flight.
    pub(in crate::hedge) fn end_call(&mut self, over: OverOf<T>, first: bool, cx: &mut Context<'_>) -> AnswerOf<T> {
        let Over { outcome, stop } = over;
        let winner = match &outcome {
            HedgedOutcome::Of(number, _) => Some(*number),
            HedgedOutcome::Made(_) => None,
        };
        let mut account = self.account(winner.unwrap_or_default());
        let settings = &self.shared.policy.settings;
        let response = match &outcome {
            HedgedOutcome::Of(_, Ok(response)) => Some(response),
            _ => None,
        };
        let succeeded = stop == StopReason::Succeeded;
        let open = response.is_some_and(|response| settings.protocol.is_open(response, succeeded));
        let may_stall = |response: &_| !open && settings.protocol.may_stall(response);
        let stalls = self.context.deadline.is_some() && response.is_some_and(may_stall);
        let concerned = account.has_paid() || !settings.budget.is_full();
        let credited = succeeded && response.is_some() && !open && concerned;
        self.stopwatch = None;
        let attempts = self.attempts.map_or(1, |attempts| attempts.sent());
        if credited {
            let (account, end) = (std::mem::take(&mut account), CallEnd::Succeeded);
            let budget = &settings.budget;
            self.with_any_destination(|destination| account.settle(end, destination, budget));
        }
        if let Some(observer) = &settings.observer {
            let endpoint = winner.and_then(|winner| self.endpoint(winner));
            let event = end_event(attempts, stop, endpoint.as_deref());
            self.with_destination(|destination| notify(&**observer, destination, &event));
        }
        let report = self.take_report((attempts, winner), stop, first);
        let settings = &self.shared.policy.settings;
        // The losers are dropped first, so that they stop reading. The unused reader is dropped next.
        let sent = winner.filter(|_| open || stalls).and_then(|winner| self.sent(winner));
        let running = self.running.take();
        let saved = self.saved.take();
        let (log, former) = match running {
            Some(running) => dismiss(running.lingers(), || (Some(running.log), running.last)),
            None => (None, None),
        };
        let finish = (open || stalls).then(|| {
            let destination = match (log, saved) {
                (Some(log), _) => log.destination.to_string(),
                (None, Some(saved)) => settings.protocol.destination_of(saved.view()).into(),
                (None, None) => String::new(),
            };
            // A response that was classified as a failure is already recorded.
            let retryable = succeeded && self.terms.limits.max_attempts > 1;
            self.context.finish(settings, destination, retryable, (attempts, open.then_some(account)), sent)
        });
        self.drain_refused(former, cx);
        match outcome {
            HedgedOutcome::Of(_, Ok(mut response)) => {
                if let Some(report) = report {
                    self.shared.policy.settings.protocol.attach(&mut response, report);
                }
                Ok(match finish {
                    Some(finish) => T::Protocol::watched(response, finish),
                    None => T::Protocol::answer(response, false),
                })
            }
            HedgedOutcome::Of(_, Err(error)) => unanswered::<T::Protocol, _, _, T::Mode>(error, report),
            HedgedOutcome::Made(made) => made,
        }
    }

    /// Stores the report in the caller's slot. Also returns it for the response if an attempt failed or there were
    /// several.
    fn take_report(&mut self, (sent, winner): (u32, Option<u32>), stop: StopReason, first: bool) -> Option<Report> {
        let slot = self.context.slot().cloned();
        if self.running.is_none() && slot.is_none() {
            return None;
        }
        let (shared, ended) = (Arc::clone(&self.shared), self.elapsed());
        let tried = self.first.clone();
        let running = self.running();
        let several = sent > 1 || running.log.last().is_some();
        running.log_cancelled(first, &tried, ended);
        if let (Some(number), StopReason::Succeeded) = (winner, stop) {
            running.log_end(number, &tried, ended, AttemptOutcome::Succeeded);
        }
        let report = running.log.take_report(&shared.policy.settings.protocol, (sent, winner), stop);
        if let Some(slot) = slot {
            slot.put(report.clone());
        }
        several.then_some(report)
    }

    /// Reads the part of a refused response that is immediately available, so that its connection may be reused.
    pub(super) fn drain_refused(&mut self, refused: Option<(u32, ResultOf<T>)>, cx: &mut Context<'_>) {
        if let Some((_, Ok(response))) = refused {
            let (drain, head) = self.shared.policy.settings.protocol.drain(response);
            let _ = pin!(drain).poll(cx);
            if let Some(running) = &mut self.running {
                running.refused = head;
            }
        }
    }
}

/// Drops losing attempts by calling `drop_all`. Their answers may be on their way, if they `linger`.
#[cold]
pub(in crate::hedge) fn dismiss<R>(linger: bool, drop_all: impl FnOnce() -> R) -> R {
    if linger { leave(drop_all) } else { drop_all() }
}

/// Returns the end of a call that is out of time: the error mode's error or the protocol's response.
pub(in crate::hedge) fn timed_out<T: CallTypes>(
    protocol: &T::Protocol,
    limit: TimeLimit,
    since: Instant,
    refused: Option<RefusedResponse>,
) -> Option<AnswerOf<T>> {
    let (after, source) = (since.elapsed(), T::Protocol::source_of_time_limit());
    match T::Mode::timed_out(TimedOut { limit, after, endpoint: None, refused, source, uploading: false }) {
        Some(error) => Some(Err(error)),
        None => protocol.too_late(PASSED, || None).map(Ok),
    }
}
