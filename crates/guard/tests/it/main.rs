//! Tests of guards around clients and in front of servers: what is admitted, what a refusal is, and how tickets end.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod auto_traits;
mod bodies;
mod breaker;
mod destinations;
mod ending;
mod grpc;
mod limits;
mod metrics;
mod pace;
mod pauses;
mod shed;
mod spawned;
mod token_sequences;
mod tokens;
mod waiting;
mod with_hedges;
mod with_retries;
