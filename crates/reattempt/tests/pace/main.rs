//! Pacing: when calls are sent, what moves the interval, and what a call holds while it waits.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod auto_traits;
mod cancelling;
mod errors;
mod judging;
mod no_runtime;
mod readiness;
mod refusing;
mod sharing;
mod support;
mod turns;
mod waiting;
mod with_retries;
