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
mod endpoints;
mod fallback;
#[cfg(feature = "tonic")]
mod grpc;
#[cfg(feature = "tonic")]
mod guard;
mod hedge;
#[cfg(feature = "reqwest")]
mod hedge_wire;
mod linger;
#[cfg(feature = "opentelemetry")]
mod metrics;
mod operation;
mod pace;
mod policies;
mod profiles;
mod regressions;
#[cfg(feature = "reqwest")]
mod reqwest_calls;
#[cfg(feature = "reqwest")]
mod resume;
#[cfg(feature = "tonic")]
mod service_config;
mod shed;
mod stacks;
#[cfg(all(feature = "opentelemetry", feature = "tracing"))]
mod telemetry;
mod tenants;
#[cfg(feature = "tracing")]
mod tracing;
mod validate;
