//! The start of a call that may be hedged.

use std::time::Duration;

use reattempt_core::HedgeTerms;

use crate::call::options::CallOptions;
use crate::hedge::policy::{HedgeDelay, Settings};
use crate::hedge::stopwatch::Stopwatch;
use crate::protocol::{CallStart, Replay};

/// The terms of a new call and its hedges.
pub(in crate::hedge) struct HedgeStart {
    pub(in crate::hedge) start: CallStart,
    pub(super) terms: HedgeTerms,
    pub(super) stopwatch: Option<Stopwatch>,
}

impl HedgeStart {
    /// Creates the terms of a call for `request`.
    pub(in crate::hedge) fn new<P, Req, B>(
        settings: &Settings<P, B>,
        of_handle: Option<&CallOptions>,
        total_time: Option<Duration>,
        request: &Req,
    ) -> Self
    where
        P: Replay<Req>,
    {
        let mut start = CallStart::new(settings, of_handle, total_time, request);
        let (context, hedges) = (&start.context, &settings.strategy);
        let own = context.options.as_ref();
        let view = P::view(request);
        let may_hedge = context.forbidden.is_none()
            && match own.and_then(CallOptions::get_repeatable) {
                Some(repeatable) => repeatable && !settings.protocol.is_handshake(view),
                None => settings.protocol.may_hedge(view, hedges.idempotent),
            };
        let mut limits = context.limits(&settings.limits);
        limits.max_attempts = limits.max_attempts.min(hedges.cap);
        let of_method = own.and_then(CallOptions::method).and_then(|method| method.hedging_delay());
        let (delay, stopwatch) = match &hedges.delay {
            _ if !may_hedge || limits.max_attempts <= 1 => (None, None),
            _ if of_method.is_some() => (of_method, None),
            HedgeDelay::Fixed(delay) => (Some(*delay), None),
            HedgeDelay::Quantile(latencies) => {
                let stopwatch = Stopwatch::start(latencies);
                (stopwatch.delay(), Some(stopwatch))
            }
        };
        if delay.is_none() {
            limits.max_attempts = 1;
        }
        let terms = HedgeTerms::new(limits, delay.unwrap_or(Duration::ZERO));
        start.saves |= limits.max_attempts > 1;
        Self { start, terms, stopwatch }
    }

    /// Returns `true` if the call may be hedged.
    pub(in crate::hedge) fn hedges(&self) -> bool {
        self.terms.limits.max_attempts > 1
    }

    /// Returns `true` if nothing depends on the call's outcome and nothing interrupts the call. The outcome is then
    /// returned unchanged.
    pub(in crate::hedge) fn is_noop(&self, interrupts: bool) -> bool {
        let context = &self.start.context;
        !self.start.saves
            && self.stopwatch.is_none()
            && !(interrupts && context.deadline.is_some())
            && context.slot().is_none()
    }
}
