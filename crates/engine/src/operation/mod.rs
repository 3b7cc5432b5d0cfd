//! Retries for any operation, asynchronous or blocking.
//!
//! [`retry`](crate::retry()) takes a schedule, a profile or a policy, and a closure that starts the operation. `retry`
//! returns the first success, or a [`RetryError`] with the last error. `Ok` values can be failures, too: see
//! [`Retrying::when_ok`], and `Retrying::http` for HTTP responses.
//!
//! | item | content |
//! |---|---|
//! | [`retry_blocking`] | retries a blocking operation |
//! | [`Retrying`], [`RetryingFuture`] | the operation with its settings, and its future |
//! | [`RetryError`] | the last error, with the stop reason |
//! | [`IntoOperationPolicy`], [`OperationPolicy`] | the values that `retry` accepts as a policy |
//! | [`Rules`], [`EveryError`] | the rules that the methods of `Retrying` make, and the default ones |
//! | `HttpResponse` (feature `http`) | the responses that `Retrying::http` classifies |
//! | [`Timer`], [`TokioTimer`] | the clock and timer of another runtime, and tokio's |
//! | [`Operations`] | the protocol of [`RetryPolicy::operations`](crate::RetryPolicy::operations) |
//! | [`is_transient_io_error`], [`is_transient_sqlstate`] | conditions for [`Retrying::when`] |

mod blocking;
mod call_state;
mod error;
mod future;
#[cfg(feature = "http")]
mod http;
mod policy;
pub(crate) mod retrying;
mod rules;
mod safety;
mod timer;
mod transient;
mod tries;

pub use crate::call::protocol::Operations;
pub use error::RetryError;
pub use future::RetryingFuture;
#[cfg(feature = "http")]
pub use http::HttpResponse;
pub use policy::{IntoOperationPolicy, OperationPolicy};
pub use retrying::{Retrying, retry_blocking};
#[doc(hidden)]
pub use rules::ClassifiedResult;
pub use rules::{EveryError, Rules};
pub use timer::{Timer, TokioTimer};
pub use transient::{is_transient_io_error, is_transient_sqlstate};
