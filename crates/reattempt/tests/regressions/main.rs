//! Defects that were once there, by topic, and the tables that keep them away.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, unused_imports, reason = "shared with the tests of whole calls")]
#[path = "../calls/support/mod.rs"]
mod support;

mod breaking;
mod classifying;
mod deadline_field;
mod destinations;
mod ending;
mod hooks;
