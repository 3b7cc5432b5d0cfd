//! `std::io` errors. The verdict depends on the kind of error and on the stage at which it occurred.

use std::io::{Error, ErrorKind};

use reattempt_core::{Failure, FailureKind, Verdict};

use super::{LOST, NOT_CONNECTED, Phase, Sign, TIMED_OUT, tls};

/// The verdict for an unreachable network. A request may already have been sent.
const OUT_OF_REACH: Verdict = Verdict::Transient(Failure::new(FailureKind::Connect));

pub(super) fn sign(error: &Error, phase: Phase) -> Sign {
    let kind = error.kind();
    let verdict = match phase {
        Phase::Connected => on_connection(error),
        Phase::Unknown => match kind {
            ErrorKind::ConnectionRefused | ErrorKind::AddrNotAvailable => Some(NOT_CONNECTED),
            // A router's ICMP error can also end an established connection that has already carried a request.
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => Some(OUT_OF_REACH),
            kind => anywhere(kind),
        },
    };
    verdict.map_or(Sign::None, Sign::Presumption)
}

/// Returns the verdict for a read or write error on an established connection, which is then lost.
///
/// TLS libraries report alerts and unreadable records as `InvalidData` or `Other`. In TLS 1.3 the client's certificate
/// is rejected only after the handshake, and a server that rejected it will do so again.
fn on_connection(error: &Error) -> Option<Verdict> {
    match error.kind() {
        ErrorKind::TimedOut => Some(TIMED_OUT),
        ErrorKind::InvalidInput | ErrorKind::PermissionDenied | ErrorKind::Unsupported => None,
        ErrorKind::InvalidData | ErrorKind::Other if tls::is_certificate_refused(error) => Some(Verdict::Permanent),
        _ => Some(LOST),
    }
}

/// Returns the verdict for an error at an unknown stage, if its kind indicates a lost connection.
fn anywhere(kind: ErrorKind) -> Option<Verdict> {
    match kind {
        ErrorKind::TimedOut => Some(TIMED_OUT),
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionAborted
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof
        | ErrorKind::WriteZero => Some(LOST),
        _ => None,
    }
}

/// Returns `true` if this machine lacks a port, a file descriptor, a buffer or memory.
pub(super) fn is_local(error: &Error) -> bool {
    // These have no stable kind. On Unix: ENFILE, EMFILE, and ENOBUFS of Linux and of the BSDs; on Windows: WSAEMFILE
    // and WSAENOBUFS.
    const NO_DESCRIPTOR_OR_BUFFER: &[i32] =
        if cfg!(windows) { &[10_024, 10_055] } else { &[23, 24, if cfg!(target_os = "linux") { 105 } else { 55 }] };
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::OutOfMemory)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR_OR_BUFFER.contains(&code))
}
