//! Each fault of a connection.

mod clients;
#[cfg(feature = "hyper")]
mod connector;
mod io;
