//! Each fault of a connection.

mod clients;
mod io;
