//! The trait that every protocol implements.

use std::convert::Infallible;

#[cfg(feature = "http")]
use http::{HeaderMap, StatusCode};
use reattempt_control::RetryBudget;
#[cfg(feature = "http")]
use reattempt_core::Verdict;
use reattempt_core::Warning;
#[cfg(feature = "http")]
use reattempt_http::Hints;
use reattempt_schedule_exponential::Exponential;

use super::errors::BoxError;
use super::hook::Carried;
#[cfg(feature = "http")]
use super::options::CallOptions;
#[cfg(feature = "http")]
use super::outcome::ProfileClassifier;

/// A protocol with its settings, such as [`Http`](crate::Http) or [`CloneRequest`](crate::protocol::CloneRequest). This
/// trait is sealed, like [`Replay`](crate::protocol::Replay) and [`ClassifyOutcome`](crate::protocol::ClassifyOutcome).
pub trait Protocol: sealed::Sealed + Send + Sync + 'static {
    /// The part of a request that a `before_attempt` hook may change.
    type Head: Send + 'static;

    /// Takes the value that a hook has left in a head for the next attempt's hook.
    #[doc(hidden)]
    #[inline]
    fn take_carried(head: &mut Self::Head) -> Option<Carried> {
        let _ = head;
        None
    }

    /// The default [`ErrorMode`](crate::error::ErrorMode) of policies, which determines the error type of calls.
    type Mode;

    /// The names of the protocol's codes, indexed by number, for reports.
    #[doc(hidden)]
    const CODE_NAMES: &'static [&'static str] = &[];

    /// Returns the limits on the saved bytes of one streamed body and of all bodies, for reports.
    #[doc(hidden)]
    fn body_limits(&self) -> Option<(usize, usize)> {
        None
    }

    /// Returns the default delays of a policy.
    #[doc(hidden)]
    fn default_backoff() -> Exponential {
        Exponential::default()
    }

    /// Returns the default budget of a policy.
    #[doc(hidden)]
    fn default_budget() -> RetryBudget {
        RetryBudget::default()
    }

    /// Returns `true` if a classifier may read the request of a finished attempt.
    #[doc(hidden)]
    fn classifies(&self) -> bool {
        false
    }

    /// Returns `true` if no setting of the protocol changes new requests or adds options to them.
    #[doc(hidden)]
    fn is_plain(&self) -> bool {
        true
    }

    /// Sets the classifier of a profile. Returns `false` if this has no effect on the protocol.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    fn set_profile_classifier(&mut self, classifier: Option<ProfileClassifier>) -> bool {
        classifier.is_none()
    }

    /// Sets whether every request may be processed twice, unless options of the call or a rule decide. Has no effect on
    /// a protocol whose requests may always be repeated.
    #[doc(hidden)]
    fn set_repeatable(&mut self, repeatable: bool) {
        let _ = repeatable;
    }

    /// Changes the settings of server hints. Has no effect on a protocol without such headers.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    fn change_hints(&mut self, change: &dyn Fn(Hints) -> Hints) {
        let _ = change;
    }

    /// Sets the verdict for a status. Has no effect on a protocol whose responses have another code.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    fn change_status(&mut self, status: StatusCode, verdict: Verdict) {
        let _ = (status, verdict);
    }

    /// Sets the verdict for the code with this name in [`CODE_NAMES`](Self::CODE_NAMES), if the protocol has it.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    fn change_code(&mut self, name: &str, verdict: Verdict) {
        let _ = (name, verdict);
    }

    /// Returns the source of a [`TimedOut`](crate::TimedOut) error, if the protocol has a status for it.
    #[doc(hidden)]
    fn source_of_time_limit() -> Option<BoxError> {
        None
    }

    /// Returns `true` if every success must be recorded in the budget, even that of a call that may not be hedged.
    #[doc(hidden)]
    fn credits_every_call(&self) -> bool {
        false
    }

    /// Returns a warning for each changed setting that hedging does not use.
    #[doc(hidden)]
    fn unused_by_hedging(&self) -> Vec<Warning> {
        Vec::new()
    }

    /// Returns `true` if the protocol replaces unprocessed attempts, regardless of all limits.
    #[doc(hidden)]
    fn replaces(&self) -> bool {
        false
    }

    /// Returns `true` if a response may be pending, so that the request is kept even for the last allowed attempt.
    #[doc(hidden)]
    fn polls(&self) -> bool {
        false
    }

    /// Returns the final error of a call, wrapped in the protocol's own error.
    #[doc(hidden)]
    fn explained(error: BoxError) -> BoxError {
        error
    }

    /// Returns the verdict for a response that ended with these trailers.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    fn classify_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        let _ = (trailers, options);
        Verdict::Success
    }
}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "no other crate implements this crate's sealed traits")]
    pub trait Sealed {}
}

/// The mode that keeps the inner service's error type. Time limits therefore cannot interrupt an attempt. This mode is
/// the default for HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnError;

/// The protocol for the operations that [`retry`](crate::retry()) runs, which have no requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operations;

impl sealed::Sealed for Operations {}

impl Protocol for Operations {
    /// An operation has no request head, so no hook runs for it.
    type Head = Infallible;
    type Mode = OwnError;
}
