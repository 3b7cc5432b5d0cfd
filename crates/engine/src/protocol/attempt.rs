//! Attempts that are created from a saved request, and a layer's additions to a new request.

use crate::call::context::CallContext;
use crate::call::deadline::Deadline;
use crate::call::nesting::NestedMarker;
use crate::call::options::CallOptions;
use crate::call::protocol::Protocol;

/// The reason why another attempt is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptKind {
    /// The previous attempt failed.
    Retry,
    /// The previous attempt was not processed. This attempt has the same number.
    Replacement,
    /// Earlier attempts are still in flight or have failed.
    Hedge,
}

/// The marker in a request's extensions by which an outer layer asks for the [kind](AttemptKind) of each attempt, which
/// is then in the attempt's extensions.
#[derive(Debug, Clone, Copy)]
pub struct KindWanted;

/// The parameters of an attempt that is created from a saved request.
#[derive(Debug, Clone, Copy)]
pub struct NextAttempt {
    /// The attempt's number; a replacement has the number of the attempt that it replaces.
    pub number: u32,
    /// The reason for the attempt.
    pub kind: AttemptKind,
    /// `true` if this is the last attempt. The request then need not be saved again.
    pub last: bool,
    /// `true` if the head must stay saved for a classifier, even during the last attempt.
    pub needs_head: bool,
    /// The call's deadline.
    pub deadline: Option<Deadline>,
    /// `true` if an earlier attempt may have been processed.
    pub unproven: bool,
}

impl NextAttempt {
    /// Creates the parameters of attempt `number`. `last` is `true` if the limits allow no further attempt.
    pub(crate) fn new<P: Protocol>(
        protocol: &P,
        context: &CallContext,
        number: u32,
        kind: AttemptKind,
        last: bool,
    ) -> Self {
        let options = context.options.as_ref();
        Self {
            number,
            kind,
            last: last && !protocol.replaces() && !protocol.polls(),
            needs_head: protocol.classifies() || options.is_some_and(CallOptions::classifies),
            deadline: context.deadline.map(Deadline::at),
            unproven: true,
        }
    }
}

/// A layer's additions to a request. Most calls have none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Added<'a> {
    /// `true` if an idempotency key is added.
    pub key: bool,
    /// `true` if the caller forbids processing the request twice, whatever its method and key. This adds nothing to the
    /// request.
    pub once: bool,
    /// A deadline that has not yet been added to the request.
    pub deadline: Option<Deadline>,
    /// `true` if the policy or an outer layer has set the deadline. The deadline is then added only if the request
    /// already has extensions, because inner layers also receive it separately from the request.
    pub implied: bool,
    /// `true` if the deadline is also written to the protocol's header for it, if it has one. A plain call has none.
    pub in_header: bool,
    /// This layer's marker.
    pub marker: Option<&'a NestedMarker>,
    /// `true` if the request has headers that only the protocol may set, which must be removed.
    pub strip: bool,
}
