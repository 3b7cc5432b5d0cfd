//! Pure state machines that hold retries back, right under contention.
//!
//! What flows in: the outcomes of calls, the destinations they were for, and the time as an
//! argument. What flows out: whether one more retry can be afforded. There is no clock here, no
//! task, no timer and no runtime.
//!
//! So far that is the [`RetryBudget`], a bucket of tokens for each destination.
#![forbid(unsafe_code)]

mod budget;
mod sync;

pub use budget::RetryBudget;
