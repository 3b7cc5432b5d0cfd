//! Call errors: the modes that determine a call's error type, and the contents of a boxed error.
//!
//! A time limit can interrupt an attempt only if the call's error type can represent a timeout. The error mode, which
//! determines that type, is therefore part of the policy's type:
//!
//! | mode | error type of a call | set by |
//! |---|---|---|
//! | [`OwnError`] | the inner service's | the default over HTTP |
//! | [`BoxedError`] | tower's `BoxError`, which contains a [`TimedOut`](crate::TimedOut) if a time limit ended the call | [`attempt_timeout`](crate::RetryPolicy::attempt_timeout), [`boxed_errors`](crate::RetryPolicy::boxed_errors) |
//! | [`Answered`] | the inner service's; if the deadline passes, the call ends with a response of the protocol | the default for protocols that have such a response |
//!
//! [`TimeLimit`] and [`RefusedResponse`] are the parts of a `TimedOut`. [`ConfigError`] is the error for contradictory
//! settings. A [`Warning`] names a setting outside its [`Recommended`] range.

pub use crate::call::protocol::OwnError;
#[cfg(feature = "http")]
pub use crate::call::timed_out::{RefusedResponse, TimeLimit};
#[cfg(feature = "http")]
pub use crate::error_mode::{Answered, BoxedError, ErrorMode};
pub use reattempt_core::{ConfigError, Recommended, Warning};

#[doc(hidden)]
pub use crate::call::redact::Redacted;
#[cfg(feature = "http")]
#[doc(hidden)]
pub use crate::error_mode::AttemptTimer;
