//! Tests of policy files: the reader, the schema, the layers, and files that change.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helpers too"
)]

mod any_file;
mod bad_files;
mod bodies;
mod documents;
mod layers;
mod reading;
mod reloads;
mod schemas;
mod snapshots;
mod support;
mod texts;
mod watching;
