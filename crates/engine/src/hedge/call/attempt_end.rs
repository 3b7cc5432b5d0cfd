//! The end of an attempt: its outcome is classified, and either ends the call or leads to other attempts.

use crate::call::clock::Instant;
use crate::call::observe::{Event, notify};
use std::error::Error;
use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use reattempt_core::{
    Account, Budget, CallEnd, Evidence, FailureKind, HedgeEvent, HedgePermits, Proof, ServerHint, Verdict, Work,
};
use reattempt_replay::{ReplayBody, ReplayError, UploadError};

use super::{HedgeDriver, HedgedOutcome, Over, OverOf};
use crate::call::report::AttemptOutcome;
use crate::error_mode::ErrorMode;
use crate::protocol::{CallTypes, ClassifyOutcome, OutcomeFacts, RequestProtocol, ResultOf, Saved, is_own_deadline};

/// The classification of an attempt's outcome.
struct Sorted {
    event: HedgeEvent,
    /// The evidence of a retryable failure.
    evidence: Option<Evidence>,
    /// `true` if the server forbade further attempts.
    stop: bool,
    /// `true` if a guard refused the attempt, which proves that it was not processed.
    unsent: bool,
}

impl Sorted {
    /// Creates the classification of an outcome that is not a server failure.
    fn of(event: HedgeEvent) -> Self {
        Self { event, evidence: None, stop: false, unsent: false }
    }
}

impl<T: CallTypes> HedgeDriver<T> {
    /// Records the end of an attempt. Returns the end of the call if it has ended. `is_logged` is `true` for an attempt
    /// that could not be replaced, whose failure is already logged.
    pub(in crate::hedge) fn ended(
        &mut self,
        number: u32,
        result: ResultOf<T>,
        is_logged: bool,
        cx: &mut Context<'_>,
    ) -> ControlFlow<OverOf<T>> {
        let protocol = &self.shared.policy.settings.protocol;
        let outcome = result.as_ref().map_err(T::Mode::view);
        if T::Mode::ENDS_LATE && is_own_deadline(protocol, outcome, self.context.deadline, self.context.started) {
            let since = self.context.started.unwrap_or_else(Instant::now);
            if let Some(over) = self.interrupted(since) {
                self.running().overdue = Some(number);
                return ControlFlow::Break(over);
            }
        }
        let running = self.running.as_ref();
        let cut_off = running.is_some_and(|running| running.is_cut_off(number, cx));
        let (sorted, facts) = self.sort(number, outcome, cut_off);
        let refused = sorted.event == HedgeEvent::Refused;
        // A hedge that a guard refuses at its first poll was not sent. The guard notifies its own observer.
        let by_guard = refused && facts.refused.is_some();
        let moves = !is_logged && self.moves(number, &sorted);
        let not_sent = self.running.as_mut().is_some_and(|running| {
            by_guard && !moves && running.unannounced.take_if(|(hedge, _)| *hedge == number).is_some()
        });
        self.announce();
        if let Some(running) = &mut self.running {
            match refused {
                // Its permit pays for the attempt elsewhere.
                _ if moves => {}
                true => running.permits.on_refusal(number),
                false => running.permits.on_end(number),
            }
        }
        if moves || (sorted.event != HedgeEvent::BodyLost && self.is_replaced(number, facts.undone, sorted.evidence)) {
            self.log_failure(number, &sorted, &result);
            if let Some(observer) = &self.shared.policy.settings.observer {
                let of_evidence = sorted.evidence.and_then(|evidence| evidence.proof());
                let proof = facts.undone.map(Proof::from).or(of_evidence).unwrap_or(Proof::NotSent);
                let event = Event::WillReplace { attempt: number, proof };
                self.with_destination(|destination| notify(&**observer, destination, &event));
            }
            self.replace(number, result);
            return ControlFlow::Continue(());
        }
        if number == 1
            && let Some(stopwatch) = self.stopwatch.take()
            && sorted.event.ends().is_some()
            && result.is_ok()
        {
            stopwatch.answered();
        }
        self.record_failure(number, &sorted, facts.responded);
        if !not_sent && !is_logged {
            self.log_failure(number, &sorted, &result);
        }
        let stop = match sorted.event.ends() {
            Some(stop) => Some(stop),
            None => self.decide(sorted.event),
        };
        // If this client cut off or refused the attempt, its error becomes the call's outcome only if there is no
        // other.
        let real = sorted.event != HedgeEvent::BodyLost && !refused;
        if let Some(stop) = stop {
            let former = if real { None } else { self.last(stop) };
            let own = Over { outcome: HedgedOutcome::Of(number, result), stop };
            return ControlFlow::Break(former.unwrap_or(own));
        }
        let running = self.running();
        if real || running.last.is_none() {
            running.failure = sorted.evidence.map(|evidence| evidence.failure);
            let former = running.last.replace((number, result));
            self.drain_refused(former, cx);
        }
        ControlFlow::Continue(())
    }

    /// Drops the attempts that cannot read the rest of the request body, because another one has read beyond the saved
    /// part. Their errors are not outcomes. Returns the end of the call if no attempt is left.
    // BUF-8
    pub(in crate::hedge) fn drop_cut_off(
        &mut self,
        first: Pin<&mut Option<T::Future>>,
        cx: &mut Context<'_>,
    ) -> Option<OverOf<T>> {
        let dropped = self.running.as_mut()?.drop_cut_off(first, cx);
        let stop = (0..dropped).find_map(|_| self.decide(HedgeEvent::BodyLost))?;
        self.last(stop)
    }

    /// Classifies an outcome, and determines its facts, unless it is a success. If an attempt was cut off from the
    /// request body, that caused its error.
    fn sort(
        &self,
        number: u32,
        outcome: Result<&T::Response, &(dyn Error + 'static)>,
        cut_off: bool,
    ) -> (Sorted, OutcomeFacts) {
        let protocol = &self.shared.policy.settings.protocol;
        let classify = || protocol.classify_outcome(outcome, self.context.options.as_ref(), self.saved.as_ref());
        let of_response = outcome.is_ok().then(classify);
        if of_response.is_some_and(|classification| classification.verdict == Verdict::Success) {
            return (Sorted::of(HedgeEvent::Succeeded), OutcomeFacts::of_any(None));
        }
        let facts = protocol.facts(outcome);
        if let Err(error) = outcome
            && let Some(event) = self.of_the_body(error, cut_off)
        {
            return (Sorted::of(event), facts);
        }
        // A refusal is handled before any classifier, because it is not a failure of the server.
        if facts.refused_here {
            let unsent = facts.refused.is_some() && matches!(classify().verdict, Verdict::NotProcessed(_));
            return (Sorted { unsent, ..Sorted::of(HedgeEvent::Refused) }, facts);
        }
        let mut classification = of_response.unwrap_or_else(classify);
        let facts = facts.under(classification.verdict);
        if facts.responded && self.is_elsewhere(number) {
            classification.hint = classification.hint_elsewhere();
        }
        let event = HedgeEvent::of(&classification, facts.responded);
        let evidence = || self.sent_at(number, facts.evidence(classification.verdict));
        let evidence = classification.verdict.failure().map(|_| evidence());
        let sorted = Sorted { evidence, stop: classification.hint == ServerHint::Stop, ..Sorted::of(event) };
        (sorted, facts)
    }

    /// Returns the event for an error that the request body caused. Either the caller's body failed, which affects
    /// every attempt, or this attempt could not read the rest of it, or could not open it.
    fn of_the_body(&self, error: &(dyn Error + 'static), cut_off: bool) -> Option<HedgeEvent> {
        if cut_off {
            return Some(HedgeEvent::BodyLost);
        }
        let body = self.saved.as_ref().and_then(Saved::body);
        // An upload that could not be opened for this attempt may be open for the others.
        let is_upload = body.is_some_and(|body| body.open_within().is_some());
        if !is_upload && body.is_some_and(ReplayBody::source_failed) {
            return Some(HedgeEvent::Fatal);
        }
        let mut causes = std::iter::successors(Some(error), |&error| cause(error))
            .filter_map(|error| error.downcast_ref::<ReplayError>())
            .peekable();
        causes.peek()?;
        // The saved request may be gone, so the error shows if it is an upload's.
        let all_of_source = causes.all(|error| match error {
            ReplayError::Source(source) => !source.is::<UploadError>(),
            _ => false,
        });
        Some(if all_of_source { HedgeEvent::Fatal } else { HedgeEvent::BodyLost })
    }

    /// Records a retryable failure or a fatal response in the budget. An error that is not retryable
    /// changes nothing, because no server responded.
    // THR-3, PB-8
    fn record_failure(&mut self, number: u32, sorted: &Sorted, answered: bool) {
        let fatal = sorted.event == HedgeEvent::Fatal;
        let account = if fatal { self.account(number) } else { Account::default() };
        let budget = &self.shared.policy.settings.budget;
        if let Some(evidence) = sorted.evidence {
            let now = Instant::now().since_epoch();
            self.with_destination(|destination| {
                HedgePermits::on_failure(&evidence, destination, now, budget);
            });
        } else if answered && fatal && (sorted.stop || !budget.is_full()) {
            let hint = if sorted.stop { ServerHint::Stop } else { ServerHint::None };
            let end = CallEnd::Permanent(hint);
            self.with_destination(|destination| account.settle(end, destination, budget));
        }
    }

    /// Returns `true` if this attempt moves to another endpoint, because a guard refused it or its endpoint accepted no
    /// connection.
    fn moves(&mut self, number: u32, sorted: &Sorted) -> bool {
        let unreachable = sorted.evidence.filter(|evidence| {
            let is_unsent = evidence.work == Work::None && evidence.undone.is_none();
            is_unsent && evidence.failure.kind() == FailureKind::Connect
        });
        match unreachable {
            _ if sorted.unsent => self.leaves_guard(number),
            Some(evidence) => self.leaves_unreachable(number, evidence),
            None => false,
        }
    }

    /// Returns `true` if the budget permits that an unprocessed attempt is replaced without a permit.
    pub(super) fn allows(&self, evidence: &Evidence) -> bool {
        let now = Instant::now().since_epoch();
        let mut allows = true;
        // Calls that are not hedged move too, so the budget is asked for them as well.
        self.with_any_destination(|destination| {
            allows = self.shared.policy.settings.budget.on_unprocessed(destination, evidence, now);
        });
        allows
    }

    /// Adds the time of sending to the evidence.
    pub(super) fn sent_at(&self, number: u32, evidence: Evidence) -> Evidence {
        self.sent(number).map_or(evidence, |sent| evidence.sent_at(sent))
    }

    /// Returns the time at which this attempt was sent. It is unknown if the first attempt ended at once.
    pub(super) fn sent(&self, number: u32) -> Option<Duration> {
        let later = self.running.as_ref().and_then(|running| running.sent(number));
        later.or_else(|| self.context.started.filter(|_| number == 1).map(Instant::since_epoch))
    }

    /// Uses the permits of the hedges in flight. Returns the account to record in the budget when the call ends with
    /// the attempt `winner`.
    pub(super) fn account(&mut self, winner: u32) -> Account {
        self.running.as_mut().map(|running| running.permits.end_call(winner)).unwrap_or_default()
    }

    /// Logs a failed attempt and notifies the observer.
    fn log_failure(&mut self, number: u32, sorted: &Sorted, result: &ResultOf<T>) {
        if sorted.event == HedgeEvent::Succeeded {
            return;
        }
        let code = result.as_ref().ok().and_then(T::Protocol::code);
        let error = T::Protocol::error_text(result.as_ref().map_err(T::Mode::view));
        let outcome = match sorted.evidence {
            Some(evidence) => {
                let mut cause = None;
                self.with_any_destination(|destination| {
                    let now = Instant::now().since_epoch();
                    cause = self.shared.policy.settings.causes.record(destination, &evidence, now);
                });
                AttemptOutcome::Failed { failure: evidence.failure, error, cause }
            }
            None => AttemptOutcome::PermanentFailure { code, error },
        };
        if let Some(observer) = &self.shared.policy.settings.observer {
            let endpoint = self.endpoint(number);
            let event = Event::AttemptFailed { attempt: number, outcome: &outcome, endpoint: endpoint.as_deref() };
            self.with_destination(|destination| notify(&**observer, destination, &event));
        }
        // A call that ends with its first attempt needs no log, unless the caller reads its report.
        let alone = self.running.is_none() && sorted.event.ends().is_some();
        if !alone || self.context.slot().is_some() {
            let ended = self.elapsed();
            let first = self.first.clone();
            self.running().log_end(number, &first, ended, outcome);
        }
    }

    /// Returns the endpoint of the attempt with this number.
    pub(super) fn endpoint(&self, number: u32) -> Option<Arc<str>> {
        match &self.running {
            Some(running) => running.endpoint(number, &self.first),
            None => self.first.pick()?.id.name(),
        }
    }

    /// Calls `f` with the destination, if the call may be hedged.
    pub(super) fn with_destination(&self, f: impl FnOnce(&str)) {
        if self.terms.limits.max_attempts > 1 {
            self.with_any_destination(f);
        }
    }

    /// Calls `f` with the destination, if it is known.
    pub(super) fn with_any_destination(&self, f: impl FnOnce(&str)) {
        match (&self.running, &self.saved) {
            (Some(running), _) => f(&running.log.destination),
            (None, Some(saved)) => f(&self.shared.policy.settings.protocol.destination_of(saved.view())),
            (None, None) => {}
        }
    }
}

/// Returns the cause of an error, including the error inside an `io::Error`, which its `source()` omits.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source())
}
