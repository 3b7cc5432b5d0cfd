//! The reasons why a response cannot be used to resume a body.

use std::error::Error;
use std::fmt;

use http::StatusCode;

/// A reason why a response does not continue a body at its first missing byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The status is not 206. 200 means that the content has changed or that the server does not support ranges. 416
    /// means that the content has become shorter.
    Status(StatusCode),
    /// The body has several parts (`multipart/byteranges`), although one range was requested.
    Multipart,
    /// A content coding, or a transfer coding other than `chunked`, was applied, so the bytes are not those of the
    /// content.
    Encoding,
    /// The validator is missing or differs, so the content may have changed.
    Validator,
    /// `Content-Range` is missing, repeated, not in bytes, without a total, or invalid.
    NoRange,
    /// The range differs from the missing part.
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
    /// `Content-Length` differs from the length of the range.
    Length,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the response does not continue the body: ")?;
        match self {
            Self::Status(status) => write!(f, "its status is {}, not 206", status.as_u16()),
            Self::Multipart => f.write_str("its body has several parts"),
            Self::Encoding => f.write_str("its body is encoded"),
            Self::Validator => f.write_str("it has not the same validator"),
            Self::NoRange => f.write_str("it has no valid content-range"),
            Self::Range { expected, first, last } => {
                write!(f, "its range is {first}-{last}, and the first missing byte is {expected}")
            }
            Self::Total { expected, found } => write!(f, "its content has {found} bytes, not {expected}"),
            Self::Length => f.write_str("its content-length is not that of its range"),
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
