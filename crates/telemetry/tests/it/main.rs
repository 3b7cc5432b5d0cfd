//! Tests of metrics and spans, with readers in memory, under a paused clock.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod grpc_calls;
mod http_calls;
