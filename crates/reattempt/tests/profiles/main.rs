//! Every named profile: against the table in its own docs, against the source's figures, and in a
//! policy.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod docs;
mod envelopes;
mod policies;
mod streaming;
mod support;
mod tables;
