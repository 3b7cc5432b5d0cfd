//! Call errors: the modes that determine a call's error type, and the contents of a boxed error.
//!
//! A time limit can interrupt an attempt only if the call's error type can represent a timeout. The mode is therefore
//! part of the policy's type:
//!
//! | mode | error type of a call | set by |
//! |---|---|---|
//! | [`OwnError`] | the inner service's | the default over HTTP |
//! | [`BoxedError`] | tower's `BoxError`, which contains a [`TimedOut`](crate::TimedOut) after a time limit | [`attempt_timeout`](crate::RetryPolicy::attempt_timeout), [`boxed_errors`](crate::RetryPolicy::boxed_errors) |
//! | [`Answered`] | the inner service's; if the deadline passes, the call ends with a protocol response | the default of protocols with such a response |
//!
//! [`TimeLimit`] and [`RefusedResponse`] are the parts of a `TimedOut`. [`ConfigError`] is the error for contradictory
//! settings. A [`Warning`] names a setting outside its [`Recommended`] range.

pub use crate::call::protocol::OwnError;
#[cfg(feature = "http")]
pub use crate::call::timed_out::{RefusedResponse, TimeLimit};
#[cfg(feature = "http")]
pub use crate::error_mode::{Answered, BoxedError, ErrorMode};
pub use reattempt_core::{ConfigError, Recommended, Warning};

#[cfg(feature = "http")]
#[doc(hidden)]
pub use crate::error_mode::AttemptTimer;
