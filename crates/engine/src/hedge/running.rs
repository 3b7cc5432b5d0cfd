//! The state that only hedged calls have, which is allocated when first needed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_control::Trail;
use reattempt_core::{Failure, HedgePermits, Permit, Resent};
use reattempt_replay::{ReplayWatch, SourceWatch};

use crate::call::frame::Tried;
use crate::call::log::CallLog;
use crate::call::report::AttemptOutcome;
use crate::call::timed_out::RefusedResponse;
use crate::protocol::{CallTypes, ResultOf};

/// The hedges in flight, the next hedge, and the last failure.
pub(super) struct RunningHedges<T: CallTypes> {
    /// The log of finished attempts, and the key in the budget.
    pub(super) log: CallLog,
    hedges: Vec<Hedged<T::Future>>,
    /// The endpoints of all attempts after the first, with their numbers.
    tried: Vec<(u32, Tried)>,
    /// The times at which all attempts after the first were sent, with their numbers.
    sent: Vec<(u32, Duration)>,
    /// The permits of the hedges.
    pub(super) permits: HedgePermits,
    /// The watches on attempts that may be cut off from the request body, with the attempts' numbers.
    pub(super) watches: Vec<(u32, ReplayWatch)>,
    /// The watch on the caller's body, if that is streamed below a guard.
    pub(super) source: Option<SourceWatch>,
    /// The next attempt, once the budget has granted it.
    pub(super) readying: Option<Readying<T>>,
    /// The last outcome, with its attempt's number. If no attempt is in flight, this is `Some` or an attempt was
    /// already created (see [`Readying`]), so the call always ends.
    pub(super) last: Option<(u32, ResultOf<T>)>,
    /// The head of the last response that was dropped.
    pub(super) refused: Option<RefusedResponse>,
    /// `true` if the last hedge was sent while no other attempt was in flight, so that only it reads the body.
    pub(super) alone: bool,
    /// The failure that caused the next hedge, or `None` if the call is just slow.
    pub(super) failure: Option<Failure>,
    /// The last hedge, with the time since the previous attempt, until the observer is notified of it.
    pub(super) unannounced: Option<(u32, Duration)>,
    /// The attempt that an inner timer or the server ended at the call's deadline.
    pub(super) overdue: Option<u32>,
    /// The attempts whose replacements have not been sent yet.
    pub(super) replacing: Vec<Replacing<T>>,
    /// The kinds of attempts that were replaced.
    pub(super) resent: Resent,
    /// The numbers of the replaced attempts.
    pub(super) replaced: Vec<u32>,
    /// The number of refused attempts that were replaced by attempts at another endpoint.
    pub(super) refusals: u32,
    /// The number of attempts that were replaced because their endpoint accepted no connection.
    pub(super) moves: u32,
}

/// An attempt that the budget has granted but that has not been sent yet.
pub(super) struct Readying<T: CallTypes> {
    pub(super) permit: Permit,
    /// The service for the attempt, once the attempt is due.
    pub(super) service: Option<T::Service>,
    /// The attempt itself, once nothing else can end the call. It is created before the last response is drained, so
    /// that nothing can prevent sending it.
    pub(super) attempt: Option<T::Attempt>,
}

/// An attempt that is being replaced: its number, the service for the replacement, and its result, in case no
/// replacement can be sent.
pub(super) struct Replacing<T: CallTypes> {
    pub(super) number: u32,
    pub(super) service: T::Service,
    pub(super) result: ResultOf<T>,
}

struct Hedged<F> {
    number: u32,
    attempt: Pin<Box<F>>,
}

impl<T: CallTypes> RunningHedges<T> {
    pub(super) fn new(destination: Box<str>) -> Self {
        Self {
            log: CallLog::new(destination),
            hedges: Vec::new(),
            tried: Vec::new(),
            sent: Vec::new(),
            permits: HedgePermits::default(),
            watches: Vec::new(),
            source: None,
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
            refusals: 0,
            moves: 0,
        }
    }

    /// Returns the endpoints that the call has tried, including those of the attempts in flight.
    pub(super) fn trail(&self, first: &Tried) -> Trail {
        let mut trail = Trail::new();
        for tried in [first].into_iter().chain(self.tried.iter().map(|(_, tried)| tried)) {
            tried.follow(&mut trail);
        }
        trail
    }

    /// Returns the endpoint of the attempt with this number or of its replacement.
    pub(super) fn endpoint(&self, number: u32, first: &Tried) -> Option<Arc<str>> {
        self.tried(number, first)?.pick()?.id.name()
    }

    /// Returns the endpoint of the attempt with this number or of its replacement, or the slot for it.
    pub(super) fn tried<'a>(&'a self, number: u32, first: &'a Tried) -> Option<&'a Tried> {
        let sent = self.tried.iter().rev().find(|(of, _)| *of == number);
        sent.map(|(_, tried)| tried).or_else(|| (number == 1).then_some(first))
    }

    /// Returns the endpoint of the attempt that was sent last.
    pub(super) fn last_tried<'a>(&'a self, first: &'a Tried) -> &'a Tried {
        self.tried.last().map_or(first, |(_, tried)| tried)
    }

    /// Returns the time at which the attempt with this number or its replacement was sent, unless it is the first one.
    pub(super) fn sent(&self, number: u32) -> Option<Duration> {
        self.sent.iter().rev().find(|(of, _)| *of == number).map(|(_, sent)| *sent)
    }

    /// Adds an attempt that was sent at this time.
    pub(super) fn push(&mut self, number: u32, sent: Duration, (attempt, tried): (T::Future, Tried)) {
        self.sent.push((number, sent));
        // The former endpoint is not that of a replacement, even if that has none.
        if !matches!(tried, Tried::Nowhere) || self.replaced.contains(&number) {
            self.tried.push((number, tried));
        }
        self.hedges.push(Hedged { number, attempt: Box::pin(attempt) });
    }

    /// Records the end of an attempt, with the time since the start of the call.
    pub(super) fn log_end(&mut self, number: u32, first: &Tried, ended: Duration, outcome: AttemptOutcome) {
        let replacement = self.replaced.contains(&number);
        let endpoint = self.endpoint(number, first);
        self.log.record(ended, (number, replacement), endpoint, outcome);
    }

    /// Records that the attempts in flight are cancelled; `in_flight` is `true` if the first attempt is among them. An
    /// overdue attempt is also recorded as cancelled, so the report does not depend on which timer expires first.
    // TN-4
    pub(super) fn log_cancelled(&mut self, in_flight: bool, first: &Tried, ended: Duration) {
        let hedges = self.hedges.iter().map(|hedged| hedged.number);
        let others = in_flight.then_some(1).into_iter().chain(self.overdue);
        let mut numbers: Vec<_> = others.chain(hedges).collect();
        numbers.sort_unstable();
        for number in numbers {
            self.log_end(number, first, ended, AttemptOutcome::Cancelled);
        }
    }

    /// Returns `true` if the answers of losing attempts may be awaited. An attempt that may still read the request body
    /// is not, because it could read so far that it cuts off the winner.
    pub(super) fn lingers(&self) -> bool {
        self.watches.iter().all(|(_, watch)| watch.is_idle())
    }

    /// Returns `true` if an attempt in flight may still be cut off from the request body.
    pub(super) fn may_be_cut_off(&self) -> bool {
        !self.alone && self.watches.iter().any(|(_, watch)| !watch.is_idle())
    }

    /// Returns `true` if this attempt cannot read the rest of the request body.
    pub(super) fn is_cut_off(&self, number: u32, cx: &mut Context<'_>) -> bool {
        is_cut_off(&self.watches, number, cx)
    }

    /// Drops the attempts that cannot read the rest of the request body, and returns their number.
    pub(super) fn drop_cut_off(&mut self, mut first: Pin<&mut Option<T::Future>>, cx: &mut Context<'_>) -> usize {
        if self.watches.is_empty() {
            return 0;
        }
        let mut in_flight = usize::from(first.is_some()) + self.hedges.len();
        let before = in_flight;
        // If there is no outcome yet, one attempt must remain, so that the call ends.
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

    /// Polls the hedges. Returns the number and output of the first one that ends.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(u32, <T::Future as Future>::Output)> {
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
