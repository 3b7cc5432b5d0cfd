//! Tests of exponential backoff.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod contract;
mod distributions;
mod profiles;
mod properties;
mod tables;
mod traps;
