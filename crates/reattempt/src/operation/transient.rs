//! Which errors of sockets and databases pass by themselves.

use std::io::{Error, ErrorKind};

/// Returns `true` if an I/O error tells of a connection that was refused, lost or too slow: another attempt
/// may do better.
///
/// An error that the file system, the user's rights or malformed data caused is not.
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

/// Returns `true` if a database's SQLSTATE tells of a failure that another attempt may mend: a connection lost
/// or refused (class 08), a transaction rolled back for a deadlock or for its isolation (class 40), a
/// server that is starting or going down (57P).
///
/// Within these, a protocol violation (08P01), a violated constraint (40002) and a dropped database
/// (57P04) would only fail again. Where the outcome of a transaction is unknown (08007, 40003) it may
/// have been committed: repeat only what may be carried out twice.
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
