//! Tests of the middleware in chains whose last middleware is the server.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod behaviours;
mod chain;
mod errors;
mod stacks;
mod support;
