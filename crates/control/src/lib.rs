//! State that many calls share: retry budgets, guards, latencies and endpoints.
//!
//! Applications import these types from `reattempt`: [`RetryBudget`] from its root, the guards from `reattempt::guard`.
//!
//! From the outcomes of calls, their destinations and the time, these types decide whether a retry or an attempt may be
//! sent. They use no clock, task, timer or runtime.
//!
//! | type | state |
//! |---|---|
//! | [`RetryBudget`] | a token bucket per destination |
//! | [`Latencies`] | a histogram of the latencies of first attempts |
//! | [`ServerLoad`] | a server's calls in the last two seconds, for advice to refused clients |
//! | [`EndpointSet`] | several equivalent endpoints, with the latency, failures and calls in flight of each |
//!
//! Guards admit or refuse every attempt, including the first. Their trait is in [`reattempt_core::guard`]. Each guard
//! keeps one state per destination, in a bounded table.
//!
//! | guard | problem and remedy | state |
//! |---|---|---|
//! | [`CircuitBreaker`] | a server fails: calls to it are refused for some time | closed, open or half-open |
//! | [`Bulkhead`] | a server is slow: its calls in flight are limited, so calls to other servers continue | calls in flight and in the queue |
//! | [`AdaptiveLimit`] | a server's capacity changes: a bulkhead's limit follows it | the limit, a window of samples |
//! | [`Throttle`] | a server refuses many calls: some calls are not sent | the requests of the last two minutes, and how many of them were accepted |
//! | [`RateLimit`] | the client has a quota of calls per second: calls wait for tokens or are refused | a token bucket, and waiting calls |
//! | [`Pause`] | a server asks one call to wait: all calls wait, and then return one after another | the end of the pause |
//! | [`SendRate`] | the client's quota is unknown: refusals lower the rate, successes raise it | the rate, and a rate limit's tokens |
//!
//! Calls wait for a guard in a [`WaitQueue`], which is bounded.
//!
//! ```
//! use std::time::Duration;
//! use reattempt_control::{Limit, RateLimit};
//!
//! let limit = RateLimit::new(Limit::per_second(50), 2);
//! let now = Duration::from_secs(100); // on any monotonic clock
//! assert!(limit.allow_at("one.example", now) && limit.allow_at("one.example", now));
//! assert!(!limit.allow_at("one.example", now), "the burst is spent");
//! assert!(limit.allow_at("one.example", now + Duration::from_millis(20)));
//! ```
//!
//! # When to use it alone
//!
//! Use it to guard something other than a tower service, such as a queue consumer or a thread pool, with your own
//! clock. Every decision is exact under contention.
#![forbid(unsafe_code)]

mod bounded_name;
mod budget;
mod destination_table;
mod endpoints;
mod guard;
mod keyed;
mod latencies;
mod millionths;
mod sync;

pub use bounded_name::bounded_name;
pub use budget::RetryBudget;
pub use endpoints::{
    EjectReason, EjectionRules, Ended, EndpointEvent, EndpointId, EndpointSet, EndpointTicket, EndpointView, Pick,
    PickedTier, Place, TierId, Trail,
};
pub use guard::{
    AdaptiveLimit, AdaptiveTicket, Advice, Aimd, BreakerState, BreakerTicket, Bulkhead, BulkheadTicket, CircuitBreaker,
    Counts, Gradient2, Limit, LimitRule, LimitWindow, Patience, Pause, PauseTicket, RateLimit, RateTicket, Reservation,
    SendRate, SendTicket, ServerLoad, StateChange, Throttle, ThrottleCounts, ThrottleTicket, Usage, UsualLatency,
    Vegas, WaitQueue, WaiterId, Wakers,
};
pub use latencies::Latencies;
