//! The start of a call: the combined options of its caller, handle, policy and protocol.

use std::time::Duration;

use reattempt_core::HedgeTerms;
use tokio::time::Instant;

use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::call::report::ReportSlot;
use crate::hedge::policy::{HedgeDelay, Settings};
use crate::hedge::stopwatch::Stopwatch;
use crate::protocol::{Added, Replay};

/// The terms of a new call, read from its request.
pub(in crate::hedge) struct CallStart {
    pub(super) options: Option<CallOptions>,
    pub(super) deadline: Option<Deadline>,
    /// The deadline, if the request does not contain it yet.
    deadline_to_add: Option<Deadline>,
    /// `true` if headers that the protocol itself sets must be removed from the request.
    strip: bool,
    pub(super) terms: HedgeTerms,
    pub(super) stopwatch: Option<Stopwatch>,
    /// `true` if an unprocessed attempt is replaced.
    replaces: bool,
}

impl CallStart {
    pub(in crate::hedge) fn new<K, Req, B>(
        settings: &Settings<K, B>,
        of_handle: Option<&CallOptions>,
        deadline: Option<Deadline>,
        request: &Req,
    ) -> Self
    where
        K: Replay<Req>,
    {
        let view = K::view(request);
        let mut request_terms = settings.protocol.terms(view);
        let options = request_terms.take_options(of_handle);
        let own = options.as_ref();
        let of_options = own.and_then(CallOptions::get_deadline);
        let deadline = [deadline, request_terms.deadline, of_options].into_iter().flatten().min();
        let may_repeat = settings.protocol.cannot_save(request).is_none() && !own.is_some_and(CallOptions::never);
        let replaces = may_repeat && settings.protocol.replaces();
        let may_hedge = may_repeat
            && own
                .and_then(CallOptions::get_repeatable)
                .unwrap_or_else(|| settings.protocol.may_hedge(view, settings.idempotent));
        let max_attempts = own.and_then(CallOptions::get_max_attempts);
        let max_attempts = max_attempts.unwrap_or(settings.limits.max_attempts).min(settings.cap);
        let of_method = own.and_then(CallOptions::method).and_then(|method| method.hedging_delay());
        let (delay, stopwatch) = match &settings.delay {
            _ if !may_hedge || max_attempts <= 1 => (None, None),
            _ if of_method.is_some() => (of_method, None),
            HedgeDelay::Fixed(delay) => (Some(*delay), None),
            HedgeDelay::Quantile(latencies) => {
                let stopwatch = Stopwatch::start(latencies);
                (stopwatch.delay(), Some(stopwatch))
            }
        };
        let mut limits = settings.limits;
        limits.max_attempts = if delay.is_some() { max_attempts } else { 1 };
        if let Some(max_elapsed) = own.and_then(CallOptions::get_max_elapsed) {
            limits.max_elapsed = max_elapsed;
        }
        if let Some(max_server_delay) = own.and_then(CallOptions::get_max_server_delay) {
            limits.max_server_delay = max_server_delay;
        }
        let terms = HedgeTerms::new(limits, delay.unwrap_or(Duration::ZERO));
        let deadline_to_add = deadline.filter(|deadline| Some(*deadline) != request_terms.existing_deadline);
        Self { options, deadline, deadline_to_add, strip: request_terms.strip, terms, stopwatch, replaces }
    }

    /// Returns `true` if the call may be hedged.
    pub(in crate::hedge) fn hedges(&self) -> bool {
        self.terms.limits.max_attempts > 1
    }

    /// Returns the call's deadline.
    pub(in crate::hedge) fn deadline(&self) -> Option<Instant> {
        self.deadline.map(Deadline::instant)
    }

    /// Returns the slot for the report of the call, if its caller has set one.
    pub(in crate::hedge) fn slot(&self) -> Option<&ReportSlot> {
        self.options.as_ref().and_then(CallOptions::slot)
    }

    /// Returns `true` if the request is saved, so that it can be sent again.
    pub(in crate::hedge) fn keeps(&self) -> bool {
        self.terms.limits.max_attempts > 1 || self.replaces
    }

    /// Returns the layer's additions to the request.
    pub(in crate::hedge) fn added(&self) -> Added<'_> {
        Added { deadline: self.deadline_to_add, strip: self.strip, ..Added::default() }
    }

    /// Returns `true` if nothing depends on the call's outcome, which is then returned as it is, and nothing interrupts
    /// it.
    pub(in crate::hedge) fn is_noop(&self, interrupts: bool) -> bool {
        !self.keeps() && self.stopwatch.is_none() && !(interrupts && self.deadline.is_some()) && self.slot().is_none()
    }
}
