//! Tests of each connection fault.

mod clients;
#[cfg(feature = "hyper")]
mod connector;
mod io;
mod relay;
