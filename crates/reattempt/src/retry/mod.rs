//! The retry middleware: layer, service and future.

mod call;
mod course;
mod future;
mod layer;
pub(crate) mod policy;
mod progress;
mod schedule;
mod send;
mod service;
mod setting;

pub use future::RetryFuture;
pub use layer::RetryLayer;
pub(crate) use progress::{FailedAttempt, Progress, conclude};
pub use service::Retry;
pub(crate) use setting::Setting;
