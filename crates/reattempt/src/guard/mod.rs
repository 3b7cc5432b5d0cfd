//! Admission control for every attempt: circuit breakers and other guards, as one layer.
//!
//! A retry budget limits retries. A [`Guard`] decides about every attempt, the first included: a breaker refuses calls to a
//! server that is down, a limit holds them back. [`GuardLayer`] runs any guard around any client; it goes **inside** a retry
//! layer, so that it decides about each attempt.
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
//! # Several guards
//!
//! Several guards are a pair in one layer, `(breaker, (limit, bulkhead))`, in the order in which they decide. If the second
//! refuses, the first is told that nothing was sent. After a wait all of them decide again: a queued call is not sent to a
//! server whose breaker has opened meanwhile.
//!
//! # The parts of a refusal
//!
//! Nothing was sent, and the server has not failed. So no budget, breaker or pace outside counts a refusal.
//!
//! | client | the caller gets |
//! |---|---|
//! | HTTP, reqwest, any other | a boxed error with a [`Refused`] in its chain of sources |
//! | a protocol that has an answer for it | that answer, with the [`Refused`] in its extensions |
//!
//! A call that may wait holds no readied instance of the inner service meanwhile: the service is readied after the wait.
//!
//! # What counts as a failure of the server
//!
//! The protocol's own classification decides, the same as for retries.
//!
//! | outcome | [`Health`] |
//! |---|---|
//! | success, 4xx | served |
//! | 5xx, a lost connection, a refused certificate | failed |
//! | 503, 504, a timeout | unavailable |
//! | 429 | overloaded |
//! | an error of the caller's own request body | ignored |
//!
//! HTTP responses are judged at their heads, calls that end with trailers at those. A call that is dropped before is
//! [abandoned](End::Abandoned), unless its deadline has passed: then it is a timeout.
//!
//! # A guard of your own
//!
//! The contract is in core, and needs no runtime. Two methods make a guard:
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use std::time::Duration;
//!
//! use reattempt::guard::{Admit, Arrival, BodyEnd, End, Guard, GuardKind, GuardLayer, Reason, Refused};
//!
//! /// At most so many responses that are not read to their ends.
//! struct Unread {
//!     most: usize,
//!     open: AtomicUsize,
//! }
//!
//! impl Guard for Unread {
//!     type Ticket = ();
//!
//!     fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
//!         let more = |open| (open < self.most).then_some(open + 1);
//!         match self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
//!             Ok(_) => Admit::Admitted(()),
//!             Err(_) => Admit::Refused(Refused::new(GuardKind::Custom, Reason::Full)),
//!         }
//!     }
//!
//!     fn end(&self, ticket: (), end: &End, _: Duration) -> Option<()> {
//!         if let End::Judged { .. } = end {
//!             return Some(ticket); // held until the body ends
//!         }
//!         self.open.fetch_sub(1, Ordering::Relaxed);
//!         None
//!     }
//! }
//!
//! let layer = GuardLayer::http(Unread { most: 64, open: AtomicUsize::new(0) });
//! ```

mod body;
mod future;
mod health;
mod layer;
mod pass;
mod protocol;
#[cfg(feature = "reqwest")]
mod reqwest;
mod service;
mod shared;

#[cfg(feature = "reqwest")]
pub(crate) use self::reqwest::with_url;
pub use body::{GuardedBody, JudgeBody};
pub use future::ResponseFuture;
pub use health::Judged;
pub(crate) use health::of_classification;
pub use layer::GuardLayer;
pub use pass::Pass;
pub use protocol::{Facts, GuardOutcome, GuardProtocol, Guardable, OwnEnd};
pub use reattempt_control::{
    AdaptiveLimit, AdaptiveTicket, Aimd, BreakerState, BreakerTicket, Bulkhead, BulkheadTicket,
    CircuitBreaker, Counts, Gradient2, Limit, LimitRule, LimitWindow, RateLimit, RateTicket,
    Reservation, SendRate, SendTicket, StateChange, Throttle, ThrottleCounts, ThrottleTicket,
    Usage, Vegas,
};
pub use reattempt_core::guard::{
    Admit, Arrival, BodyEnd, End, Guard, GuardKind, Health, PairTicket, Reason, Refused, Resume,
};
pub use service::Guarded;
pub use shared::now;
