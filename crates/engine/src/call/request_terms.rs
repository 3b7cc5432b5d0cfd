//! The parts of a new request that affect its call: overrides, a deadline and an outer layer's marker.

use super::deadline::Deadline;
use super::nesting::NestedMarker;
use super::options::CallOptions;

/// The options, deadline and marker in a new request's extensions and headers.
#[derive(Debug, Default)]
pub struct RequestTerms {
    /// The caller's overrides.
    pub options: Option<CallOptions>,
    /// The overrides from the policy's rules.
    pub of_rule: Option<CallOptions>,
    /// The call's deadline.
    pub deadline: Option<Deadline>,
    /// The deadline that the request already has. The layer does not add it again.
    pub existing_deadline: Option<Deadline>,
    /// The marker of an outer retry layer, if there is one.
    pub outer: Option<NestedMarker>,
    /// `true` if the request has headers that only the protocol may set. The layer must remove them.
    pub strip: bool,
}

impl RequestTerms {
    /// Takes the call's overrides. The request's take precedence over the handle's, and the handle's over a rule's.
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

/// The facts about a request that determine whether it may be retried.
#[derive(Debug, Clone, Copy)]
pub struct RetrySafety {
    /// `true` if the request may be retried at all.
    pub may_retry: bool,
    /// `true` if the request may be processed twice.
    pub repeatable: bool,
    /// `true` if the request is repeatable only because of its idempotency key.
    pub keyed: bool,
}

/// The number of an attempt, which is in the request's extensions from the second attempt on.
///
/// Reqwest requests do not have it, because their extensions are private.
///
/// ```
/// # use reattempt::retry::AttemptNumber;
/// fn number_of(request: &http::Request<()>) -> u32 {
///     request.extensions().get::<AttemptNumber>().map_or(1, |number| number.0)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptNumber(pub u32);

/// The marker in a hedge's extensions: inner guards must not make it wait.
#[derive(Debug, Clone, Copy)]
pub struct Impatient;
