//! Parts of the retry middleware: its future, its limits, and what hooks and inner services receive.
//!
//! The middleware itself is at the root: [`RetryLayer`], [`RetryPolicy`](crate::RetryPolicy)
//! and [`Retry`].
//!
//! | item | content |
//! |---|---|
//! | [`ResponseFuture`] | the future of one call |
//! | [`Limits`] | the limits of a policy, as [`RetryPolicy::limits`](crate::RetryPolicy::limits) returns them |
//! | [`AttemptContext`] | what a `before_attempt` hook receives |
//! | [`AttemptNumber`] | the number of an attempt, in the extensions of its request |
//! | [`StockDelay`] | the delay between attempts under the stock `tower::retry::Retry` |

mod call;
mod call_context;
mod future;
pub(crate) mod layer;
pub(crate) mod policy;
mod preparation;
mod progress;
mod schedule;
mod send;
pub(crate) mod service;
pub(crate) mod settings;
mod shared;

pub use crate::call::hook::AttemptContext;
pub use crate::call::wishes::AttemptNumber;
pub(crate) use call_context::CallContext;
pub use future::ResponseFuture;
pub(crate) use layer::RetryLayer;
pub use policy::StockDelay;
pub(crate) use progress::{FailedAttempt, Progress, conclude};
pub use reattempt_core::Limits;
pub(crate) use service::Retry;
