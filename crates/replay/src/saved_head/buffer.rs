//! The buffer of a saved head, and the spare one that each thread keeps for its next call.

use std::cell::Cell;
use std::mem;
use std::ops::Deref;

use bytes::Bytes;

/// The largest capacity of a spare buffer.
const LARGEST_SPARE: usize = 1024;

thread_local! {
    /// Zeros, or nothing.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer that becomes shared when a head is restored from it.
pub(super) enum Buffer {
    Own(Vec<u8>),
    Shared(Bytes),
}

impl Buffer {
    /// Returns the zeros of the thread's spare buffer, or as many as are `usual`.
    #[inline]
    pub(super) fn zeros(usual: impl FnOnce() -> usize) -> Vec<u8> {
        let spare = SPARE.try_with(Cell::take).unwrap_or_default();
        if spare.is_empty() { vec![0; usual()] } else { spare }
    }

    /// Returns another share of the buffer.
    pub(super) fn share(&mut self) -> Bytes {
        let shared = self.take();
        *self = Buffer::Shared(shared.clone());
        shared
    }

    /// Returns the buffer for sharing, and leaves an empty one. An own buffer is copied: the copy is as long as the
    /// head, and the buffer becomes the thread's spare one again.
    pub(super) fn take(&mut self) -> Bytes {
        match mem::replace(self, Buffer::Own(Vec::new())) {
            Buffer::Own(ref own) => Bytes::copy_from_slice(own),
            Buffer::Shared(ref mut shared) => mem::take(shared),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Own(own) => own,
            Buffer::Shared(shared) => shared,
        }
    }
}

/// Makes the buffer the spare one of this thread. The buffer held headers, so it is cleared.
impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if let Buffer::Own(own) = self
            && (1..=LARGEST_SPARE).contains(&own.capacity())
        {
            let mut own = mem::take(own);
            own.clear();
            own.resize(own.capacity(), 0);
            let _ = SPARE.try_with(|spare| spare.set(own));
        }
    }
}
