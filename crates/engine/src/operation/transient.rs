//! Conditions that detect transient errors of sockets and databases.

use std::io::{Error, ErrorKind};

/// Returns `true` if an I/O error may be transient: the connection was refused, lost or too slow.
///
/// Returns `false` for file system errors, missing permissions and malformed data.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use reattempt::operation::is_transient_io_error;
///
/// assert!(is_transient_io_error(&Error::from(ErrorKind::ConnectionReset)));
/// assert!(!is_transient_io_error(&Error::from(ErrorKind::PermissionDenied)));
/// ```
pub fn is_transient_io_error(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
    )
}

/// Returns `true` if a database error with this SQLSTATE may be transient.
///
/// | class | failure | except |
/// |---|---|---|
/// | 08 | the connection was lost or refused | 08P01, a protocol violation |
/// | 40 | the transaction was rolled back because of a deadlock or its isolation level | 40002, a violated constraint |
/// | 57P | the server is starting or shutting down | 57P04, a dropped database |
///
/// After 08007 or 40003, it is unknown whether the transaction was committed. Retry it only if it may run twice.
///
/// ```
/// use reattempt::operation::is_transient_sqlstate;
///
/// assert!(is_transient_sqlstate("40001")); // serialisation failure
/// assert!(is_transient_sqlstate("57P03")); // the server is starting
/// assert!(!is_transient_sqlstate("42601")); // syntax error
/// ```
pub fn is_transient_sqlstate(state: &str) -> bool {
    let class = ["08", "40", "57P"].iter().any(|class| state.starts_with(class));
    state.len() == 5 && class && !["08P01", "40002", "57P04"].contains(&state)
}
