//! The parts of the retry middleware: its future, its limits, and the types for hooks and inner services.
//!
//! The middleware itself is at the crate root: [`RetryLayer`], [`RetryPolicy`](crate::RetryPolicy) and [`Retry`].
//!
//! | item | content |
//! |---|---|
//! | [`ResponseFuture`] | the future of one call |
//! | [`Limits`] | a policy's limits, returned by [`RetryPolicy::limits`](crate::RetryPolicy::limits) |
//! | [`AttemptContext`] | the information about the next attempt for a `before_attempt` hook |
//! | [`Carried`] | a value that a hook leaves for the hook of the next attempt |
//! | [`AttemptNumber`] | the attempt's number, in the extensions of its request |
//! | [`StockPolicy`], [`StockDelay`] | a policy for tower's own `tower::retry::Retry`, and its delay between attempts |

#[cfg(feature = "http")]
mod call;
#[cfg(feature = "http")]
mod future;
#[cfg(feature = "http")]
pub(crate) mod layer;
#[cfg(feature = "http")]
pub(crate) mod service;

#[cfg(feature = "http")]
pub use crate::call::hook::{AttemptContext, Carried};
#[cfg(feature = "http")]
pub use crate::call::request_terms::AttemptNumber;
#[cfg(feature = "http")]
pub use crate::policy::{StockDelay, StockPolicy};
#[cfg(feature = "http")]
pub use future::ResponseFuture;
#[cfg(feature = "http")]
pub(crate) use layer::RetryLayer;
pub use reattempt_core::Limits;
#[cfg(feature = "http")]
pub(crate) use service::Retry;
