//! Tests on a real redis-server. Without the binary they are skipped, with a message.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod drivers;
mod errors;
mod liar;
mod lies;
mod network;
mod rate;
mod script;
mod server;
mod servers;
mod state;
mod support;
mod tls;
mod together;
