//! BreakerState that many calls share: retry budgets and observed latencies.
//!
//! Input: the outcomes of calls, the destinations they were for, and the time as an
//! argument. Output: whether one more retry can be afforded. There is no clock here, no
//! task, no timer and no runtime.
//!
//! | what | its state |
//! |---|---|
//! | [`RetryBudget`] | a bucket of tokens for each destination |
//! | [`CircuitBreaker`] | closed, open or half-open, for each destination |
//! | [`Latencies`] | a histogram of how long first attempts take |
#![forbid(unsafe_code)]

mod budget;
mod destination_table;
mod guard;
mod latencies;
mod sync;

pub use budget::RetryBudget;
pub use guard::{BreakerState, BreakerTicket, CircuitBreaker, Counts, StateChange};
pub use latencies::Latencies;
