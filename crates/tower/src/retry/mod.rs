//! The retry middleware: layer, service and future.

mod call;
mod course;
mod future;
mod layer;
mod progress;
mod service;

pub use future::RetryFuture;
pub use layer::RetryLayer;
pub(crate) use progress::{FailedAttempt, Progress, Setting, conclude};
pub use service::Retry;
