//! Load shedding for servers: a guard in front of a service refuses excess calls with a `Retry-After` response.
//!
//! An overloaded server completes fewer and fewer calls in time. [`ShedLayer`] immediately refuses calls that the guard
//! does not admit. An [`AdaptiveLimit`](crate::AdaptiveLimit) finds the server's capacity automatically.
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
//! | a deadline that passed before the call began | 504 |
//!
//! A protocol with its own statuses sends those instead.
//!
//! # Signs of load
//!
//! An adaptive limit reacts to the service's latencies and to its 503 and 504 responses. A caller cannot lower the
//! limit with its own deadline or quota. A call that ends with 408 or 429, or is dropped at its deadline, is recorded
//! as served, with its latency. A call that is dropped earlier is not recorded. Other protocols' codes are treated like
//! the equivalent HTTP statuses.
//!
//! # Callers that do not read
//!
//! A call holds its place until the response body ends. A caller that does not read its response keeps the place, and a
//! single HTTP/2 connection can hold all places. If callers are untrusted, set
//! [`release_at_head`](crate::AdaptiveLimit::release_at_head).
//!
//! # Callers that upload slowly
//!
//! A call also holds its place while the service reads the request body, so a slow upload blocks the place. Limit the
//! time for reading request bodies inside this layer. [The order page][slow-uploads] shows how.
//!
//! # The delay in a refusal
//!
//! If the guard's refusal contains a known wait, that wait is the delay. Otherwise, the delay is the number of calls
//! refused in the last two seconds, divided by the rate at which calls end. If no call has ended in that time, the
//! delay is 1 s. It is clamped to between 100 ms and 30 s. Up to 100 % is added at random, so that clients do not retry
//! at the same time. The sum is sent as `Retry-After` in whole seconds, rounded up, and as `retry-after-ms`.
//!
//! # When most calls are retries
//!
//! Refusals contain `x-should-retry: false` if at least 20 calls have arrived in the last two seconds, and more than
//! half of them were retries. A call is a retry if its `x-envoy-attempt-count` is above 1. Proxies send this header,
//! and a client can add it in a [`before_attempt`](reattempt_engine::RetryPolicy::before_attempt) hook.
//!
//! [slow-uploads]: https://docs.rs/reattempt/latest/reattempt/order/index.html#slow-uploads

mod future;
mod gauge;
#[cfg(feature = "grpc")]
mod grpc;
mod layer;
mod protocol;
mod service;

pub use future::ResponseFuture;
pub use gauge::Gauge;
pub use layer::ShedLayer;
pub use protocol::ShedProtocol;
pub use service::Shed;
