//! Connections that end with a TCP reset.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

/// Makes a connection end with a reset when it is dropped.
#[allow(deprecated, reason = "`set_zero_linger` is newer than the oldest tokio that is supported; zero never blocks")]
pub(crate) fn reset_when_dropped(connection: &TcpStream) -> io::Result<()> {
    connection.set_linger(Some(Duration::ZERO))
}
