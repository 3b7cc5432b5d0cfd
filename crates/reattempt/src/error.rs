//! Errors of calls: the modes that choose a call's error type, and what a boxed error contains.
//!
//! A time limit that interrupts an attempt needs room in the error type. The mode is part of the policy's type:
//!
//! | mode | error type of a call | chosen by |
//! |---|---|---|
//! | [`OwnError`] | the inner service's | the default over HTTP |
//! | [`BoxedError`] | tower's `BoxError`, with a [`TimedOut`](crate::TimedOut) inside after a time limit | [`attempt_timeout`](crate::RetryPolicy::attempt_timeout), [`boxed_errors`](crate::RetryPolicy::boxed_errors) |
//! | [`Answered`] | the inner service's; the protocol answers a call whose deadline has passed | the default of protocols with such an answer |
//!
//! [`TimeLimit`] and [`RefusedResponse`] are the parts of a `TimedOut`. [`ConfigError`] is the error of a setting
//! whose value comes from outside the program. A [`Warning`] names a setting outside of its [`Recommended`] range.

pub use crate::call::protocol::OwnError;
#[cfg(feature = "http")]
pub use crate::call::timed_out::{RefusedResponse, TimeLimit};
#[cfg(feature = "http")]
pub use crate::error_mode::{Answered, BoxedError, ErrorMode};
pub use reattempt_core::{ConfigError, Recommended, Warning};

#[cfg(feature = "http")]
#[doc(hidden)]
pub use crate::error_mode::AttemptTimer;
