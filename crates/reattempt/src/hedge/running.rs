//! The state that only hedged calls have, in one box that is made when it is first needed.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_control::Trail;
use reattempt_core::{Failure, HedgePermits, Permit, Resent};
use reattempt_replay::ReplayWatch;

use crate::call::frame::Tried;
use crate::call::log::CallLog;
use crate::call::report::AttemptOutcome;
use crate::call::timed_out::RefusedResponse;

/// The hedges in flight, the one that is being readied, and the last failure.
pub(super) struct Running<S, A, F, R> {
    /// The attempts that have ended, and the key of the budget.
    pub(super) log: CallLog,
    hedges: Vec<Hedged<F>>,
    /// The endpoints of all attempts after the first.
    tried: Vec<Tried>,
    /// The permits of the hedges.
    pub(super) permits: HedgePermits,
    /// The watches of the attempts that may be cut off from the request's body, by their numbers.
    pub(super) watches: Vec<(u32, ReplayWatch)>,
    /// The next attempt, once the budget has granted it.
    pub(super) readying: Option<Readying<S, A>>,
    /// The outcome that came last, and the number of its attempt. While no attempt is in flight there is
    /// this, or an attempt that was made already (see [`Readying`]): so the call always has an end.
    pub(super) last: Option<(u32, R)>,
    /// The head of the last response that was thrown away.
    pub(super) refused: Option<RefusedResponse>,
    /// `true` if the last hedge was sent while no other attempt was in flight: no other reads the body.
    pub(super) alone: bool,
    /// The failure after which the next hedge is sent; `None` if it is sent because no response has come yet.
    pub(super) failure: Option<Failure>,
    /// The hedge that was sent last, with the time since the attempt before, until the observer is notified of it.
    pub(super) unannounced: Option<(u32, Duration)>,
    /// The attempt that a timer below, or the server, has ended at the call's deadline.
    pub(super) overdue: Option<u32>,
    /// The attempts whose replacements are not sent yet.
    pub(super) replacing: Vec<Replacing<S, R>>,
    /// The kinds of attempt that were replaced.
    pub(super) resent: Resent,
    /// The numbers of the attempts that were replaced: at most one for each kind.
    pub(super) replaced: Vec<u32>,
}

/// An attempt that the budget has granted, and that is not sent yet.
pub(super) struct Readying<S, A> {
    pub(super) permit: Permit,
    /// The service for it, from the moment on at which it is due.
    pub(super) service: Option<S>,
    /// The attempt itself, if nothing else can end the call any more. It is made before the last response is
    /// drained, so nothing can prevent it from being sent.
    pub(super) attempt: Option<A>,
}

/// An attempt that is replaced: its number, the service that is readied for the other, and how it ended,
/// in case there can be none.
pub(super) struct Replacing<S, R> {
    pub(super) number: u32,
    pub(super) service: S,
    pub(super) result: R,
}

struct Hedged<F> {
    number: u32,
    attempt: Pin<Box<F>>,
}

impl<S, A, F, R> Running<S, A, F, R> {
    pub(super) fn new(destination: Box<str>) -> Self {
        Self {
            log: CallLog::new(destination),
            hedges: Vec::new(),
            tried: Vec::new(),
            permits: HedgePermits::default(),
            watches: Vec::new(),
            readying: None,
            last: None,
            refused: None,
            alone: false,
            failure: None,
            unannounced: None,
            overdue: None,
            replacing: Vec::new(),
            resent: Resent::default(),
            replaced: Vec::new(),
        }
    }

    /// Returns the endpoints that the call has tried, with those of the attempts in flight.
    pub(super) fn trail(&self, first: &Tried) -> Trail {
        let mut trail = Trail::new();
        for tried in [first].into_iter().chain(&self.tried) {
            tried.follow(&mut trail);
        }
        trail
    }

    /// Adds an attempt that has been sent.
    pub(super) fn push(&mut self, number: u32, (attempt, tried): (F, Tried)) {
        self.tried.extend(tried.known());
        self.hedges.push(Hedged { number, attempt: Box::pin(attempt) });
    }

    /// Records the end of an attempt, so long after the start of the call.
    pub(super) fn log_end(&mut self, number: u32, ended: Duration, outcome: AttemptOutcome) {
        let replacement = self.replaced.contains(&number);
        self.log.record(ended, (number, replacement), outcome);
    }

    /// Records that the attempts in flight are cancelled, the first among them if it is. An overdue attempt is one of
    /// them: the report is the same, whichever timer is first (TN-4).
    pub(super) fn log_cancelled(&mut self, first: bool, ended: Duration) {
        let hedges = self.hedges.iter().map(|hedged| hedged.number);
        let others = first.then_some(1).into_iter().chain(self.overdue);
        let mut numbers: Vec<_> = others.chain(hedges).collect();
        numbers.sort_unstable();
        for number in numbers {
            self.log_end(number, ended, AttemptOutcome::Cancelled);
        }
    }

    /// Returns `true` if an attempt in flight may yet be cut off from the request's body.
    pub(super) fn may_be_cut_off(&self) -> bool {
        !self.alone && self.watches.iter().any(|(_, watch)| !watch.is_idle())
    }

    /// Returns `true` if this attempt can read no more of the request's body.
    pub(super) fn is_cut_off(&self, number: u32, cx: &mut Context<'_>) -> bool {
        is_cut_off(&self.watches, number, cx)
    }

    /// Drops the attempts that can read no more of the request's body; returns how many.
    pub(super) fn drop_cut_off<T>(&mut self, mut first: Pin<&mut Option<T>>, cx: &mut Context<'_>) -> usize {
        if self.watches.is_empty() {
            return 0;
        }
        let mut in_flight = usize::from(first.is_some()) + self.hedges.len();
        let before = in_flight;
        // Without any outcome, one attempt is left to end by itself.
        let least = usize::from(self.last.is_none());
        let watches = &self.watches;
        let mut is_to_go = |number| {
            let to_go = in_flight > least && is_cut_off(watches, number, cx);
            in_flight -= usize::from(to_go);
            to_go
        };
        if first.is_some() && is_to_go(1) {
            first.set(None);
        }
        let permits = &mut self.permits;
        self.hedges.retain(|hedged| {
            let to_go = is_to_go(hedged.number);
            if to_go {
                permits.on_end(hedged.number);
            }
            !to_go
        });
        before - in_flight
    }

    /// Polls the hedges. Ready with the number and output of the first that has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(u32, F::Output)>
    where
        F: Future,
    {
        for place in 0..self.hedges.len() {
            let hedged = &mut self.hedges[place];
            if let Poll::Ready(output) = hedged.attempt.as_mut().poll(cx) {
                let Hedged { number, .. } = self.hedges.remove(place);
                return Poll::Ready((number, output));
            }
        }
        Poll::Pending
    }
}

fn is_cut_off(watches: &[(u32, ReplayWatch)], number: u32, cx: &mut Context<'_>) -> bool {
    let watch = watches.iter().find(|(of, _)| *of == number);
    watch.is_some_and(|(_, watch)| watch.poll_cut_off(cx).is_ready())
}
