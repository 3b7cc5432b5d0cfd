//! gRPC status codes, and the verdict for each.

use std::fmt;

use reattempt_core::{Failure, FailureKind, Verdict};

/// A gRPC status code.
///
/// An undefined number becomes [`Code::Unknown`], as in most libraries.
// RET-5
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the gRPC specification")]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

const NAMES: [(Code, &str); 17] = [
    (Code::Ok, "OK"),
    (Code::Cancelled, "CANCELLED"),
    (Code::Unknown, "UNKNOWN"),
    (Code::InvalidArgument, "INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (Code::NotFound, "NOT_FOUND"),
    (Code::AlreadyExists, "ALREADY_EXISTS"),
    (Code::PermissionDenied, "PERMISSION_DENIED"),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, "FAILED_PRECONDITION"),
    (Code::Aborted, "ABORTED"),
    (Code::OutOfRange, "OUT_OF_RANGE"),
    (Code::Unimplemented, "UNIMPLEMENTED"),
    (Code::Internal, "INTERNAL"),
    (Code::Unavailable, "UNAVAILABLE"),
    (Code::DataLoss, "DATA_LOSS"),
    (Code::Unauthenticated, "UNAUTHENTICATED"),
];

impl Code {
    /// The names of all codes in the specification, by number.
    pub const NAMES: [&'static str; NAMES.len()] = {
        let mut names = [""; NAMES.len()];
        let mut number = 0;
        while number < names.len() {
            names[number] = NAMES[number].1;
            number += 1;
        }
        names
    };

    /// Returns the code with this number, or `Unknown` if the number is not defined.
    pub fn from_number(number: u32) -> Self {
        usize::try_from(number).ok().and_then(|number| NAMES.get(number)).map_or(Code::Unknown, |(code, _)| *code)
    }

    /// Parses the value of a `grpc-status` field. A value that cannot be parsed is `Unknown`.
    pub fn from_bytes(value: &[u8]) -> Self {
        read(value).unwrap_or(Code::Unknown)
    }

    /// Parses the value of a `grpc-status` field for lookup in a policy's list of codes.
    ///
    /// Returns `None` for an undefined number, which matches no list even though the call fails with `Unknown`.
    /// Returns `Unknown` for a value that is not a number.
    // RET-5
    pub fn listed_from_bytes(value: &[u8]) -> Option<Self> {
        match read(value) {
            None if is_number(value) => None,
            code => Some(code.unwrap_or(Code::Unknown)),
        }
    }

    /// Returns the code for a stream reset by the server with this HTTP/2 error code (RFC 9113 §7).
    ///
    /// The mapping is gRPC's. `NO_ERROR` before any response maps to `Internal`.
    pub fn from_reset(reason: u32) -> Self {
        match reason {
            // REFUSED_STREAM
            0x7 => Code::Unavailable,
            // CANCEL
            0x8 => Code::Cancelled,
            // ENHANCE_YOUR_CALM
            0xb => Code::ResourceExhausted,
            // INADEQUATE_SECURITY
            0xc => Code::PermissionDenied,
            _ => Code::Internal,
        }
    }

    /// Returns the name from the specification, such as "DEADLINE_EXCEEDED".
    pub fn name(self) -> &'static str {
        Self::NAMES[usize::from(self.number())]
    }

    /// Returns the number that is sent in `grpc-status`.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

fn is_number(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

/// Returns the code whose number is in this text.
fn read(value: &[u8]) -> Option<Code> {
    let text = std::str::from_utf8(value).ok().filter(|_| is_number(value))?;
    let number: usize = text.parse().ok()?;
    NAMES.get(number).map(|(code, _)| *code)
}

#[cfg(feature = "tonic")]
impl From<tonic::Code> for Code {
    fn from(code: tonic::Code) -> Self {
        Self::from_number(u32::try_from(i32::from(code)).unwrap_or(2))
    }
}

#[cfg(feature = "tonic")]
impl From<Code> for tonic::Code {
    fn from(code: Code) -> Self {
        tonic::Code::from_i32(code as i32)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the verdict for a call that ended with this status code.
///
/// | code | verdict |
/// |---|---|
/// | OK | success |
/// | UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED | transient: retried only if the call may be repeated |
/// | any other | permanent |
///
/// No code proves that the server did no work. Proxies send UNAVAILABLE after their backend died with the call. Servers
/// send RESOURCE_EXHAUSTED if the response of a finished call exceeds a limit.
pub fn verdict_of_code(code: Code) -> Verdict {
    let failure = |kind| Failure::new(kind).with_code(code.number());
    match code {
        Code::Ok => Verdict::Success,
        Code::Unavailable => Verdict::Transient(failure(FailureKind::Server)),
        Code::ResourceExhausted => Verdict::Transient(failure(FailureKind::Throttled)),
        Code::DeadlineExceeded => Verdict::Transient(failure(FailureKind::Timeout)),
        _ => Verdict::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_round_trips_by_number_and_text() {
        for (number, (code, name)) in NAMES.iter().enumerate() {
            assert_eq!(usize::from(code.number()), number);
            assert_eq!(Code::from_bytes(number.to_string().as_bytes()), *code);
            assert_eq!(code.to_string(), *name);
        }
    }

    // RET-5
    #[test]
    fn what_is_not_a_code_is_unknown() {
        for value in [&b"17"[..], b"-1", b"+14", b"", b" 14", b"14 ", b"99999999999999", b"\xff", b"OK"] {
            assert_eq!(Code::from_bytes(value), Code::Unknown, "{value:?}");
        }
    }

    // RET-5
    #[test]
    fn reset_has_the_code_of_its_reason() {
        let rows = [
            (0x0, Code::Internal),
            (0x1, Code::Internal),
            (0x2, Code::Internal),
            (0x7, Code::Unavailable),
            (0x8, Code::Cancelled),
            (0xb, Code::ResourceExhausted),
            (0xc, Code::PermissionDenied),
            (u32::MAX, Code::Internal),
        ];
        for (reason, code) in rows {
            assert_eq!(Code::from_reset(reason), code, "{reason}");
        }
    }

    /// No code proves that nothing was processed, so none allows a retry of every call.
    // RET-7, C-12
    #[test]
    fn three_codes_are_transient() {
        for (code, _) in NAMES {
            let kind = match code {
                Code::Unavailable => Some(FailureKind::Server),
                Code::ResourceExhausted => Some(FailureKind::Throttled),
                Code::DeadlineExceeded => Some(FailureKind::Timeout),
                _ => None,
            };
            let expected = match (code, kind) {
                (Code::Ok, _) => Verdict::Success,
                (_, Some(kind)) => Verdict::Transient(Failure::new(kind).with_code(code.number())),
                (_, None) => Verdict::Permanent,
            };
            assert_eq!(verdict_of_code(code), expected, "{code}");
        }
    }

    #[cfg(feature = "tonic")]
    #[test]
    fn every_code_converts_to_tonics_and_back() {
        for (code, _) in NAMES {
            let theirs = tonic::Code::from(code);
            assert_eq!((i32::from(theirs), Code::from(theirs)), (code as i32, code));
        }
    }
}
