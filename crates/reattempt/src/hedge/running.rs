//! What only a call has that was hedged or waits to be: in one box, made when it is first needed.

use std::pin::Pin;
use std::task::{Context, Poll};

use reattempt_core::{Account, Failure, PaidRetry, Permit, Undone};
use reattempt_http::ReplayWatch;

use crate::RefusedResponse;

/// The hedges in flight, the one that is being readied, and the last failure.
pub(super) struct Running<S, A, F, R> {
    /// The key of the budget.
    pub(super) destination: Box<str>,
    hedges: Vec<Hedged<F>>,
    /// The hedge that ended last, and its permit until it is known whether it was sent.
    ended: Option<(u32, Sent)>,
    /// Of the attempts whose reading of the request's body may be cut off, by their numbers.
    pub(super) watches: Vec<(u32, ReplayWatch)>,
    /// The next attempt, once the budget has granted it.
    pub(super) readying: Option<Readying<S, A>>,
    /// The outcome that came last, and the number of its attempt. While no attempt is in flight there is
    /// this, or an attempt that was made already (see [`Readying`]): so the call always has an end.
    pub(super) last: Option<(u32, R)>,
    /// The head of the last response that was thrown away.
    pub(super) refused: Option<RefusedResponse>,
    /// Whether the last hedge was sent while no other attempt was in flight: no other reads the body.
    pub(super) alone: bool,
    /// The failure that the next hedge answers; none if it answers slowness.
    pub(super) failure: Option<Failure>,
    /// The hedge that ended last, of those that were paid for.
    paid: Option<(u32, PaidRetry)>,
    /// How many were paid for and have ended.
    retries: u32,
    /// The attempts whose replacements are not sent yet.
    pub(super) replacing: Vec<Replacing<S, R>>,
    /// What was replaced of this call: the numbers of attempts, and how far they had come.
    pub(super) replaced: Vec<(u32, Undone)>,
}

/// An attempt that the budget has granted, and that is not sent yet.
pub(super) struct Readying<S, A> {
    pub(super) permit: Permit,
    /// The service for it, from the moment on at which it is due.
    pub(super) service: Option<S>,
    /// The attempt itself, if nothing else can end the call any more. So it is there when the response
    /// before it is thrown away, and nothing is left that could keep it from being sent.
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
    permit: Sent,
}

/// The permit of a hedge that was sent: spent when it is dropped, unless it is taken out.
struct Sent(Option<Permit>);

impl Sent {
    fn spend(&mut self) -> Option<PaidRetry> {
        self.0.take().map(Permit::spend)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        drop(self.spend());
    }
}

impl<S, A, F, R> Running<S, A, F, R> {
    pub(super) fn new(destination: Box<str>) -> Self {
        Self {
            destination,
            hedges: Vec::new(),
            watches: Vec::new(),
            readying: None,
            last: None,
            refused: None,
            alone: false,
            failure: None,
            paid: None,
            retries: 0,
            ended: None,
            replacing: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// A hedge has been sent. Its permit is spent unless it turns out to be [refused](Self::settle).
    pub(super) fn push(&mut self, number: u32, attempt: F, permit: Option<Permit>) {
        let attempt = Box::pin(attempt);
        self.hedges.push(Hedged { number, attempt, permit: Sent(permit) });
    }

    /// The hedge that [ended](Self::poll) last was sent, and its permit is spent; or it was `refused`
    /// on this side, and its tokens go back.
    pub(super) fn settle(&mut self, refused: bool) {
        let Some((number, mut permit)) = self.ended.take() else { return };
        if refused {
            drop(permit.0.take());
        } else if let Some(paid) = permit.spend() {
            self.paid = Some((number, paid));
            self.retries = self.retries.saturating_add(1);
        }
    }

    /// Spends the permits of the hedges in flight, which have lost. Returns what the budget must be given at
    /// the end of a call that ends with the attempt `winner`.
    pub(super) fn account(&mut self, winner: u32) -> Account {
        let lost = self.hedges.iter_mut().filter_map(|hedged| hedged.permit.spend()).count();
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        let won = self.paid.take().filter(|(number, _)| *number == winner);
        let retries = std::mem::take(&mut self.retries).saturating_add(lost);
        Account::new(won.map(|(_, paid)| paid).unwrap_or_default(), retries)
    }

    /// Returns `true` if an attempt in flight may yet be cut off from the request's body.
    pub(super) fn may_be_cut_off(&self) -> bool {
        !self.alone && self.watches.iter().any(|(_, watch)| !watch.is_idle())
    }

    /// Whether this attempt can read no more of the request's body.
    pub(super) fn is_cut_off(&self, number: u32, cx: &mut Context<'_>) -> bool {
        is_cut_off(&self.watches, number, cx)
    }

    /// Drops the attempts that can read no more of the request's body; returns how many.
    pub(super) fn drop_cut_off<T>(
        &mut self,
        mut first: Pin<&mut Option<T>>,
        cx: &mut Context<'_>,
    ) -> usize {
        if self.watches.is_empty() {
            return 0;
        }
        let mut in_flight = usize::from(first.is_some()) + self.hedges.len();
        let before = in_flight;
        // Without any outcome, one is left to find out for itself.
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
        self.hedges.retain(|hedged| !is_to_go(hedged.number));
        before - in_flight
    }

    /// The first hedge that has ended, and how; it is gone then.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(u32, F::Output)>
    where
        F: Future,
    {
        for place in 0..self.hedges.len() {
            let hedged = &mut self.hedges[place];
            if let Poll::Ready(output) = hedged.attempt.as_mut().poll(cx) {
                let Hedged { number, permit, .. } = self.hedges.remove(place);
                self.ended = Some((number, permit));
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
