//! Tests of the retry budgets and the guards.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod adaptive;
mod bad_input;
mod breaker;
mod bulkhead;
mod cautious;
mod contention;
mod continuing;
mod destinations;
mod endpoints;
mod events;
mod guards;
mod inspected;
mod model;
mod newcomers;
mod pause;
mod quota;
mod rate_limit;
mod send_rate;
mod server_load;
mod settings;
mod shown;
mod throttle;
mod traps;
mod wait_queue;
