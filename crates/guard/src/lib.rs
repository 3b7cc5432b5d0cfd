//! Admission control for every attempt: circuit breakers and other guards, in one layer type.
//!
//! A retry budget limits only retries. A guard decides on every attempt, including the first: a breaker refuses calls
//! to a server that is down, and a limit delays calls. [`GuardLayer`] runs any guard around any client. Put it
//! **inside** a retry layer, so that the guard decides on each attempt.
//!
//! ```
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::guard::{CircuitBreaker, GuardLayer};
//! use reattempt::{RetryLayer, RetryPolicy};
//! use tower::ServiceBuilder;
//!
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::new(RetryPolicy::http().boxed_errors()))
//!     .layer(GuardLayer::http(CircuitBreaker::rate()))
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! ```
//!
//! | guard | limits | beyond the limit, an attempt |
//! |---|---|---|
//! | [`CircuitBreaker`] | calls to a failing server | is refused |
//! | [`RateLimit`] | calls per second | waits or is refused |
//! | [`Bulkhead`] | calls in flight | is refused, or waits in a queue |
//! | [`AdaptiveLimit`] | calls in flight, depending on latency and overload ([`Aimd`], [`Vegas`], [`Gradient2`]) | is refused, or waits |
//! | [`Throttle`] | calls to a server that refuses many | is refused with a probability |
//! | [`SendRate`] | calls per second, depending on the server's throttling | waits |
//! | [`Pause`] | all calls after the server has asked one of them to wait (`Retry-After`) | waits, and returns in turn |
//! | [`Pace`] | the time between two calls, depending on the server's throttling | waits for its turn |
//!
//! Each guard keeps one state per destination. A destination is a scheme, host and port, unless
//! [`Http::destination`](reattempt_engine::Http::destination) sets another key. A [`Pace`] has one state for all
//! destinations. Clones of a guard share its state, so keep a clone to read or control it.
//!
//! # Several guards
//!
//! To use several guards in one layer, nest them in pairs, such as `(breaker, (limit, bulkhead))`. They decide in this
//! order. If the second guard of a pair refuses, the first is notified that nothing was sent. After a wait, a breaker
//! decides again, so that a queued call is not sent to a server that failed in the meantime. Limits do not decide
//! again: the call keeps its place, token or turn.
//!
//! [`erase`](contract::erase) erases a guard's type, for lists of guards that are known only at run time.
//!
//! # Refusals
//!
//! A refused attempt was not sent, so it is not a server failure. Outer budgets and guards do not record it.
//!
//! After a refusal with a known wait of at most 5 s (1 s for an open breaker), an outer retry layer waits and retries.
//! The wait must also fit [`max_elapsed`](reattempt_engine::RetryPolicy::max_elapsed) and the deadline. While a breaker
//! is open, calls therefore fail immediately, except in the last second before it admits a probe. If calls waited
//! longer, many would be sent at the same time and overload the server that the breaker protects. To let calls wait
//! longer for a rate limit, use its [`queue`](RateLimit::queue).
//!
//! If a service between the retry layer and the guard follows redirects, the refused request may be [a later
//! hop][services-that-follow-redirects]. A request that must not be processed twice is therefore sent
//! again only if nothing inside the retry layer has polled its body.
//!
//! Over HTTP, the last allowed attempt is not sent again after a refusal, because it consumes the saved request to
//! release memory early.
//!
//! | client | result of a refused call |
//! |---|---|
//! | HTTP, reqwest, any other | a boxed error with a [`Refused`] in its source chain |
//! | a protocol that has a response for refusals | that response, with the [`Refused`] in its extensions |
//!
//! A waiting call does not hold a ready instance of the inner service. The inner service's `poll_ready` is called after
//! the wait.
//!
//! # Server failures
//!
//! The protocol's own classification decides, as it does for retries.
//!
//! | outcome | [`Health`](contract::Health) |
//! |---|---|
//! | success, a 4xx that is not listed below, 501, 505 | served |
//! | 425, a 5xx that is not listed below, a lost connection, a rejected certificate, an unknown error | failed |
//! | 503, 504, a timeout | unavailable |
//! | 429 | overloaded |
//! | 408, an error in the caller's own request body | ignored |
//!
//! A 501 or 505 means that no server would accept the request, and a 408 that it did not arrive in time. These statuses
//! do not count as failures, so one caller of a gateway cannot open the gateway's breaker for all callers. Every 408 is
//! ignored, because the layer cannot determine how much of a body was sent.
//!
//! A 429 may concern only one of the server's tenants. A gateway whose tenants have their own quotas has two options.
//! It can add the tenant to the destination key with [`Http::destination`](reattempt_engine::Http::destination).
//! Alternatively, it can exclude 429 from the breaker's failures:
//!
//! ```
//! use reattempt::guard::CircuitBreaker;
//! use reattempt::guard::contract::Health;
//!
//! let neutral = |health| matches!(health, Health::Overloaded | Health::Ignored);
//! let breaker = CircuitBreaker::rate().is_excluded(neutral);
//! ```
//!
//! The outcome of an HTTP call is recorded at its response head, and that of a call with trailers at its trailers. A
//! call that is dropped earlier is recorded as a timeout if its deadline has passed. The same applies if the attempt
//! timeout of an outer retry or guard layer dropped it. Otherwise, the call is [abandoned](contract::End::Abandoned),
//! which shows nothing about the server. If tower's `Timeout` is outside the guards, it looks like a caller that
//! cancels. Put it inside, or use [`attempt_timeout`](GuardLayer::attempt_timeout).
//!
//! A call that is dropped after its first message is recorded as served, because many callers end a stream this way.
//! The outcome of a half-open breaker's probe is recorded at the probe's first message.
//!
//! # The server's own limit
//!
//! Responses may contain a quota in `RateLimit` or `x-ratelimit` fields. A [`RateLimit`] adapts to this quota if the
//! layer reads these fields:
//!
//! ```
//! use reattempt::Http;
//! use reattempt::classify::Hints;
//! use reattempt::guard::{GuardLayer, Limit, RateLimit};
//!
//! let http = Http::new().hints(Hints::default().rate_limit(true));
//! let layer = GuardLayer::with(http, RateLimit::new(Limit::per_second(100), 10));
//! ```
//!
//! Three guards follow what the server says. They differ in what is known:
//!
//! | guard | choose it if | a 429 or 503 with a wait | afterwards |
//! |---|---|---|---|
//! | [`Pause`] | the service states its waits, and nothing else is known | all calls wait until it is over | the calls return over a time as long as the wait |
//! | [`RateLimit`] | the allowed rate is known, or stated in headers | the same | calls are sent at the known rate |
//! | [`SendRate`] | the service refuses calls without stating waits or rates | the rate is cut | the rate grows again with each success |
//!
//! Put a [`Pause`] first if there are several guards, so that waiting calls hold no places of the others. Its pauses
//! have a state per destination. To pause a tenant or an account instead, set that key with
//! [`Http::destination_for`](reattempt_engine::Http::destination_for):
//!
//! ```
//! use reattempt::Http;
//! use reattempt::guard::{GuardLayer, Pause};
//!
//! let tenant = Http::new().destination_for(|request| {
//!     String::from_utf8_lossy(request.header("x-tenant").unwrap_or_default())
//! });
//! let layer = GuardLayer::with(tenant, Pause::new());
//! ```
//!
//! # reqwest
//!
//! Reqwest requests have no public extensions. A guard therefore cannot detect an attempt's deadline, or that the
//! attempt is a hedge:
//!
//! - An attempt may wait past its deadline, until an outer retry or hedge layer drops it. Limit the guard's waiting
//!   time.
//! - A hedge may wait, although guards otherwise never delay hedges.
//! - An attempt that the caller or a hedge layer drops at its deadline is recorded as abandoned and not as a timeout.
//!   Set an [`attempt_timeout`](GuardLayer::attempt_timeout) below the time limit for a call, as the standard stack
//!   does.
//!
//! A deadline from [`Http::options_for`](reattempt_engine::Http::options_for) is visible to guards.
//!
//! # Observation
//!
//! The traits in [`handle`] read a guard's state. The layer's observers are notified of attempts that wait or are
//! refused. `CircuitBreaker::on_state_change` is notified of state changes. `TracingObserver` writes both to `tracing`.
//! `metrics::GuardMetrics`, behind the feature `opentelemetry`, counts both.
//!
//! # Custom guards
//!
//! [`contract`] contains everything needed to write a guard. [`handle`] contains traits that read and control a guard.
//!
//! [services-that-follow-redirects]: https://docs.rs/reattempt/latest/reattempt/order/index.html#services-that-follow-redirects

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
pub mod contract;
mod future;
#[cfg(feature = "grpc")]
mod grpc;
pub mod handle;
mod health;
mod judge;
mod layer;
#[cfg(feature = "opentelemetry")]
pub mod metrics;
mod pace;
mod pass;
mod protocol;
#[cfg(feature = "reqwest")]
mod reqwest;
mod service;
mod shared;
#[doc(hidden)] // its path is `reattempt::shed`
pub mod shed;
mod wait;
#[doc(hidden)]
pub mod wall;

pub use body::GuardedBody;
#[doc(hidden)]
pub use body::Held;
#[doc(hidden)]
pub use health::Judged;
pub use layer::GuardLayer;
pub use pace::Pace;
#[doc(hidden)]
pub use pass::Pass;
#[doc(hidden)]
pub use protocol::OwnEnd;
pub use reattempt_control::{
    AdaptiveLimit, Aimd, Bulkhead, CircuitBreaker, Gradient2, Limit, Pause, RateLimit, SendRate, Throttle, Vegas,
};
pub use reattempt_core::guard::{Reason, Refused};
pub use service::Guarded;

pub use reattempt_engine::wall::Sending;
