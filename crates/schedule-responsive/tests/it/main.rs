//! Tests of responsive backoff.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod news;
mod properties;
mod reconnecting;
mod reference;
mod settings;
mod support;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
mod turns;
