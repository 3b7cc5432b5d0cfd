//! The reasons why a response cannot be used to resume a body.

use std::error::Error;
use std::fmt;

use http::StatusCode;

/// A reason why a response does not continue a body at its first missing byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The status is not 206. 200 means that the content has changed, or that the server does not support ranges and
    /// its response does not repeat the validator.
    Status(StatusCode),
    /// The status is 416: the content ends before the first missing byte.
    Unsatisfied {
        /// The position of the first missing byte.
        expected: u64,
        /// The length of the content, in bytes.
        total: u64,
    },
    /// The body has several parts (`multipart/byteranges`), although one range was requested.
    Multipart,
    /// A content coding, or a transfer coding other than `chunked`, was applied, so the bytes are not those of the
    /// content.
    Encoding,
    /// The validator is missing or differs, so the content may have changed.
    Validator,
    /// `Content-Range` is missing, repeated, not in bytes, or invalid.
    NoRange,
    /// The range begins after the first missing byte, does not contain it, or ends after the requested last byte. A
    /// range that begins earlier is refused if the response does not repeat the validator.
    Range {
        /// The position of the first missing byte.
        expected: u64,
        /// The position of the first byte in the response.
        first: u64,
        /// The position of the last byte in the response.
        last: u64,
    },
    /// The total length of the content differs.
    Total {
        /// The original length of the content, in bytes.
        expected: u64,
        /// The length in the response, in bytes.
        found: u64,
    },
    /// The length of the response's body differs from that of its range.
    Length {
        /// The length of the range, in bytes.
        expected: u64,
        /// The length in `Content-Length` or of the body. `None` if it is missing, repeated or invalid.
        found: Option<u64>,
    },
    /// A redirect or a fallback led to a different resource, where an equal validator proves nothing. Found only by the
    /// layer.
    Resource,
    /// More bytes would have to be skipped than the settings permit.
    Skip {
        /// The number of bytes before the first missing one.
        skip: u64,
        /// The maximum number.
        most: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the response does not continue the body: ")?;
        match self {
            Self::Status(status) => write!(f, "its status is {}, not 206", status.as_u16()),
            Self::Unsatisfied { expected, total } => {
                write!(f, "its content has {total} bytes, and the first missing byte is {expected}")
            }
            Self::Multipart => f.write_str("its body has several parts"),
            Self::Encoding => f.write_str("its body is encoded"),
            Self::Validator => f.write_str("it has not the same validator"),
            Self::NoRange => f.write_str("it has no valid content-range"),
            Self::Range { expected, first, last } => {
                write!(f, "its range is {first}-{last}, and the first missing byte is {expected}")
            }
            Self::Total { expected, found } => write!(f, "its content has {found} bytes, not {expected}"),
            Self::Length { expected, found: Some(found) } => {
                write!(f, "its body has {found} bytes, and its range has {expected}")
            }
            Self::Length { expected, found: None } => {
                write!(f, "it has no valid content-length, and its range has {expected} bytes")
            }
            Self::Resource => f.write_str("a redirect or a fallback led to another resource"),
            Self::Skip { skip, most } => write!(f, "it repeats {skip} bytes, and at most {most} are skipped"),
        }
    }
}

impl Error for Mismatch {}

/// The error for a body that is longer than its `Content-Length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    pub(super) total: u64,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body is longer than its content-length of {} bytes", self.total)
    }
}

impl Error for TooLong {}
