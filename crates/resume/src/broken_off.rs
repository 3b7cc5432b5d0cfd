//! The errors of a body that ends early.

use std::error::Error;
use std::fmt;

use tower::BoxError;

use super::{Mismatch, ResumePoint};

/// The error for a body that ended before its `Content-Length`, although the inner client reported no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenOff {
    pub(super) received: u64,
    pub(super) total: u64,
}

impl BrokenOff {
    pub(super) fn at(point: &ResumePoint) -> Self {
        Self { received: point.received(), total: point.length() }
    }

    /// Returns the number of bytes that the caller has received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the length of the body, which is its `Content-Length`.
    pub fn total(&self) -> u64 {
        self.total
    }
}

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body broke off after {} of {} bytes", self.received, self.total)
    }
}

impl Error for BrokenOff {}

/// The error for a body that broke and was not continued, because the server's answer to the request for the rest does
/// not fit. Its source is the break.
#[derive(Debug)]
pub struct NotContinued {
    pub(super) mismatch: Mismatch,
    pub(super) broke: BoxError,
}

impl NotContinued {
    /// Returns the reason, with the numbers that differ.
    pub fn mismatch(&self) -> Mismatch {
        self.mismatch
    }

    /// Returns the break: the inner body's error, or a [`BrokenOff`].
    pub fn into_break(self) -> BoxError {
        self.broke
    }
}

impl fmt::Display for NotContinued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body broke off: {}", self.mismatch)
    }
}

impl Error for NotContinued {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.broke)
    }
}
