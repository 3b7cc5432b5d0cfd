//! Tests of the kit itself: what it injects, what it records, and which violations it reports.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[cfg(feature = "record")]
mod any_script;
mod chances;
mod http1;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "record")]
mod recording;
mod rules;
mod scripts;
#[cfg(all(feature = "http2", feature = "hyper"))]
mod sends;
mod service;
mod support;
#[cfg(all(feature = "http2", feature = "hyper", feature = "tls"))]
mod tls;
#[cfg(feature = "toml")]
mod toml;
mod wire;
