//! Tests of the rule, and of the budget with stores and networks of every kind.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod budget;
mod events;
mod inspected;
mod memory;
mod messages;
#[cfg(feature = "opentelemetry")]
mod metrics;
mod model;
mod network;
mod rate;
mod rate_rule;
mod rate_scenes;
mod reports;
mod rule;
mod support;
