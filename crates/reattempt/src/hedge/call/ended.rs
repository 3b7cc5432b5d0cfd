//! The end of an attempt and the end of the call.

use std::error::Error;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Context;

use reattempt_core::{Account, Budget, CallEnd, Failure, HedgeEvent, ServerHint, StopReason};
use reattempt_replay::ReplayError;
use tokio::time::Instant;
use tower_service::Service;

use super::{Call, Hedging, NotSent, ResultOf};
use crate::call::clock;
use crate::call::deadline::PASSED;
use crate::call::errors::chain;
use crate::call::finish::Finish;
use crate::error_mode::ErrorMode;
use crate::hedge::policy::Settings;
use crate::hedge::{Extended, HedgeReport};
use crate::protocol::{ClassifyOutcome, Replay, Saved, is_refused_here, unanswered};
use crate::{AttemptOutcome, Deadline, RefusedResponse, TimeLimit, TimedOut};

/// A call that is over.
pub(in crate::hedge) struct Over<R, A> {
    pub(in crate::hedge) outcome: Outcome<R, A>,
    pub(in crate::hedge) stop: StopReason,
}

/// What a call ends with.
pub(in crate::hedge) enum Outcome<R, A> {
    /// The outcome of the attempt with this number.
    Of(u32, R),
    /// One that this layer made.
    Made(A),
}

/// The end of a call of these types.
pub(in crate::hedge) type OverOf<S, Req, K, M> =
    Over<ResultOf<S, Req, K, M>, AnswerOf<S, Req, K, M>>;

/// What the caller gets.
pub(in crate::hedge) type AnswerOf<S, Req, K, M> = Result<
    <K as ClassifyOutcome<<S as Service<<K as Replay<Req>>::Attempt>>::Response>>::Answer,
    <M as ErrorMode<<S as Service<<K as Replay<Req>>::Attempt>>::Error>>::Error,
>;

/// What an attempt's outcome means to the call.
struct Sorted {
    event: HedgeEvent,
    failure: Option<Failure>,
    /// The server wants no retry, whatever else is to be made of it.
    stop: bool,
}

impl<S, Req, K, B, M> Call<S, Req, K, B, M>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt> + Clone,
    S::Response: Extended,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// An attempt has ended: either the call is over with it, or it goes on.
    pub(in crate::hedge) fn ended(
        &mut self,
        number: u32,
        result: ResultOf<S, Req, K, M>,
        cx: &mut Context<'_>,
    ) -> ControlFlow<OverOf<S, Req, K, M>> {
        let protocol = &self.shared.policy.settings.protocol;
        let deadline = self.deadline.map(Deadline::instant);
        let outcome = result.as_ref().map_err(M::view);
        if protocol.is_own_deadline(outcome, deadline, self.started)
            && let Some(interrupt) = M::interrupt()
        {
            let since = self.started.unwrap_or_else(Instant::now);
            if let Some(over) = self.interrupted(interrupt, since) {
                return ControlFlow::Break(over);
            }
        }
        let running = self.running.as_ref();
        let cut_off = running.is_some_and(|running| running.is_cut_off(number, cx));
        let sorted = self.sort(&result, cut_off);
        let refused = sorted.event == HedgeEvent::Refused;
        if let Some(running) = &mut self.running {
            match refused {
                true => running.permits.on_refusal(number),
                false => running.permits.on_end(number),
            }
        }
        if sorted.event != HedgeEvent::BodyLost && self.is_replaced(number, &result) {
            self.tell_failure(number, &sorted, &result);
            if let Some(observer) = &self.shared.policy.settings.observer {
                let event = crate::Event::WillReplace { attempt: number };
                self.with_destination(|destination| observer.on_event(destination, &event));
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
        self.tell_budget(number, &sorted, self.responded(&result));
        self.tell_failure(number, &sorted, &result);
        let stop = match sorted.event.ends() {
            Some(stop) => Some(stop),
            None => self.take(sorted.event),
        };
        // What this side has cut off or refused says less than any real outcome.
        let real = sorted.event != HedgeEvent::BodyLost && !refused;
        if let Some(stop) = stop {
            let former = if real { None } else { self.last(stop) };
            let own = Over { outcome: Outcome::Of(number, result), stop };
            return ControlFlow::Break(former.unwrap_or(own));
        }
        let running = self.running();
        if real || running.last.is_none() {
            running.failure = sorted.failure;
            let former = running.last.replace((number, result));
            self.throw_away(former, cx);
        }
        ControlFlow::Continue(())
    }

    /// Drops the attempts that can read no more of the request's body, for another has read on beyond
    /// what is kept (rule BUF-8): whatever their clients make of that is no outcome. Returns the end of
    /// the call, if none is left.
    pub(in crate::hedge) fn drop_cut_off(
        &mut self,
        first: Pin<&mut Option<S::Future>>,
        cx: &mut Context<'_>,
    ) -> Option<OverOf<S, Req, K, M>> {
        let dropped = self.running.as_mut()?.drop_cut_off(first, cx);
        let stop = (0..dropped).find_map(|_| self.take(HedgeEvent::BodyLost))?;
        self.last(stop)
    }

    /// What an outcome means. An error of an attempt that was cut off from the request's body comes of
    /// that, whatever it looks like.
    fn sort(&self, result: &ResultOf<S, Req, K, M>, cut_off: bool) -> Sorted {
        if let Err(error) = result
            && let Some(event) = self.of_the_body(M::view(error), cut_off)
        {
            return Sorted { event, failure: None, stop: false };
        }
        // Before any classifier: it is no failure of the server's.
        if result.as_ref().is_err_and(|error| is_refused_here(M::view(error))) {
            return Sorted { event: HedgeEvent::Refused, failure: None, stop: false };
        }
        let settings = &*self.shared.policy.settings;
        let options = self.options.as_ref();
        let classification =
            settings.protocol.judge(result.as_ref().map_err(M::view), options, || false);
        let event = HedgeEvent::of(&classification, self.responded(result));
        let failure = classification.verdict.failure().copied();
        Sorted { event, failure, stop: classification.hint == ServerHint::Stop }
    }

    /// Returns `true` if a server has responded.
    fn responded(&self, result: &ResultOf<S, Req, K, M>) -> bool {
        let protocol = &self.shared.policy.settings.protocol;
        result.as_ref().is_ok_and(|response| protocol.is_answered(response))
    }

    /// An error that came of the request's own body rather than from the server: either the caller's
    /// body failed, and would under every attempt, or this attempt could not go on reading it.
    fn of_the_body(&self, error: &(dyn Error + 'static), cut_off: bool) -> Option<HedgeEvent> {
        if cut_off {
            return Some(HedgeEvent::BodyLost);
        }
        if self.kept.as_ref().is_some_and(Saved::source_failed) {
            return Some(HedgeEvent::Fatal);
        }
        let mut causes = std::iter::successors(Some(error), |&error| cause(error))
            .filter_map(|error| error.downcast_ref::<ReplayError>())
            .peekable();
        causes.peek()?;
        let all_of_source = causes.all(|error| matches!(error, ReplayError::Source(_)));
        Some(if all_of_source { HedgeEvent::Fatal } else { HedgeEvent::BodyLost })
    }

    /// Records a failure that is worth a retry, or a fatal response (rules THR-3, PB-8), with the
    /// budget. An error without a failure changes nothing: no server has answered.
    fn tell_budget(&mut self, number: u32, sorted: &Sorted, answered: bool) {
        let fatal = sorted.event == HedgeEvent::Fatal;
        let account = if fatal { self.account(number) } else { Account::default() };
        let budget = &self.shared.policy.settings.budget;
        if let Some(failure) = sorted.failure {
            let now = clock::since_epoch(Instant::now());
            self.with_destination(|destination| budget.on_failure(destination, &failure, now));
        } else if answered && fatal && (sorted.stop || !budget.is_full()) {
            let hint = if sorted.stop { ServerHint::Stop } else { ServerHint::None };
            let end = CallEnd::Permanent(hint);
            self.with_destination(|destination| account.settle(end, destination, budget));
        }
    }

    /// Spends the permits of the hedges in flight. Returns what the budget must be given at the end of a call
    /// that ends with the attempt `winner`.
    fn account(&mut self, winner: u32) -> Account {
        self.running.as_mut().map(|running| running.permits.end(winner)).unwrap_or_default()
    }

    fn tell_failure(&self, number: u32, sorted: &Sorted, result: &ResultOf<S, Req, K, M>) {
        let Some(observer) = &self.shared.policy.settings.observer else { return };
        if sorted.event == HedgeEvent::Succeeded {
            return;
        }
        let error = result.as_ref().err().map(|error| chain(M::view(error)));
        let outcome = match sorted.failure {
            Some(failure) => AttemptOutcome::Failed { failure, error },
            None => AttemptOutcome::FailedForGood { error },
        };
        let event = crate::Event::AttemptFailed { attempt: number, outcome: &outcome };
        self.with_destination(|destination| observer.on_event(destination, &event));
    }

    /// Calls `tell` with the key of the budget, if the call may be hedged at all.
    fn with_destination(&self, tell: impl FnOnce(&str)) {
        if self.terms.limits.max_attempts > 1 {
            self.with_any_destination(tell);
        }
    }

    /// The same for any call whose budget has something to learn.
    fn with_any_destination(&self, tell: impl FnOnce(&str)) {
        match (&self.running, &self.kept) {
            (Some(running), _) => tell(&running.destination),
            (None, Some(kept)) => tell(&self.shared.policy.settings.protocol.destination(kept)),
            (None, None) => {}
        }
    }

    /// The outcome that came last.
    pub(in crate::hedge) fn last(&mut self, stop: StopReason) -> Option<OverOf<S, Req, K, M>> {
        let (number, result) = self.running.as_mut()?.last.take()?;
        Some(Over { outcome: Outcome::Of(number, result), stop })
    }

    /// The last response as far as it is still there, where the protocol can answer with that.
    fn refused(&mut self, stop: StopReason) -> Option<OverOf<S, Req, K, M>> {
        let running = self.running.as_mut()?;
        let answer = self.shared.policy.settings.protocol.refused(running.refused.as_ref()?)?;
        Some(Over { outcome: Outcome::Made(Ok(answer)), stop })
    }

    /// Sends the next attempt if one is due; returns the end of the call if there can be none and no
    /// other is in flight.
    pub(in crate::hedge) fn poll_hedge(
        &mut self,
        cx: &mut Context<'_>,
    ) -> ControlFlow<OverOf<S, Req, K, M>, Hedging> {
        let NotSent(reason, error) = match self.poll_due(cx) {
            Ok(Hedging::Sent) => {
                // It is in flight, so the call goes on.
                let _ = self.take(HedgeEvent::Sent);
                return ControlFlow::Continue(Hedging::Sent);
            }
            Ok(hedging) => return ControlFlow::Continue(hedging),
            Err(not_sent) => not_sent,
        };
        let number = self.next_number();
        let Some(stop) = self.take(HedgeEvent::Stopped(reason)) else {
            return ControlFlow::Continue(Hedging::Until(None));
        };
        // A readiness error hides no outcome that is still there.
        let over = self.last(stop).or_else(|| self.refused(stop)).or_else(|| {
            let result = Err(M::own(error?));
            Some(Over { outcome: Outcome::Of(number, result), stop })
        });
        match over {
            Some(over) => ControlFlow::Break(over),
            None => ControlFlow::Continue(Hedging::Until(None)),
        }
    }

    /// A moment that was waited for has come; returns the end of the call if it is that.
    pub(in crate::hedge) fn time_passed(&mut self) -> Option<OverOf<S, Req, K, M>> {
        let due = self.upcoming;
        let stop = self.take(HedgeEvent::TimePassed)?;
        let over = self.last(stop).or_else(|| self.refused(stop)).or_else(|| self.too_long(stop));
        if over.is_none() {
            // There is nothing to end with but the next attempt, so no limit holds it up.
            (self.terms.limits.max_elapsed, self.terms.deadline) = (None, None);
            self.upcoming = due;
        }
        over
    }

    /// Throws the refused response away that would otherwise be held while others are waited for: one
    /// of them may need what it holds. Returns the end of the call if the budget refuses the next
    /// attempt, and no other is in flight.
    pub(in crate::hedge) fn release(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Option<OverOf<S, Req, K, M>> {
        let running = self.running.as_ref()?;
        if !matches!(running.last, Some((_, Ok(_)))) {
            return None;
        }
        let waits = running.readying.is_some();
        if self.in_flight() == 0 {
            // From here on the next attempt is all that can end the call, so it is made first.
            if let Some(stop) = self.bind() {
                return self.last(stop);
            }
        } else if !waits && running.may_be_cut_off() {
            // BUF-8: should those in flight be cut off, this is the outcome.
            return None;
        }
        let running = self.running.as_mut()?;
        let former = running.last.take();
        self.throw_away(former, cx);
        None
    }

    /// Makes the next attempt, which waits for its time or its service. Returns why there is none.
    fn bind(&mut self) -> Option<StopReason> {
        let granted = self.grant(Instant::now()).and_then(|mut readying| {
            if readying.attempt.is_none() {
                readying.attempt = self.prepare();
            }
            match readying.attempt {
                Some(_) => Ok(readying),
                None => Err(StopReason::BodyNotKept),
            }
        });
        match granted {
            Ok(readying) => {
                self.running().readying = Some(readying);
                None
            }
            Err(reason) => self.take(HedgeEvent::Stopped(reason)),
        }
    }

    /// The end of a call whose deadline has passed, where there is an error or an answer for it.
    pub(in crate::hedge) fn interrupted(
        &mut self,
        interrupt: M::Interrupt,
        since: Instant,
    ) -> Option<OverOf<S, Req, K, M>> {
        let stop = StopReason::DeadlineExceeded;
        let protocol = &self.shared.policy.settings.protocol;
        let running = self.running.as_mut();
        let refused = running.and_then(|running| match running.last.take() {
            Some((_, Ok(response))) => protocol.drain(response).1,
            _ => running.refused.take(),
        });
        let made =
            timed_out::<S, Req, K, M>(protocol, interrupt, TimeLimit::Deadline, since, refused)?;
        Some(Over { outcome: Outcome::Made(made), stop })
    }

    /// The end of a call that has no other outcome when its time is up, where there is an error for it.
    fn too_long(&mut self, stop: StopReason) -> Option<OverOf<S, Req, K, M>> {
        let interrupt = M::interrupt().filter(|_| M::INTERRUPTS)?;
        let limit = match stop {
            StopReason::DeadlineExceeded => TimeLimit::Deadline,
            _ => TimeLimit::Elapsed,
        };
        let refused = self.running.as_mut().and_then(|running| running.refused.take());
        let since = self.started.unwrap_or_else(Instant::now);
        let protocol = &self.shared.policy.settings.protocol;
        let made = timed_out::<S, Req, K, M>(protocol, interrupt, limit, since, refused)?;
        Some(Over { outcome: Outcome::Made(made), stop })
    }

    /// The call is over: cancels the losers, credits the budget, tells whoever wants to know.
    pub(in crate::hedge) fn end(
        &mut self,
        over: OverOf<S, Req, K, M>,
        cx: &mut Context<'_>,
    ) -> AnswerOf<S, Req, K, M> {
        let Over { mut outcome, stop } = over;
        let winner = match &outcome {
            Outcome::Of(number, _) => *number,
            _ => 0,
        };
        let mut account = self.account(winner);
        let settings = &self.shared.policy.settings;
        let response = match &outcome {
            Outcome::Of(_, Ok(response)) => Some(response),
            _ => None,
        };
        let succeeded = stop == StopReason::Succeeded;
        let open = response.is_some_and(|response| settings.protocol.is_open(response, succeeded));
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
            let event = match stop {
                StopReason::Succeeded => crate::Event::Succeeded { attempts },
                reason => crate::Event::GaveUp { attempts, reason },
            };
            self.with_destination(|destination| observer.on_event(destination, &event));
        }
        if attempts > 1
            && let Outcome::Of(number, Ok(response)) = &mut outcome
        {
            response.extensions_mut().insert(HedgeReport { attempts, winner: *number });
        }
        // The losers first, that they read nothing any more, then the reader that nobody needs now.
        let running = self.running.take();
        let kept = self.kept.take();
        let (destination, former) = match running {
            Some(running) => (Some(running.destination), running.last),
            None => (None, None),
        };
        let finish = open.then(|| Finish {
            client: Arc::<Settings<K, B>>::clone(settings),
            destination: match (destination, kept) {
                (Some(destination), _) => destination.into(),
                (None, Some(kept)) => settings.protocol.last_destination(kept),
                (None, None) => String::new(),
            },
            options: self.options.take(),
            // Its failure has been told already if it was taken for one.
            retryable: succeeded && self.terms.limits.max_attempts > 1,
            account,
            attempts,
            deadline: self.deadline.map(Deadline::instant),
            sleep: None,
        });
        self.throw_away(former, cx);
        match outcome {
            Outcome::Of(_, Ok(response)) => Ok(match finish {
                Some(finish) => K::watched(response, finish),
                None => K::answer(response, false),
            }),
            Outcome::Of(_, Err(error)) => unanswered::<K, _, _, M>(error, None),
            Outcome::Made(made) => made,
        }
    }

    /// Reads of a refused response what is there at once, so that its connection may be used again.
    fn throw_away(&mut self, refused: Option<(u32, ResultOf<S, Req, K, M>)>, cx: &mut Context<'_>) {
        if let Some((_, Ok(response))) = refused {
            let (drain, head) = self.shared.policy.settings.protocol.drain(response);
            let _ = pin!(drain).poll(cx);
            if let Some(running) = &mut self.running {
                running.refused = head;
            }
        }
    }
}

/// What a call ends with whose time is up: an error of the mode's, or an answer of the protocol's.
pub(in crate::hedge) fn timed_out<S, Req, K, M>(
    protocol: &K,
    interrupt: M::Interrupt,
    limit: TimeLimit,
    since: Instant,
    refused: Option<RefusedResponse>,
) -> Option<AnswerOf<S, Req, K, M>>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt>,
    M: ErrorMode<S::Error>,
{
    let (after, source) = (since.elapsed(), K::source_of_time_limit());
    match M::timed_out(interrupt, TimedOut { limit, after, refused, source }) {
        Some(error) => Some(Err(error)),
        None => protocol.too_late(PASSED, None).map(Ok),
    }
}

/// What is behind an error. An `io::Error` that was made of another error leaves that one out of its
/// own chain.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source())
}
