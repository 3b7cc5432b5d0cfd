//! One call: it carries out what [`next`] decides.
//!
//! While the first attempt runs it holds what was kept of the request and nothing else. The first
//! hedge, or the first failure that another attempt may mend, makes one box with the rest.

mod ended;
mod opening;
mod replaced;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use reattempt_core::{Budget, Failure, FailureKind, StopReason};
use tokio::time::Instant;
use tower_service::Service;

use super::HedgePolicy;
use super::latencies::Stopwatch;
use super::next::{Action, Attempts, Event, Rules, next};
use super::running::Running;
use super::service::Shared;
use crate::error_mode::ErrorMode;
use crate::protocol::{AttemptKind, Carry, Kept, NextAttempt};
use crate::{CallOptions, Deadline, clock};

pub(super) use ended::Over;
pub(super) use opening::Opening;

/// A call.
pub(super) struct Call<S, Req, K, B, M>
where
    K: Carry<Req>,
    S: Service<K::Attempt>,
    M: ErrorMode<S::Error>,
{
    shared: Arc<Shared<S, HedgePolicy<K, B, M>>>,
    kept: Option<K::Kept>,
    options: Option<CallOptions>,
    deadline: Option<Deadline>,
    rules: Rules,
    stopwatch: Option<Stopwatch>,
    /// From the moment on at which the call is found to need time.
    attempts: Option<Attempts>,
    /// Since when the call is known to need time.
    started: Option<Instant>,
    /// When the next attempt is to be sent.
    upcoming: Option<Instant>,
    /// When the last one was.
    sent: Option<Instant>,
    running: Option<Box<RunningOf<S, Req, K, M>>>,
}

type RunningOf<S, Req, K, M> =
    Running<S, <S as Service<<K as Carry<Req>>::Attempt>>::Future, ResultOf<S, Req, K, M>>;

/// What a call ends with.
pub(super) type ResultOf<S, Req, K, M> = Result<
    <S as Service<<K as Carry<Req>>::Attempt>>::Response,
    <M as ErrorMode<<S as Service<<K as Carry<Req>>::Attempt>>::Error>>::Error,
>;

/// The number of an attempt, and how it ended.
type Ended<T, E> = (u32, Result<T, E>);

/// How the sending of hedges stands.
pub(super) enum Hedging {
    /// One has been sent.
    Sent,
    /// There is nothing to do until this moment, if there is one.
    Until(Option<Instant>),
}

impl<S, Req, K, B, M> Call<S, Req, K, B, M>
where
    K: Carry<Req>,
    S: Service<K::Attempt> + Clone,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    pub(super) fn new(
        shared: Arc<Shared<S, HedgePolicy<K, B, M>>>,
        opening: Opening,
        kept: Option<K::Kept>,
        target: Option<Box<str>>,
    ) -> Self {
        Self {
            shared,
            kept,
            rules: opening.rules,
            options: opening.options,
            deadline: opening.deadline,
            stopwatch: opening.stopwatch,
            attempts: None,
            started: None,
            upcoming: None,
            sent: None,
            running: target.map(|destination| Box::new(Running::new(destination))),
        }
    }

    /// The first attempt is not ready at once: from here on the call's time counts. One that needs
    /// none looks at no clock, unless latencies are observed.
    pub(super) fn takes_time(&mut self) -> Option<StopReason> {
        if self.attempts.is_some() || self.rules.max_attempts <= 1 {
            return None;
        }
        self.take(Event::Time)
    }

    /// Takes an event, and says why the call is over, if it is.
    fn take(&mut self, event: Event) -> Option<StopReason> {
        let now = Instant::now();
        let attempts = match &mut self.attempts {
            Some(attempts) => attempts,
            None => {
                let started = self.stopwatch.as_ref().map_or(now, Stopwatch::started);
                let settings = &self.shared.policy.settings;
                let own = self.options.as_ref().and_then(CallOptions::get_max_elapsed);
                let elapsed = own.unwrap_or(settings.limits.max_elapsed);
                self.rules.latest = elapsed.map(|most| clock::later(started, most));
                (self.started, self.sent) = (Some(started), Some(started));
                let attempts = self.attempts.insert(Attempts::first(&self.rules, started));
                if !clock::has_timer() {
                    // Where nothing can wait nothing is hedged.
                    let _ = next(&self.rules, attempts, Event::Stopped(StopReason::NoTimer), now);
                }
                attempts
            }
        };
        let action = next(&self.rules, attempts, event, now);
        self.upcoming = match action {
            Action::Go(upcoming) => upcoming,
            Action::Return(_) => None,
        };
        if self.upcoming.is_none_or(|due| due > now)
            && let Some(running) = &mut self.running
        {
            // No readiness is reserved, and no token held, by one that waits.
            running.readying = None;
        }
        match action {
            Action::Go(_) => None,
            Action::Return(reason) => Some(reason),
        }
    }

    /// A moment that was waited for has come.
    pub(super) fn time_passed(&mut self) -> Option<StopReason> {
        self.take(Event::Time)
    }

    /// Sends a hedge if one is due; breaks with the reason if the call is over.
    pub(super) fn poll_hedge(&mut self, cx: &mut Context<'_>) -> ControlFlow<StopReason, Hedging> {
        let Some(due) = self.upcoming else { return ControlFlow::Continue(Hedging::Until(None)) };
        if due > Instant::now() {
            return ControlFlow::Continue(Hedging::Until(Some(due)));
        }
        let (event, hedging) = match self.poll_send(cx) {
            // A service that is not ready is waited for, but not without end.
            Poll::Pending => return ControlFlow::Continue(Hedging::Until(self.rules.end())),
            Poll::Ready(Ok(())) => (Event::Sent, Hedging::Sent),
            Poll::Ready(Err(reason)) => (Event::Stopped(reason), Hedging::Until(None)),
        };
        match self.take(event) {
            Some(stop) => ControlFlow::Break(stop),
            None => ControlFlow::Continue(hedging),
        }
    }

    /// Asks the budget, readies a service and sends the next attempt; or says why it cannot be sent.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        let settings = &*self.shared.policy.settings;
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.at_hand()) else {
            return Poll::Ready(Err(StopReason::BodyNotKept));
        };
        let now = Instant::now();
        let readying = self.running.as_ref().is_some_and(|running| running.readying.is_some());
        if !readying {
            let failure = self.running.as_ref().and_then(|running| running.failure);
            // That no answer has come yet.
            let failure = failure.unwrap_or(Failure::new(FailureKind::Timeout));
            let destination = settings.protocol.destination(kept);
            let Some(permit) =
                settings.budget.acquire(&destination, &failure, clock::since_epoch(now))
            else {
                return Poll::Ready(Err(StopReason::BudgetExhausted));
            };
            let running = self
                .running
                .get_or_insert_with(|| Box::new(Running::new(destination.into_owned().into())));
            running.readying = Some((self.shared.spare(), permit));
        }
        let Some(running) = &mut self.running else { return Poll::Pending };
        let Some((service, _)) = &mut running.readying else { return Poll::Pending };
        if ready!(service.poll_ready(cx)).is_err() {
            // The attempts in flight have a connection; their outcome is the better one to have.
            return Poll::Ready(Err(StopReason::NotReady));
        }
        let number = self.attempts.map_or(1, |attempts| attempts.sent).saturating_add(1);
        // Of a first attempt that was replaced there is a watch already, or will be.
        if number == 2 && running.replaced.iter().all(|(of, _)| *of != 1) {
            running.watches.extend(kept.watch_first().map(|watch| (1, watch)));
        }
        running.watches.extend(kept.watch_next().map(|watch| (number, watch)));
        let last = number >= self.rules.max_attempts && !settings.protocol.replaces();
        let order = NextAttempt { number, kind: AttemptKind::Hedge, last, deadline: self.deadline };
        let again = settings.protocol.again(&mut self.kept, order);
        let (Some(attempt), Some((mut service, permit))) = (again, running.readying.take()) else {
            return Poll::Ready(Err(StopReason::BodyNotKept));
        };
        running.failure = None;
        running.push(number, service.call(attempt), Some(permit));
        if let Some(observer) = &settings.observer {
            let after = self.sent.map(|sent| now.saturating_duration_since(sent));
            let after = after.unwrap_or_default();
            let event = crate::Event::WillRetry { attempt: number, after };
            observer.on_event(&running.destination, &event);
        }
        self.sent = Some(now);
        Poll::Ready(Ok(()))
    }

    /// The first hedge that has ended, and how.
    pub(super) fn poll_hedges(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<S::Response, S::Error>> {
        match &mut self.running {
            Some(running) => running.poll(cx),
            None => Poll::Pending,
        }
    }

    /// What only a call has that was hedged, or waits to be.
    fn running(&mut self) -> &mut RunningOf<S, Req, K, M> {
        let kept = self.kept.as_ref();
        let protocol = &self.shared.policy.settings.protocol;
        self.running.get_or_insert_with(|| {
            let destination = kept.map(|kept| protocol.destination(kept).into_owned());
            Box::new(Running::new(destination.unwrap_or_default().into()))
        })
    }

    /// When the call is to be interrupted.
    pub(super) fn interrupt_due(&self) -> Option<Instant> {
        self.deadline.map(Deadline::instant)
    }
}
