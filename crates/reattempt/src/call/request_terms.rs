//! The terms of a new request: overrides, a deadline, the mark of an outer layer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::deadline::Deadline;
use super::options::CallOptions;

/// The terms that a caller has put into the extensions and headers of a new request.
#[derive(Debug, Default)]
pub struct RequestTerms {
    /// The caller's overrides.
    pub options: Option<CallOptions>,
    /// The overrides that a rule of the policy has for such requests.
    pub of_rule: Option<CallOptions>,
    /// The call's deadline.
    pub deadline: Option<Deadline>,
    /// The deadline that the request has already. The layer does not add it again.
    pub existing_deadline: Option<Deadline>,
    /// An outer retry layer's marker.
    pub outer: Option<NestedMarker>,
    /// The request has fields that its protocol sets itself.
    pub strip: bool,
}

impl RequestTerms {
    /// Takes the overrides of the call. Those of the request have precedence over those of the handle, and these
    /// over those of a rule.
    #[inline]
    pub(crate) fn take_options(&mut self, of_handle: Option<&CallOptions>) -> Option<CallOptions> {
        let own = combined(self.options.take(), of_handle);
        combined(own, self.of_rule.take().as_ref())
    }
}

#[inline]
fn combined(own: Option<CallOptions>, next: Option<&CallOptions>) -> Option<CallOptions> {
    match (own, next) {
        (own, None) => own,
        (None, Some(next)) => Some(next.clone()),
        (Some(own), Some(next)) => Some(own.or(next)),
    }
}

/// The facts of a request that decide if it may be retried.
#[derive(Debug, Clone, Copy)]
pub struct RetrySafety {
    /// The request may be retried at all.
    pub may_retry: bool,
    /// The request may be processed twice.
    pub repeatable: bool,
    /// An idempotency key alone makes it repeatable.
    pub keyed: bool,
}

/// The number of an attempt, in the extensions of its request from the second attempt on.
///
/// Requests of reqwest do not have it, because their extensions are private.
///
/// ```
/// # use reattempt::retry::AttemptNumber;
/// fn number_of(request: &http::Request<()>) -> u32 {
///     request.extensions().get::<AttemptNumber>().map_or(1, |number| number.0)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptNumber(pub u32);

/// A mark in the extensions of a hedge: guards inside must not make it wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Impatient;

/// A mark in the extensions of a request: an outer layer retries it already.
#[derive(Debug, Clone, Default)]
pub struct NestedMarker(Arc<AtomicBool>);

impl NestedMarker {
    /// Records that the inner layer has given up.
    pub(crate) fn give_up(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns `true` if an inner layer gave up since the last call.
    pub(crate) fn take_given_up(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}
