//! The frame of an attempt that a service sends later.

use std::sync::Arc;

use reattempt_control::Trail;

use super::{Frame, INNERMOST, Picks, Slot, layer_terms};
use crate::call::clock::Instant;
use crate::call::layer_terms::LayerTerms;

/// The frame of an attempt that is sent later.
#[derive(Debug)]
pub struct Late {
    /// `None` if there is no frame that gets the pick.
    deferred: Option<Deferred>,
    deadline: Option<Instant>,
    /// The layer's terms, with the time from which the limit counts.
    terms: Option<(LayerTerms, Instant)>,
}

#[derive(Debug)]
struct Deferred {
    /// In a box, because most attempts have none, and waiting futures contain this value.
    trail: Option<Box<Trail>>,
    slot: Slot,
}

impl Late {
    /// Takes the innermost frame, to use it later.
    pub fn take() -> Self {
        let terms = Some(layer_terms()).filter(LayerTerms::is_any);
        let terms = terms.map(|terms| (terms, Instant::now()));
        Self { deferred: Deferred::take(), deadline: Frame::deadline(), terms }
    }

    /// Returns the deadline of the call.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sends the attempt by calling `send` in its frame.
    pub fn send<R>(&self, send: impl FnOnce() -> R) -> R {
        let terms = self.terms.as_ref().map(|(terms, since)| terms.after(since.elapsed()));
        let Some(deferred) = &self.deferred else {
            let _frame = Frame::late(self.deadline, terms);
            return send();
        };
        let trail = deferred.trail.as_deref().unwrap_or(const { &Trail::new() });
        let mut frame = Frame::next(trail, self.deadline, terms);
        let sent = send();
        // Only the first pick is recorded.
        let _ = deferred.slot.set(frame.close());
        sent
    }
}

impl Deferred {
    /// Takes the innermost frame, if it exists and has no pick yet.
    fn take() -> Option<Self> {
        INNERMOST.with(|innermost| {
            let trail = match innermost.picks.get() {
                Picks::First => None,
                Picks::Next => Some(Box::new(innermost.trail.get())),
                _ => return None,
            };
            let slot = Slot::default();
            innermost.picks.set(Picks::Deferred);
            innermost.replace_slot(Some(Arc::clone(&slot)));
            Some(Self { trail, slot })
        })
    }
}
