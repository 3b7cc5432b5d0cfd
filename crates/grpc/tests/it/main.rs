//! Tests of gRPC facts that retries depend on.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod any_config;
mod descriptors;
mod details;
mod service_config;
mod service_config_fields;
mod service_config_handle;
mod service_config_texts;
mod throttle;
mod throttle_model;
