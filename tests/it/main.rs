//! Tests across crates: real clients and servers, and the examples.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod axum;
mod connections;
mod dying_server;
mod endpoints;
mod fresh;
mod grpc_kinds;
mod grpc_metrics;
mod grpc_wire;
mod guards;
mod handshakes;
mod hyper;
mod inbound_deadline;
mod late_answers;
mod not_processed;
mod proxy;
mod reqwest;
mod reqwest_middleware;
mod resume;
mod storms;
mod support;
mod tonic;
mod tunnels;
mod uploads;
