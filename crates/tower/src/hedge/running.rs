//! What only a call has that was hedged or waits to be: in one box, made when it is first needed.

use std::pin::Pin;
use std::task::{Context, Poll};

use reattempt_core::{Failure, Permit};

/// The hedges in flight, the one that is being readied, and the last failure.
pub(super) struct Running<S, F, R> {
    /// The key of the budget.
    pub(super) destination: Box<str>,
    hedges: Vec<Hedged<F>>,
    /// The service for a hedge that is due, and the budget's leave to send it.
    pub(super) readying: Option<(S, Permit)>,
    /// The outcome that came last, and the number of its attempt.
    pub(super) last: Option<(u32, R)>,
    /// The failure that the next hedge answers; none if it answers slowness.
    pub(super) failure: Option<Failure>,
    /// What the last hedge cost the budget.
    pub(super) paid: u32,
}

struct Hedged<F> {
    number: u32,
    attempt: Pin<Box<F>>,
}

impl<S, F, R> Running<S, F, R> {
    pub(super) fn new(destination: Box<str>) -> Self {
        Self { destination, hedges: Vec::new(), readying: None, last: None, failure: None, paid: 0 }
    }

    /// A hedge has been sent.
    pub(super) fn push(&mut self, number: u32, attempt: F) {
        self.hedges.push(Hedged { number, attempt: Box::pin(attempt) });
    }

    /// The first hedge that has ended, and how; it is gone then.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(u32, F::Output)>
    where
        F: Future,
    {
        for place in 0..self.hedges.len() {
            let hedged = &mut self.hedges[place];
            if let Poll::Ready(output) = hedged.attempt.as_mut().poll(cx) {
                return Poll::Ready((self.hedges.remove(place).number, output));
            }
        }
        Poll::Pending
    }
}
