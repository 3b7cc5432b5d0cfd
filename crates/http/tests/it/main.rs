//! Tests of HTTP facts that retries depend on.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

#[cfg(feature = "json")]
mod bodies;
mod heads;
mod hints;
mod quota;
mod status;
#[cfg(feature = "hyper")]
mod transport;
