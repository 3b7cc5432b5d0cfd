//! Servers as processes that write one ledger, for checks that kill and restart them under load.

pub mod process;
pub mod server;
pub mod tls;
