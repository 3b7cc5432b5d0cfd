//! A place in the queue, and the buffer that short frames are copied into.

use bytes::BytesMut;

use super::Saved;

pub(super) struct Entry {
    pub(super) kept: Saved,
    /// The readers that stand right before this frame.
    pub(super) before: u32,
    /// The charge that the frame gives back, or [`BY_LENGTH`]. The last frame of a chunk has the chunk's charge.
    pub(super) charge: u32,
}

/// The charge of a further frame in a chunk: its place in the queue.
pub(super) const CHARGE_OF_PLACE: u32 = 64;

/// The charge is that of the frame by itself.
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
    /// The charge for its capacity when it was made.
    pub(super) charge: u32,
    /// `data` is the last frame.
    pub(super) filling: bool,
    /// A frame was begun in it.
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
