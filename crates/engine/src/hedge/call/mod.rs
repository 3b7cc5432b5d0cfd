//! The state of a hedged call, which carries out the decisions of [`HedgeCall`].
//!
//! During the first attempt, it is little more than the saved request. The first hedge or the first retryable failure
//! allocates the rest.

mod attempt_end;
mod call_end;
mod call_start;
mod next_attempt;
mod resend;

use std::mem::take;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use reattempt_core::event::sent_after_failure;
use reattempt_core::{HedgeCall, HedgeDecision, HedgeEvent, HedgeTerms, StopReason};
use reattempt_replay::ReplayBody;
use tower_service::Service;

use super::HedgePolicy;
use super::running::{Readying, RunningHedges};
use super::stopwatch::Stopwatch;
use crate::call::clock;
use crate::call::clock::Instant;
use crate::call::context::CallContext;
use crate::call::deadline::Deadline;
use crate::call::frame::Tried;
use crate::call::layer_terms::LayerTerms;
use crate::call::observe::Event;
use crate::call::random::CallRandom;
use crate::protocol::{AttemptKind, CallTypes, NextAttempt, Replay, RequestProtocol, Saved};
use crate::shared::{Shared, send_next};

pub(super) use call_end::{HedgedOutcome, Over, OverOf, dismiss, timed_out};
pub(super) use call_start::HedgeStart;

type PolicyOf<T> = HedgePolicy<<T as CallTypes>::Protocol, <T as CallTypes>::Budget, <T as CallTypes>::Mode>;

/// The driver of a hedged call, with its state.
pub(super) struct HedgeDriver<T: CallTypes> {
    shared: Arc<Shared<T::Service, PolicyOf<T>>>,
    saved: Option<T::Saved>,
    context: CallContext,
    terms: HedgeTerms,
    stopwatch: Option<Stopwatch>,
    /// Created when the first attempt first returns `Pending`.
    attempts: Option<HedgeCall>,
    /// The time at which the next attempt is due.
    upcoming: Option<Instant>,
    /// `true` if the last decision was made before that time, so that the next check need not read the clock.
    early: bool,
    /// The time at which the last attempt was sent.
    sent: Option<Instant>,
    /// The first attempt's endpoint.
    first: Tried,
    running: Option<Box<RunningHedges<T>>>,
}

/// The reason why no further attempt was sent, with the error from `poll_ready` if there was one.
struct NotSent<E>(StopReason, Option<E>);

/// The state of the next hedge.
pub(super) enum Hedging {
    /// A hedge was sent.
    Sent,
    /// No hedge is due before this time, or at all if it is `None`.
    Until(Option<Instant>),
}

impl<T: CallTypes> HedgeDriver<T> {
    pub(super) fn new(
        shared: Arc<Shared<T::Service, PolicyOf<T>>>,
        opening: HedgeStart,
        saved: Option<T::Saved>,
        target: Option<Box<str>>,
    ) -> Self {
        Self {
            shared,
            saved,
            terms: opening.terms,
            context: opening.start.context,
            stopwatch: opening.stopwatch,
            attempts: None,
            upcoming: None,
            early: false,
            sent: None,
            first: Tried::default(),
            running: target.map(|destination| Box::new(RunningHedges::new(destination))),
        }
    }

    /// Records the first attempt's endpoint.
    pub(super) fn on_first(&mut self, tried: Tried) {
        self.first = tried;
    }

    /// Starts measuring the call's time when the first attempt first returns `Pending`. A call that completes
    /// immediately does not read the clock, unless latencies are observed.
    pub(super) fn takes_time(&mut self) {
        if self.attempts.is_none() && self.terms.limits.max_attempts > 1 {
            // The first attempt is in flight, so the call continues.
            let _ = self.decide(HedgeEvent::TimePassed);
        }
    }

    /// Records the start of the call, unless it is already recorded, and returns it.
    fn start(&mut self, now: Instant) -> Instant {
        if let Some(started) = self.context.started {
            return started;
        }
        let started = self.stopwatch.as_ref().map_or(now, Stopwatch::started);
        self.terms.deadline = self.context.deadline.map(|at| at.saturating_duration_since(started));
        (self.context.started, self.sent) = (Some(started), Some(started));
        started
    }

    /// Decides how to react to an event, and when the next attempt is due. Returns the stop reason if the call has
    /// ended.
    fn decide(&mut self, event: HedgeEvent) -> Option<StopReason> {
        let now = Instant::now();
        let started = self.start(now);
        let elapsed = now.saturating_duration_since(started);
        let random = &mut CallRandom::unseeded(None);
        let terms = &self.terms;
        let attempts = self.attempts.get_or_insert_with(|| HedgeCall::new(terms));
        if !clock::has_timer() {
            // Hedges need a timer. The call may also have left the runtime in which it started.
            let stopped = HedgeEvent::Stopped(StopReason::NoTimer);
            let _ = attempts.next(terms, stopped, elapsed, random);
        }
        let decision = attempts.next(terms, event, elapsed, random);
        self.upcoming = match decision {
            HedgeDecision::Continue { next } => next.map(|next| started.later(next)),
            _ => None,
        };
        self.early = self.upcoming.is_none_or(|due| due > now);
        if self.early
            && let Some(running) = &mut self.running
        {
            // A pending attempt holds neither a service nor a token while others are in flight.
            running.readying.take_if(|readying| readying.attempt.is_none());
        }
        match decision {
            HedgeDecision::Continue { .. } => None,
            HedgeDecision::Return(reason) => Some(reason),
            _ => Some(StopReason::Permanent),
        }
    }

    /// Returns the time since the start of the call.
    fn elapsed(&self) -> Duration {
        self.context.started.map(|started| started.elapsed()).unwrap_or_default()
    }

    /// Returns the time after which no further attempt is sent.
    fn end_of_hedging(&self) -> Option<Instant> {
        Some(self.context.started?.later(self.terms.time_limit()?))
    }

    /// Returns the number of attempts that are in flight or about to be replaced.
    fn in_flight(&self) -> u32 {
        self.attempts.map_or(1, |attempts| attempts.in_flight())
    }

    /// Sends the next attempt if one is due. Returns the time of the next check, or the reason why none was sent.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Result<Hedging, NotSent<T::ServiceError>> {
        let Some(due) = self.upcoming else {
            // A replacement may still wait for its service.
            let replacing = self.running.as_ref().is_some_and(|it| !it.replacing.is_empty());
            let end = self.end_of_hedging();
            return Ok(Hedging::Until(end.filter(|_| replacing && clock::has_timer())));
        };
        // If the time comes between the decision and this check, the timer expires immediately.
        if take(&mut self.early) || due > Instant::now() {
            return Ok(Hedging::Until(Some(due)));
        }
        let end = self.end_of_hedging();
        match self.poll_send(cx) {
            // The wait for a service that is not ready is limited.
            Poll::Pending => Ok(Hedging::Until(end)),
            Poll::Ready(sent) => sent.map(|()| Hedging::Sent),
        }
    }

    /// Polls a service until it is ready, and sends the next attempt.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NotSent<T::ServiceError>>> {
        let now = Instant::now();
        let mut readying = match ready!(self.poll_grant(now, cx)) {
            Ok(readying) => readying,
            Err(reason) => return Poll::Ready(Err(NotSent(reason, None))),
        };
        let mut service = readying.service.take().unwrap_or_else(|| self.shared.spare());
        match service.poll_ready(cx) {
            Poll::Pending => {
                readying.service = Some(service);
                self.running().readying = Some(readying);
                return Poll::Pending;
            }
            Poll::Ready(Err(error)) => {
                return Poll::Ready(Err(NotSent(StopReason::NotReady, Some(error))));
            }
            Poll::Ready(Ok(())) => {}
        }
        let attempt = match readying.attempt {
            Some(mut attempt) => {
                let protocol = &self.shared.policy.settings.protocol;
                protocol.refresh(&mut attempt, self.context.deadline.map(Deadline::at));
                attempt
            }
            None => match self.prepare() {
                Some(attempt) => attempt,
                None => return Poll::Ready(Err(NotSent(StopReason::BodyNotKept, None))),
            },
        };
        let number = self.next_number();
        let alone = self.in_flight() == 0;
        let after = self.sent.replace(now).map(|sent| now.saturating_duration_since(sent));
        let first = self.first.clone();
        let deadline = self.context.deadline;
        let running = self.running();
        let terms = LayerTerms::of(None, &running.source);
        let sent = now.since_epoch();
        let sent = if running.failure.take().is_some() { sent_after_failure(sent) } else { sent };
        running.alone = alone;
        running.permits.on_send(number, readying.permit);
        let trail = running.trail(&first);
        running.push(number, sent, send_next(&mut service, attempt, &trail, deadline, terms));
        running.unannounced = Some((number, after.unwrap_or_default()));
        Poll::Ready(Ok(()))
    }

    /// Notifies the observer of the last hedge, unless that was already done. The hedge was already polled, so no guard
    /// has refused it.
    fn announce(&mut self) {
        let Some(running) = &mut self.running else { return };
        let announced = running.unannounced.take();
        if let Some((attempt, after)) = announced {
            let observer = &self.shared.policy.settings.observer;
            running.log.notify(observer, &Event::WillRetry { attempt, after, proof: None });
        }
    }

    /// Returns the next attempt with its permit, or the reason why there is none. The permit is acquired only once.
    fn grant(&mut self, now: Instant) -> Result<Readying<T>, StopReason> {
        let granted = self.running.as_mut().and_then(|running| running.readying.take());
        let prepared = granted.as_ref().is_some_and(|readying| readying.attempt.is_some());
        if !prepared && !self.saved.as_ref().is_some_and(Saved::at_hand) {
            return Err(StopReason::BodyNotKept);
        }
        if let Some(granted) = granted {
            return Ok(granted);
        }
        let shared = Arc::clone(&self.shared);
        let running = self.running();
        let (destination, now) = (&running.log.destination, now.since_epoch());
        let budget = &shared.policy.settings.budget;
        let permit = running.permits.grant(running.failure, destination, now, budget)?;
        Ok(Readying { permit, service: None, attempt: None })
    }

    /// Returns the next attempt with its permit, once the budget has confirmed it.
    fn poll_grant(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<Result<Readying<T>, StopReason>> {
        let granted = self.grant(now)?;
        match granted.permit.poll_confirmed(cx) {
            Poll::Ready(true) => Poll::Ready(Ok(granted)),
            Poll::Ready(false) => Poll::Ready(Err(StopReason::BudgetExhausted)),
            Poll::Pending => {
                self.running().readying = Some(granted);
                Poll::Pending
            }
        }
    }

    /// Returns the number of the next attempt.
    fn next_number(&self) -> u32 {
        self.attempts.map_or(1, |attempts| attempts.sent()).saturating_add(1)
    }

    /// Creates the next attempt from the saved request.
    fn prepare(&mut self) -> Option<T::Attempt> {
        let number = self.next_number();
        let alone = self.in_flight() == 0;
        let body = self.saved.as_ref()?.body();
        if let (true, Some(body)) = (alone, body) {
            // A reader of a finished attempt could use up the saved body.
            body.cancel_others();
        }
        let first = body.filter(|_| number == 2 && !alone).map(ReplayBody::watch_first);
        let next = body.map(ReplayBody::watch);
        let running = self.running();
        // A first attempt that was replaced has a watch, or will have one.
        if !running.replaced.contains(&1) {
            running.watches.extend(first.map(|watch| (1, watch)));
        }
        running.watches.extend(next.map(|watch| (number, watch)));
        let protocol = &self.shared.policy.settings.protocol;
        let last = number >= self.terms.limits.max_attempts;
        let next = NextAttempt::new(protocol, &self.context, number, AttemptKind::Hedge, last);
        Some(protocol.again(self.saved.take()?, next, &mut self.saved))
    }

    /// Polls the hedges. Returns the first one that ends.
    pub(super) fn poll_hedges(&mut self, cx: &mut Context<'_>) -> Poll<(u32, <T::Future as Future>::Output)> {
        match &mut self.running {
            Some(running) => running.poll(cx),
            None => Poll::Pending,
        }
    }

    /// Returns the state that only hedged calls have, which is created if necessary.
    fn running(&mut self) -> &mut RunningHedges<T> {
        let saved = self.saved.as_ref();
        let protocol = &self.shared.policy.settings.protocol;
        self.running.get_or_insert_with(|| {
            let destination = saved.map(|saved| protocol.destination_of(saved.view()).into_owned());
            let source = saved.and_then(Saved::watch_source);
            let mut running = RunningHedges::new(destination.unwrap_or_default().into());
            running.source = source;
            Box::new(running)
        })
    }

    /// Returns the time at which the call is interrupted.
    pub(super) fn interrupt_due(&self) -> Option<Instant> {
        self.context.deadline
    }
}
