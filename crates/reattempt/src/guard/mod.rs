//! Admission control for every attempt: circuit breakers and other guards, in one layer type.
//!
//! A retry budget limits retries. A guard decides on every attempt, including the first: a breaker refuses calls to a
//! server that is down, and a limit delays calls. [`GuardLayer`] runs any guard around any client. Put it **inside** a
//! retry layer, so that the guard decides on each attempt.
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
//! | [`Pace`] | the time between two calls, depending on the server's throttling | waits for its turn |
//!
//! Each guard keeps one state per destination: scheme, host and port, unless
//! [`Http::destination`](crate::Http::destination) sets another key. A [`Pace`] has one state for all. Clones of a
//! guard share its state, so keep a clone to read or control it.
//!
//! # Several guards
//!
//! Several guards form a pair in one layer, `(breaker, (limit, bulkhead))`, in the order in which they decide. If the
//! second guard refuses, the first is notified that nothing was sent. After a wait, a breaker decides again, so that a
//! queued call is not sent to a server that has failed in the meantime. Limits do not decide again: the call keeps its
//! place, token or turn.
//!
//! [`erase`](contract::erase) gives all guards one type, for lists that are known only at run time.
//!
//! # Refusals
//!
//! After a refusal, nothing was sent, and the server has not failed. So outer budgets and guards do not record it.
//!
//! If a refusal has a known wait of at most 5 s (1 s for an open breaker), an outer retry layer waits and sends the
//! attempt again. The wait must also fit [`max_elapsed`](crate::RetryPolicy::max_elapsed) and the deadline. So while a
//! breaker is open, calls fail at once, except in the last second before it admits a probe. With longer waits, many
//! calls would be sent at the same time and overload the server that the breaker protects. To let calls wait longer for
//! a rate limit, use its [`queue`](RateLimit::queue).
//!
//! If a service between the retry layer and the guard follows redirects, the refused request may be [a later
//! hop](crate::order#services-that-follow-redirects). So a request that must not be processed twice is sent again only
//! if nothing below the retry layer has polled its body.
//!
//! Over HTTP, the last attempt that the policy allows is not sent again after a refusal. It consumes the saved request,
//! so that memory is released early.
//!
//! | client | the caller gets |
//! |---|---|
//! | HTTP, reqwest, any other | a boxed error with a [`Refused`] in its source chain |
//! | a protocol that has a response for refusals | that response, with the [`Refused`] in its extensions |
//!
//! A waiting call does not hold a readied instance of the inner service: the service is readied after the wait.
//!
//! # Server failures
//!
//! The protocol's own classification decides, as it does for retries.
//!
//! | outcome | [`Health`](contract::Health) |
//! |---|---|
//! | success, a 4xx that is not listed below, 501, 505 | served |
//! | 425, a 5xx that is not listed below, a lost connection, a refused certificate, an unknown error | failed |
//! | 503, 504, a timeout | unavailable |
//! | 429 | overloaded |
//! | 408, an error in the caller's own request body | ignored |
//!
//! 501 and 505 respond to a request that no server would accept, and 408 to one that did not arrive in time. So one
//! caller of a gateway cannot open its breaker for all callers. The layer does not know how much of a body was sent, so
//! every 408 is ignored.
//!
//! A 429 may concern only one of the server's tenants. A gateway whose tenants have their own quotas has two options.
//! It can add the tenant to the destination key with [`Http::destination`](crate::Http::destination). Or it can exclude
//! 429 from the breaker's failures:
//!
//! ```
//! use reattempt::guard::CircuitBreaker;
//! use reattempt::guard::contract::Health;
//!
//! let neutral = |health| matches!(health, Health::Overloaded | Health::Ignored);
//! let breaker = CircuitBreaker::rate().is_excluded(neutral);
//! ```
//!
//! An HTTP response is judged at its head, and a call that ends with trailers at its trailers. A call that is dropped
//! before that is [abandoned](contract::End::Abandoned), which is no evidence about the server. It is a timeout if its
//! deadline has passed, or if the attempt timeout of a retry or guard layer further out dropped it. If tower's
//! `Timeout` is outside the guards, it looks to them like a caller that hangs up: put it inside, or use
//! [`attempt_timeout`](GuardLayer::attempt_timeout).
//!
//! A call that is dropped after its first message is served, because many callers end a stream this way. A probe of a
//! half-open breaker is judged at its first message.
//!
//! # The server's own limit
//!
//! Responses may state a quota in `RateLimit` or `x-ratelimit` fields. A [`RateLimit`] follows it if the layer reads
//! these fields:
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
//! # reqwest
//!
//! reqwest's requests have no public extensions. So a guard sees neither an attempt's deadline nor that the attempt is
//! a hedge:
//!
//! - An attempt may wait past its deadline, until a retry or hedge layer outside drops it. Limit the guard's waiting
//!   time.
//! - A hedge may wait.
//! - An attempt that its caller or a hedge layer drops at its deadline is recorded as abandoned, not as a timeout. Set
//!   an [`attempt_timeout`](GuardLayer::attempt_timeout) below the time limit for a call, as the standard stack does.
//!
//! A deadline from [`Http::options_for`](crate::Http::options_for) is visible to guards.
//!
//! # Observation
//!
//! The traits in [`handle`] read a guard. The layer's observers are notified of attempts that wait or are refused.
//! `CircuitBreaker::on_state_change` is notified of state changes. `TracingObserver` writes both to `tracing`.
//! `metrics::GuardMetrics`, behind the feature `opentelemetry`, measures them.
//!
//! # Custom guards
//!
//! [`contract`] contains everything needed to write a guard. [`handle`] reads and controls a guard in use.

mod body;
pub mod contract;
mod future;
pub mod handle;
mod health;
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
mod wait;

#[cfg(feature = "reqwest")]
pub(crate) use self::reqwest::with_url;
pub use body::GuardedBody;
pub(crate) use body::{guarded_body, is_open, watch_pass};
#[doc(hidden)]
pub use health::Judged;
pub(crate) use health::of_classification;
pub use layer::GuardLayer;
pub use pace::Pace;
#[doc(hidden)]
pub use pass::Pass;
#[doc(hidden)]
pub use protocol::OwnEnd;
pub use reattempt_control::{
    AdaptiveLimit, Aimd, Bulkhead, CircuitBreaker, Gradient2, Limit, RateLimit, SendRate, Throttle, Vegas,
};
pub use reattempt_core::guard::{Reason, Refused};
pub use service::Guarded;
pub(crate) use shared::Shared;

pub use crate::send::Sending;
