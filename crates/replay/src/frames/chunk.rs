//! The queue entry, and the buffer that short frames are copied into.

use bytes::BytesMut;

use super::KeptFrame;

pub(super) struct Entry {
    pub(super) kept: KeptFrame,
    /// The number of readers positioned right before this frame.
    pub(super) before: u32,
    /// The charge that is released with the frame, or [`BY_LENGTH`]. The last frame of a chunk carries the chunk's
    /// charge.
    pub(super) charge: u32,
}

/// The charge for the queue entry of each further frame in a chunk.
pub(super) const CHARGE_OF_PLACE: u32 = 64;

/// Marks a charge that is computed from the frame's length.
pub(super) const BY_LENGTH: u32 = u32::MAX;

impl Entry {
    #[inline]
    pub(super) fn charge(&self) -> usize {
        match self.charge {
            BY_LENGTH => self.kept.charge(),
            charge => wide(charge),
        }
    }
}

#[inline]
pub(super) fn wide(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A buffer that frames are copied into.
pub(super) struct Chunk {
    /// The copied bytes that do not form a frame yet, and the free capacity.
    pub(super) data: BytesMut,
    /// The charge for its capacity at creation.
    pub(super) charge: u32,
    /// `true` if `data` is the last frame.
    pub(super) filling: bool,
    /// `true` if a frame has been started in it.
    pub(super) begun: bool,
}

impl Chunk {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            data: BytesMut::with_capacity(capacity),
            charge: u32::try_from(capacity).unwrap_or(BY_LENGTH - 1),
            filling: false,
            begun: false,
        }
    }

    #[inline]
    pub(super) fn room(&self) -> usize {
        self.data.capacity() - self.data.len()
    }
}
