//! Admission control for every attempt: circuit breakers and other guards, as one layer.
//!
//! A retry budget limits retries. A guard decides about every attempt, the first included: a breaker refuses calls
//! to a server that is down, a limit holds calls back. [`GuardLayer`] runs any guard around any client. Put it
//! **inside** a retry layer, so that the guard decides about each attempt.
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
//! | guard | bounds | an attempt beyond the bound |
//! |---|---|---|
//! | [`CircuitBreaker`] | calls to a server that fails | is refused |
//! | [`RateLimit`] | calls for each second | waits, or is refused |
//! | [`Bulkhead`] | calls in flight | is refused, or waits in a queue |
//! | [`AdaptiveLimit`] | calls in flight, by latency and overload ([`Aimd`], [`Vegas`], [`Gradient2`]) | is refused, or waits |
//! | [`Throttle`] | calls to a server that refuses many | is refused with a probability |
//! | [`SendRate`] | calls for each second, by what the server throttles | waits |
//! | [`Pace`] | the time between two calls, by what the server throttles | waits for its turn |
//!
//! Each guard keeps a state for each destination: scheme, host and port, unless
//! [`Http::destination`](crate::Http::destination) sets another key. A [`Pace`] has one for all. Clones
//! of a guard share its state, so keep one to read it or to control it.
//!
//! # Several guards
//!
//! Several guards are a pair in one layer, `(breaker, (limit, bulkhead))`, in the order in which they decide. If the
//! second refuses, the first is notified that nothing was sent. After a wait a breaker decides again, so that a queued
//! call is not sent to a server that has failed meanwhile. The limits keep the place, token or turn that they gave.
//!
//! [`erase`](contract::erase) gives guards one type, for lists that are known at run time only.
//!
//! # Refusals
//!
//! Nothing was sent, and the server has not failed. So no budget and no guard outside counts a refusal.
//!
//! If a refusal has a known wait of at most 5 s, or 1 s for an open breaker, a retry layer outside waits that long and
//! sends the attempt again. The wait must also fit [`max_elapsed`](crate::RetryPolicy::max_elapsed) and the deadline.
//! So while a breaker is open, calls fail at once, except in the last second before it admits a probe. With longer
//! waits, many calls would return together and overload the server that the breaker protects. To let calls wait longer
//! for a rate limit, use its [`queue`](RateLimit::queue).
//!
//! A guard refuses what reaches it. Behind a service that follows redirects that may be
//! [a later hop](crate::order#services-that-follow-redirects). So a request that must not be processed twice is sent
//! again only if nothing below the retry layer has polled its body.
//!
//! Over HTTP the last attempt that the policy allows is not sent again: it consumes the kept request, so that the
//! memory is released early.
//!
//! | client | the caller gets |
//! |---|---|
//! | HTTP, reqwest, any other | a boxed error with a [`Refused`] in its chain of sources |
//! | a protocol that has an answer for it | that answer, with the [`Refused`] in its extensions |
//!
//! A call that waits holds no readied instance of the inner service: the service is readied after the wait.
//!
//! # What counts as a failure of the server
//!
//! The protocol's own classification decides, the same as for retries.
//!
//! | outcome | [`Health`](contract::Health) |
//! |---|---|
//! | success, a 4xx that is not named below, 501, 505 | served |
//! | 425, a 5xx that is not named below, a lost connection, a refused certificate, an unknown error | failed |
//! | 503, 504, a timeout | unavailable |
//! | 429 | overloaded |
//! | 408, an error of the caller's own request body | ignored |
//!
//! 501 and 505 are answers to a request that no server would take, and 408 to one that did not arrive in time. So one
//! caller of a gateway cannot open its breaker for all. The layer does not see how much of a body was sent, so each 408
//! is ignored.
//!
//! A 429 may concern one tenant of the server only. A gateway whose tenants have quotas of their own has two ways. It
//! can put the tenant into the key of a destination, by [`Http::destination`](crate::Http::destination). Or its breaker
//! does not count 429:
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
//! before that is [abandoned](contract::End::Abandoned), and says nothing about the server. It is a timeout if its
//! deadline has
//! passed, or if an attempt timeout of a retry or guard layer further out dropped it. tower's `Timeout` outside of the
//! guards looks like a caller that hangs up: put it inside, or use
//! [`attempt_timeout`](GuardLayer::attempt_timeout).
//!
//! A call that is dropped after its first message is served: many callers end a stream so. A probe of a half-open
//! breaker is judged at its first message.
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
//! Its requests have no public extensions, so a guard learns neither the deadline of an attempt nor that it is a hedge:
//!
//! - An attempt may wait past its deadline; a retry or hedge layer outside drops it there. Bound the waiting time of
//!   the guard.
//! - A hedge may wait.
//! - An attempt that its caller or a hedge layer drops at its deadline counts as abandoned, not as a timeout. Set an
//!   [`attempt_timeout`](GuardLayer::attempt_timeout) below the time for a call, as the standard stack has it.
//!
//! A deadline by [`Http::options_for`](crate::Http::options_for) reaches guards.
//!
//! # Observation
//!
//! The traits of [`handle`] read a guard. Observers of the layer are notified of
//! attempts that wait or are refused, and `CircuitBreaker::on_state_change` of state changes. `TracingObserver` writes
//! both to `tracing`. `metrics::GuardMetrics`, behind the feature `opentelemetry`, measures them.
//!
//! # A guard of your own
//!
//! [`contract`] has what its author needs. [`handle`] reads and controls a guard that a client uses.

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
