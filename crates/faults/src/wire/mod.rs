//! Faults of a connection, below any protocol.

#[cfg(feature = "hyper")]
mod connector;
#[cfg(feature = "hyper")]
mod counting;
mod io;
mod relay;

use std::time::Duration;

use bytes::Bytes;

use crate::script::{Fault, Sealed};
#[cfg(feature = "toml")]
use crate::words;

#[cfg(feature = "hyper")]
pub use connector::FaultConnector;
#[cfg(feature = "hyper")]
pub use counting::{CountingConnector, CountingIo};
pub use io::FaultyIo;
pub use relay::Relay;

/// A fault of a connection.
///
/// [`Faults::relay`](crate::Faults::relay) is a port in front of a server, for any client.
/// [`Faults::wrap`](crate::Faults::wrap) is for an existing connection, and `Faults::connector` for the connectors of
/// hyper-util and tonic. Steps select connections by number and time. With TLS, the faults apply to the encrypted
/// bytes, which begin with the handshake. `Tls` lists some faults and their effect on the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum WireFault {
    /// No fault.
    #[default]
    NoFault,
    /// The connection is refused. A relay, whose port is open, resets it immediately.
    Refuse,
    /// The connection is never established. A relay accepts it but neither reads nor writes.
    TimeOut,
    /// The connection breaks in one direction after some bytes.
    Break {
        /// The direction.
        direction: Direction,
        /// The number of bytes that pass before the break.
        after: u64,
        /// The kind of break.
        how: Break,
    },
}

impl WireFault {
    /// Returns a fault that breaks the connection after the client has read `after` bytes.
    pub fn read(after: u64, how: Break) -> Self {
        Self::Break { direction: Direction::Read, after, how }
    }

    /// Returns a fault that breaks the connection after the client has written `after` bytes.
    pub fn write(after: u64, how: Break) -> Self {
        Self::Break { direction: Direction::Write, after, how }
    }
}

impl Sealed for WireFault {}

impl Fault for WireFault {}

/// A direction of a connection, from the client's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Direction {
    /// From the server.
    Read,
    /// To the server.
    Write,
}

/// The way in which one direction of a connection breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Break {
    /// The connection is reset, in both directions.
    Reset,
    /// This direction is closed in an orderly way. The other direction stays open, except in a relay whose client keeps
    /// writing.
    Close,
    /// No more bytes ever pass.
    Stall,
    /// The rest passes byte by byte, with this delay before each.
    Drip(#[cfg_attr(feature = "toml", serde(deserialize_with = "words::milliseconds"))] Duration),
    /// These bytes are inserted, then the rest passes.
    Garbage(#[cfg_attr(feature = "toml", serde(deserialize_with = "words::bytes"))] Bytes),
}

impl Break {
    /// Returns the [`Garbage`](Self::Garbage) break whose bytes are a fatal TLS alert with this description, such as 80
    /// for `internal_error`.
    ///
    /// During the handshake, a TLS client accepts it as the server's alert.
    pub fn tls_alert(description: u8) -> Self {
        Self::Garbage(Bytes::copy_from_slice(&[21, 3, 3, 0, 2, 2, description]))
    }

    /// Returns the [`Garbage`](Self::Garbage) break whose bytes are a TLS record that cannot be decrypted.
    pub fn broken_record() -> Self {
        let mut record = [0; 37];
        [record[0], record[1], record[2], record[4]] = [23, 3, 3, 32];
        Self::Garbage(Bytes::copy_from_slice(&record))
    }
}
