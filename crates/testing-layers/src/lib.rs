//! Scripted servers, guards and readers that the tests of the layers share.
//!
//! The crate is not published. It depends on `reattempt`, so only `reattempt` and the crates of its layers depend on
//! it, by path and for their tests. Helpers that need less are in `reattempt-testing`.
//!
//! | module | helpers for tests of |
//! |---|---|
//! | [`calls`] | HTTP calls: a scripted server, requests, bodies, a log of events |
//! | [`grpc`] | gRPC calls: a scripted server, and a budget that records its events |
//! | [`guard`] | layers with a guard, which follows instructions |
//! | [`cluster`] | several servers behind one client |
//! | [`loopback`] | clients that need a socket |
//! | [`resets`] | streams that their server has reset |
//! | [`metrics`] | instruments, and [`TracingLog`] for what is written to a log |

#![allow(missing_docs, missing_debug_implementations, reason = "helpers of tests, named for what they do")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

pub mod calls;
pub mod cluster;
pub mod grpc;
pub mod guard;
pub mod loopback;
pub mod metrics;
pub mod resets;
mod tracing_log;

pub use tracing_log::TracingLog;
