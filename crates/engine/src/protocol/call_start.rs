//! The start of a call: the options of the caller, the handle and the policy, combined with the facts about the
//! request.

use std::time::Duration;

use super::{Added, NestedMarker, Replay};
use crate::call::clock::Instant;
use crate::call::context::CallContext;
use crate::call::deadline::{Deadline, earlier};
use crate::call::frame::Frame;
use crate::call::options::CallOptions;
use crate::call::settings::Settings;

/// The terms of a new call, read from its request.
pub(crate) struct CallStart {
    pub(crate) context: CallContext,
    /// `true` if the request must be saved. [`new`](Self::new) sets it only if the protocol replaces unprocessed
    /// attempts. The layer may also set it.
    pub(crate) saves: bool,
    /// `true` if the request needs an idempotency key.
    pub(crate) needs_key: bool,
    /// The deadline, if the request does not contain it yet.
    deadline: Option<Deadline>,
    pub(crate) marker: Option<NestedMarker>,
    /// `true` if the request has headers that only the protocol may set, which must be removed.
    strip: bool,
    /// `true` if neither the caller nor the request has set the deadline.
    implied: bool,
    /// `true` if the deadline cannot have passed, because it was just computed.
    in_time: bool,
    /// The time at the start of the call, if the clock was read.
    pub(crate) now: Option<Instant>,
}

impl CallStart {
    /// Creates the terms of a call for `request`, with a total time if there is one.
    pub(crate) fn new<P, Req, Strategy, B>(
        settings: &Settings<P, Strategy, B>,
        of_handle: Option<&CallOptions>,
        total_time: Option<Duration>,
        request: &Req,
    ) -> Self
    where
        P: Replay<Req>,
    {
        let mut terms = settings.protocol.terms(P::view(request));
        let now = total_time.map(|_| Instant::now());
        let of_total = now.zip(total_time).map(|(now, total)| Deadline::at(now.later(total)));
        terms.deadline = earlier(terms.deadline, of_total);
        let (existing_deadline, strip) = (terms.existing_deadline, terms.strip);
        let mut context = CallContext::new(settings, terms, of_handle);
        context.forbidden = context.forbidden.or_else(|| settings.protocol.cannot_save(request));
        let saves = context.forbidden.is_none() && settings.protocol.replaces();
        let deadline = context.deadline.map(Deadline::at).filter(|own| Some(*own) != existing_deadline);
        let is_own = context.deadline == of_total.map(Deadline::instant);
        let implied = is_own || context.deadline == Frame::deadline();
        let in_time = is_own && total_time > Some(Duration::ZERO);
        Self { context, saves, needs_key: false, deadline, marker: None, strip, implied, in_time, now }
    }

    /// Returns `true` if the deadline has already passed.
    pub(crate) fn is_too_late(&self) -> bool {
        self.context.deadline.is_some_and(|deadline| !self.in_time && deadline <= Instant::now())
    }

    /// Returns the layer's additions to the request.
    #[inline]
    pub(crate) fn added(&self) -> Added<'_> {
        Added {
            key: self.needs_key,
            once: self.context.is_once(),
            deadline: self.deadline,
            implied: self.implied,
            in_header: true,
            marker: self.marker.as_ref(),
            strip: self.strip,
        }
    }
}
