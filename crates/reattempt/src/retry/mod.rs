//! Parts of the retry middleware: its future, its limits, and what hooks and inner services receive.
//!
//! The middleware itself is at the root: [`RetryLayer`], [`RetryPolicy`](crate::RetryPolicy)
//! and [`Retry`].
//!
//! | item | content |
//! |---|---|
//! | [`ResponseFuture`] | the future of one call |
//! | [`Limits`] | the limits of a policy, as [`RetryPolicy::limits`](crate::RetryPolicy::limits) returns them |
//! | [`AttemptContext`] | the attempt that a `before_attempt` hook is about to change |
//! | [`AttemptNumber`] | the number of an attempt, in the extensions of its request |
//! | [`StockPolicy`], [`StockDelay`] | a policy under tower's own `tower::retry::Retry`, and its delay between attempts |

#[cfg(feature = "http")]
mod call;
#[cfg(feature = "http")]
mod future;
#[cfg(feature = "http")]
pub(crate) mod layer;
#[cfg(feature = "http")]
mod send;
#[cfg(feature = "http")]
pub(crate) mod service;

#[cfg(feature = "http")]
pub use crate::call::hook::AttemptContext;
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
