//! What is measured of gRPC calls, by instruments whose measurements are read in memory, under a paused
//! clock. The names carry the ids of the rules that they test.

#![cfg(feature = "opentelemetry")]
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod auto_traits;
mod calls;
mod ends;
mod instruments;
mod reader;
mod reset;
mod retries;
mod sizes;
#[path = "../grpc/support.rs"]
#[allow(dead_code, reason = "shared with the tests of calls, which use all of it")]
mod support;
mod timers;
