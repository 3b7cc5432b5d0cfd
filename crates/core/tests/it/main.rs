//! Tests of the contracts and of `Call` through the public API.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod call;
mod combinators;
mod evidence;
mod for_failures;
mod forwarding;
mod guard;
mod guard_panics;
mod hedge;
mod jitter;
mod permit;
mod snapshot;
mod support;
mod texts;
