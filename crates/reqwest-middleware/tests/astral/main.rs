//! Tests of `tests/it`, with `astral-reqwest-middleware` in place of reqwest-middleware.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

// The names that the tests import are those of the fork here.
extern crate reattempt_reqwest_middleware as own;
extern crate reqwest_middleware_astral as reqwest_middleware;
extern crate self as reattempt_reqwest_middleware;

pub use own::astral::{CallError, ChainError, ChainLayer, ReattemptMiddleware};

#[path = "../it/behaviours.rs"]
mod behaviours;
#[path = "../it/chain.rs"]
mod chain;
#[path = "../it/errors.rs"]
mod errors;
#[path = "../it/stacks.rs"]
mod stacks;
#[path = "../it/support.rs"]
mod support;
