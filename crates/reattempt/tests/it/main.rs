//! Tests of the layers and of `retry` around scripted services.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod calls;
mod confirming;
#[cfg(feature = "tonic")]
mod grpc;
#[cfg(feature = "tonic")]
mod guard;
mod hedge;
#[cfg(feature = "reqwest")]
mod hedge_wire;
mod linger;
mod operation;
mod policies;
mod profiles;
mod regressions;
#[cfg(feature = "reqwest-0-12")]
mod reqwest_0_12;
#[cfg(feature = "reqwest")]
mod reqwest_calls;
#[cfg(feature = "tonic")]
mod service_config;
mod snapshot;
mod stacks;
mod tenants;
#[cfg(feature = "tracing")]
mod tracing;
mod validate;
