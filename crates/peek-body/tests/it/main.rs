//! The tests of this crate, in one binary.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod bounds;
mod every_byte;
mod frames;
mod layers;
mod reqwest_client;
mod rules;
mod support;
mod wire;
