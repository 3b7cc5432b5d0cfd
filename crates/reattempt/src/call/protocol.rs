//! The contract of a protocol that all ways to retry have in common.

use std::convert::Infallible;
use std::error::Error;

#[cfg(feature = "http")]
use http::HeaderMap;
use reattempt_control::RetryBudget;
#[cfg(feature = "http")]
use reattempt_core::Verdict;
use reattempt_core::{Undone, Warning};
use reattempt_schedule_exponential::Exponential;

use super::errors::BoxError;
#[cfg(feature = "http")]
use super::options::CallOptions;

/// A protocol with its settings: [`Http`](crate::Http) or [`CloneRequest`](crate::protocol::CloneRequest), for
/// instance. Sealed, as are [`Replay`](crate::protocol::Replay) and
/// [`ClassifyOutcome`](crate::protocol::ClassifyOutcome).
pub trait Protocol: sealed::Sealed + Send + Sync + 'static {
    /// The head of a request, as a `before_attempt` hook may change it.
    type Head: Send + 'static;

    /// The error type of a call, unless the policy sets another one: an
    /// [`ErrorMode`](crate::error::ErrorMode).
    type Mode;

    /// The names of the protocol's codes, by number. Reports print them.
    #[doc(hidden)]
    const CODE_NAMES: &'static [&'static str] = &[];

    /// Returns the most bytes that are kept of one streamed request body, and of all bodies. Reports print them.
    #[doc(hidden)]
    fn body_limits(&self) -> Option<(usize, usize)> {
        None
    }

    /// Returns the delays of a policy that sets none.
    #[doc(hidden)]
    fn default_backoff() -> Exponential {
        Exponential::default()
    }

    /// Returns the budget of a policy that sets none.
    #[doc(hidden)]
    fn default_budget() -> RetryBudget {
        RetryBudget::default()
    }

    /// Returns `true` if a classifier may look at the request of an attempt that has ended.
    #[doc(hidden)]
    fn classifies(&self) -> bool {
        false
    }

    /// Returns `true` if no setting of the protocol changes new requests or adds options to them.
    #[doc(hidden)]
    fn is_plain(&self) -> bool {
        true
    }

    /// Returns the source of a time limit's error, where the protocol has a status of its own for it.
    #[doc(hidden)]
    fn source_of_time_limit() -> Option<BoxError> {
        None
    }

    /// Returns `true` if the budget is credited for successful calls that may not be hedged, too.
    #[doc(hidden)]
    fn credits_every_call(&self) -> bool {
        false
    }

    /// Returns a warning for each setting that is not at its default and that hedging does not use.
    #[doc(hidden)]
    fn unused_by_hedging(&self) -> Vec<Warning> {
        Vec::new()
    }

    /// Returns `true` if the protocol replaces attempts that were not processed, outside of all limits.
    #[doc(hidden)]
    fn replaces(&self) -> bool {
        false
    }

    /// Returns how far an unprocessed attempt came; `None` if it is not replaced.
    #[doc(hidden)]
    fn undone(&self, error: &(dyn Error + 'static)) -> Option<Undone> {
        let _ = error;
        None
    }

    /// Returns the boxed error that a call ends with, with the protocol's own words for it in front.
    #[doc(hidden)]
    fn explained(error: BoxError) -> BoxError {
        error
    }

    /// The verdict on an answer that has ended with these trailers.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    fn classify_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        let _ = (trailers, options);
        Verdict::Success
    }
}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "no other crate implements a protocol or a part of one")]
    pub trait Sealed {}
}

/// The inner service's own error type; no time limit interrupts an attempt. The default of HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnError;

/// The protocol of operations that are no requests of a service: those of [`retry`](crate::retry()).
#[derive(Debug, Clone, Copy, Default)]
pub struct Operations;

impl sealed::Sealed for Operations {}

impl Protocol for Operations {
    /// There is none, and no hook to change it: an operation prepares itself.
    type Head = Infallible;
    type Mode = OwnError;
}
