//! Tests of the schedules without randomness.

#![allow(missing_docs, reason = "tests")]

mod fixed;
mod foreign;
mod support;
