//! Tests of several servers behind one client: which of them get attempts, and what discovery does.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod absent;
mod abuse;
mod any;
mod attempts;
mod bad_input;
mod changes;
mod discovery;
mod emptied;
mod foreign;
mod frames;
mod hedges;
mod in_flight;
mod load_reports;
mod loopback;
mod metrics;
mod moves;
mod pauses;
mod places;
mod readiness;
mod secrets;
mod seen;
mod standard;
mod untried;
mod urls;
