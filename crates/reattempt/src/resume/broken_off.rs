//! The error of a body that ends early.

use std::error::Error;
use std::fmt;

/// The error for a body that ended before its `Content-Length`, although the inner client reported no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenOff {
    pub(super) received: u64,
    pub(super) total: u64,
}

impl BrokenOff {
    /// Returns the number of bytes that the caller has received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the `Content-Length`.
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
