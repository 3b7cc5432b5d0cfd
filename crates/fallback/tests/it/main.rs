//! Tests of fallbacks, of those for reqwest and gRPC, and of backup services.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod clients;
mod grpc_backup;
mod outcomes;
mod proofs;
