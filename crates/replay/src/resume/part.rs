//! The part of a body that a response continues with.

/// The part of the body that a response contains. Returned by [`ResumePoint::check`](super::ResumePoint::check).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub(super) skip: u64,
    pub(super) length: u64,
    pub(super) total: Option<u64>,
}

impl Part {
    /// Returns the number of bytes at the start of the response's body that were already received, and must be skipped.
    pub const fn skip(&self) -> u64 {
        self.skip
    }

    /// Returns the number of new bytes after the skipped ones. If fewer than the missing ones, the rest must be
    /// requested again.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the length of the whole content, if the response contains it.
    pub const fn total(&self) -> Option<u64> {
        self.total
    }
}
