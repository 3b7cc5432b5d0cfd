//! Tests of resumed bodies over a scripted service, under a paused clock.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod answers;
mod any;
mod auto_traits;
mod breaks;
mod digest;
mod every_byte;
mod limits;
mod ranges;
mod requests;
mod stacks;
mod support;
