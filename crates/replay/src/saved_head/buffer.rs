//! The buffer of a saved head, and the spare buffer that each thread keeps for its next call.

use std::cell::Cell;
use std::mem;
use std::ops::Deref;

use bytes::Bytes;

/// The largest capacity of a spare buffer.
const LARGEST_SPARE: usize = 1024;

thread_local! {
    /// The spare buffer, which is zeroed or empty.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A head's buffer, which is shared once the head is restored.
pub(super) enum Buffer {
    Own(Own),
    Shared(Bytes),
}

/// The buffer of one head. The thread that drops it keeps it as its spare buffer.
pub(super) struct Own(Vec<u8>);

impl Buffer {
    #[inline]
    pub(super) fn new(own: Vec<u8>) -> Self {
        Self::Own(Own(own))
    }

    /// Returns the thread's zeroed spare buffer, or a new one of the `usual` length.
    #[inline]
    pub(super) fn zeros(usual: impl FnOnce() -> usize) -> Vec<u8> {
        let spare = SPARE.try_with(Cell::take).unwrap_or_default();
        if spare.is_empty() { vec![0; usual()] } else { spare }
    }

    /// Returns another reference to the buffer.
    pub(super) fn share(&mut self) -> Bytes {
        let shared = self.take();
        *self = Buffer::Shared(shared.clone());
        shared
    }

    /// Takes the buffer for sharing and leaves an empty one. Nothing is copied.
    pub(super) fn take(&mut self) -> Bytes {
        match mem::replace(self, Buffer::new(Vec::new())) {
            Buffer::Own(own) => Bytes::from_owner(own),
            Buffer::Shared(shared) => shared,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Own(own) => &own.0,
            Buffer::Shared(shared) => shared,
        }
    }
}

impl AsRef<[u8]> for Own {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Keeps the buffer as this thread's spare buffer. It is zeroed, because it contained headers.
impl Drop for Own {
    #[inline]
    fn drop(&mut self) {
        if (1..=LARGEST_SPARE).contains(&self.0.capacity()) {
            let mut own = mem::take(&mut self.0);
            own.clear();
            own.resize(own.capacity(), 0);
            let _ = SPARE.try_with(|spare| spare.set(own));
        }
    }
}
