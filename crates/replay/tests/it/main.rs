//! Tests of the replayable body, the saved head and draining.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod body;
mod charges;
mod drain;
mod heads;
mod kept;
mod known;
mod last_reader;
mod property;
mod resume;
mod resume_ranges;
mod support;
mod threads;
mod thresholds;
mod upload;
mod wakers;
mod watch;
mod whole;
mod wire;
