//! Load shedding in front of a service of ours: any guard, whose refusals are responses that tell clients when to
//! return.
//!
//! A server with more work than it can do finishes less and less of it in time. [`ShedLayer`] admits what the guard
//! admits, and refuses the rest at once. An [`AdaptiveLimit`](crate::guard::AdaptiveLimit) finds the server's capacity
//! by itself.
//!
//! ```
//! use reattempt::guard::AdaptiveLimit;
//! use reattempt::shed::ShedLayer;
//!
//! let app: axum::Router = axum::Router::new()
//!     .route("/", axum::routing::get(async || "done"))
//!     .layer(ShedLayer::http(AdaptiveLimit::gradient2()));
//! ```
//!
//! | refused by | status |
//! |---|---|
//! | a rate limit | 429 |
//! | any other guard | 503 |
//! | its own deadline, before it began | 504 |
//!
//! A protocol with statuses of its own answers by those.
//!
//! # The delay that clients are asked for
//!
//! It is the wait that the guard knows. Otherwise it is the time that the calls which were refused in the last two
//! seconds take at the rate at which calls end, from 100 ms to 30 s, and 1 s before any call has ended. In both cases
//! up to as much again is added at random.
//! It is sent as `Retry-After` in whole seconds and as `retry-after-ms`.
//!
//! # Retries that make up most of the load
//!
//! If more than half of the arrivals of the last two seconds are retries, and there are at least 20, clients are asked
//! not to retry, by `x-should-retry: false`. A retry is recognised by an `x-envoy-attempt-count` above 1. Proxies send
//! this field, and a client sends it from a [`before_attempt`](crate::RetryPolicy::before_attempt) hook.

mod future;
mod gauge;
mod layer;
mod protocol;
mod service;

pub use future::ResponseFuture;
pub use gauge::{Advice, Gauge};
pub use layer::ShedLayer;
pub use protocol::ShedProtocol;
pub(crate) use protocol::number;
pub use service::Shed;
