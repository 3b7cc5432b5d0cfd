//! Tests against a scripted API server, which answers lists and watches as the real one does.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod api;
mod conditions;
mod faults;
mod names;
mod scripts;
mod shop;
mod slices;
