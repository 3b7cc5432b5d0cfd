//! What proves that a request was not processed, and what no longer does: by counting how often a POST
//! reached its handler.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod redirects;
mod refused_stream;
#[path = "../support/mod.rs"]
mod support;
