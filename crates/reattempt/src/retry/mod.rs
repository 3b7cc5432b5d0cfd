//! The retry middleware: layer, service and future.

mod call;
mod call_context;
mod future;
mod layer;
pub(crate) mod policy;
mod preparation;
mod progress;
mod schedule;
mod send;
mod service;
pub(crate) mod settings;
mod shared;

pub(crate) use call_context::CallContext;
pub use future::RetryFuture;
pub use layer::RetryLayer;
pub(crate) use progress::{FailedAttempt, Progress, conclude};
pub use service::Retry;
