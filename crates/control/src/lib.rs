//! State that many calls share: retry budgets, guards and observed latencies.
//!
//! Input: the outcomes of calls, the destinations they were for, and the time as an argument. Output: the decision
//! about a retry or an attempt. There is no clock here, no task, no timer and no runtime.
//!
//! | what | its state |
//! |---|---|
//! | [`RetryBudget`] | a bucket of tokens for each destination |
//! | [`Latencies`] | a histogram of how long first attempts take |
//!
//! Guards decide about every attempt, the first included. Their contract is [`reattempt_core::guard`], and each has a
//! state for each destination, in a table of bounded size.
//!
//! | guard | what it is for | its state |
//! |---|---|---|
//! | [`CircuitBreaker`] | a server that fails: calls to it are refused for a while | closed, open or half-open |
//! | [`Bulkhead`] | a server that is slow: calls to it do not take the places of all others | the calls in flight and in line |
//! | [`AdaptiveLimit`] | a server whose capacity changes: a bulkhead whose limit follows it | the limit, its window of samples |
//! | [`Throttle`] | a server that refuses much: part of the calls is not sent | requests and accepts of two minutes |
//! | [`RateLimit`] | a quota of calls for each second | a bucket of tokens, and the calls that wait for them |
//! | [`SendRate`] | a quota that is unknown: refusals lower the rate, successes raise it again | the rate, and the tokens of a rate limit |
#![forbid(unsafe_code)]

mod budget;
mod destination_table;
mod guard;
mod latencies;
mod sync;

pub use budget::RetryBudget;
pub use guard::{
    AdaptiveLimit, AdaptiveTicket, Aimd, BreakerState, BreakerTicket, Bulkhead, BulkheadTicket,
    CircuitBreaker, Counts, Gradient2, Limit, LimitRule, LimitWindow, RateLimit, RateTicket,
    Reservation, SendRate, SendTicket, StateChange, Throttle, ThrottleCounts, ThrottleTicket,
    Usage, Vegas,
};
pub use latencies::Latencies;
