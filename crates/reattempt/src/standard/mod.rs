//! The standard stack: retries, a circuit breaker, a limit on calls in flight and time limits in one layer.
//!
//! ```
//! use reattempt::standard::StandardLayer;
//! use tower::ServiceBuilder;
//!
//! let builder = ServiceBuilder::new().layer(StandardLayer::http());
//! ```
//!
//! From the outside in: total time, retries, guards, attempt timeout, client. Contradictory settings are refused with
//! the names of both. The parts of the stack by themselves are [`RetryLayer`](crate::RetryLayer) and
//! [`GuardLayer`](crate::guard::GuardLayer).
//!
//! The type to store, for an HTTP client `C` and the default settings. [`guide::axum`](crate::guide::axum) has a
//! complete example:
//!
//! ```
//! use reattempt::error::BoxedError;
//! use reattempt::guard::Guarded;
//! use reattempt::schedule::Exponential;
//! use reattempt::standard::{Standard, StandardGuards};
//! use reattempt::{Http, Retry, RetryBudget, RetryPolicy};
//!
//! type Policy = RetryPolicy<Http, Exponential, RetryBudget, BoxedError>;
//! type Stack<C> = Standard<Retry<Guarded<C, StandardGuards>, Policy>>;
//! ```

mod layer;
mod service;

pub use layer::{StandardGuards, StandardLayer};
pub use service::Standard;
