//! Tests of pacing: when calls are sent, what moves the interval, and what a call holds while it waits.

mod auto_traits;
mod cancelling;
mod contract;
mod errors;
mod judging;
mod late_sending;
mod no_runtime;
mod readiness;
mod refusing;
mod sharing;
mod support;
mod turns;
mod waiting;
mod with_retries;
