//! Calls of a tonic client under the retry layer, against a service that answers by a script under a
//! paused clock. The names carry the ids of the rules that they test.

#![cfg(feature = "tonic")]
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod any_answer;
mod attempts;
mod backoff;
mod bodies;
mod budget;
mod buffers;
mod calls;
mod credentials;
mod deadlines;
mod hedged;
mod hostile;
mod inbound;
mod lost;
mod peek_trailers;
#[path = "../metrics/reset.rs"]
mod reset;
mod sorting;
mod support;
