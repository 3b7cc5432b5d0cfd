//! Retries of any operation, asynchronous or blocking, by the same engine.
//!
//! [`retry`](crate::retry()) takes a schedule, a profile or a policy, and a closure that begins the operation anew.
//! It returns the first success, or a [`RetryError`] with the last error.
//!
//! | item | content |
//! |---|---|
//! | [`retry_blocking`] | the same for an operation that blocks its thread |
//! | [`Retrying`], [`RetryingFuture`] | the operation with its settings, and its future |
//! | [`RetryError`] | the last error, and the reason for the end |
//! | [`IntoOperationPolicy`], [`OperationPolicy`] | the values that an operation can be retried by |
//! | [`Operations`] | the protocol of [`RetryPolicy::operations`](crate::RetryPolicy::operations) |
//! | [`is_transient_io_error`], [`is_transient_sqlstate`] | conditions for [`Retrying::when`] |

mod blocking;
mod call_state;
mod error;
mod future;
mod policy;
pub(crate) mod retrying;
mod transient;
mod tries;

pub use crate::call::protocol::Operations;
pub use error::RetryError;
pub use future::RetryingFuture;
pub use policy::{IntoOperationPolicy, OperationPolicy};
pub use retrying::{Retrying, retry_blocking};
pub use transient::{is_transient_io_error, is_transient_sqlstate};
