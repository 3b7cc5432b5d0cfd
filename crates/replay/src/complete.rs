//! Bodies that are complete when their first reader is created: empty bodies and single buffers.
//!
//! Each reader holds the whole body, so no lock or allocation is needed.
//!
//! A buffer is charged once, to the newest reader. A clone takes over the original's charge, because one of the two is
//! sent and the other is only kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::error::ReplayError;
use crate::limits::ReplayLimits;
use crate::memory::{ReplayCharge, ReplayMemory, least_charge};
use crate::noted::Noted;
use crate::progress::Polled;

/// One reader of a complete body.
pub(super) enum Complete {
    /// The body was at its end when the reader was created.
    Empty(SizeHint),
    Buffer(OneBuffer),
    /// Empty or a single buffer, with readers that record whether a client has inspected the body.
    Noted(Noted),
    /// No part of the body was kept, so reading it fails.
    NotKept,
}

impl Complete {
    #[inline]
    pub(super) fn try_clone(&self) -> Option<Self> {
        match self {
            Complete::Empty(hint) => Some(Complete::Empty(SizeHint::clone(hint))),
            Complete::Buffer(whole) => whole.try_clone().map(Complete::Buffer),
            Complete::Noted(noted) => noted.try_clone().map(Complete::Noted),
            Complete::NotKept => None,
        }
    }

    pub(super) fn is_replayable(&self) -> bool {
        match self {
            Complete::Empty(_) => true,
            Complete::Buffer(whole) => whole.data.is_some(),
            Complete::Noted(noted) => noted.is_replayable(),
            Complete::NotKept => false,
        }
    }

    /// Makes the readers record that a client has inspected the body.
    pub(super) fn noting(self) -> Self {
        Complete::Noted(match self {
            Complete::Empty(hint) => Noted::new(hint, None),
            Complete::Buffer(mut whole) => Noted::new(whole.size_hint(), whole.take_charged()),
            Complete::Noted(noted) => noted,
            Complete::NotKept => return self,
        })
    }

    /// Returns the record, if the readers keep one.
    #[inline]
    pub(super) fn noted(&self) -> Option<&Noted> {
        match self {
            Complete::Noted(noted) => Some(noted),
            Complete::Empty(_) | Complete::Buffer(_) | Complete::NotKept => None,
        }
    }

    pub(super) fn poll_frame(&mut self) -> Polled {
        let data = match self {
            Complete::Empty(_) => None,
            Complete::Buffer(whole) => whole.give_out(),
            Complete::Noted(noted) => return noted.poll_frame(),
            Complete::NotKept => return Poll::Ready(Some(Err(ReplayError::NotKept.into()))),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    #[inline]
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Complete::Empty(_) => true,
            Complete::Buffer(whole) => whole.data.is_none(),
            Complete::Noted(noted) => noted.is_end_stream(),
            Complete::NotKept => false,
        }
    }

    #[inline]
    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Complete::Empty(hint) => SizeHint::clone(hint),
            Complete::Buffer(whole) => whole.size_hint(),
            Complete::Noted(noted) => noted.size_hint(),
            Complete::NotKept => SizeHint::default(),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Complete::Empty(_) => "empty",
            Complete::Noted(noted) if noted.is_empty() => "empty",
            Complete::Buffer(_) | Complete::Noted(_) => "kept",
            Complete::NotKept => "not kept",
        }
    }
}

/// One reader of a single-buffer body.
pub(super) struct OneBuffer {
    /// The data, or `None` once it has been returned as a frame.
    data: Option<Bytes>,
    /// `true` if the body's size hint was exact.
    told: bool,
    memory: ReplayMemory,
    /// `true` if this reader holds the charge. The flag guards no other data, so `Relaxed` is enough.
    charged: AtomicBool,
}

impl OneBuffer {
    /// Creates the first reader of `data`. Gives `data` back if it exceeds the memory limit.
    #[inline]
    pub(super) fn new(data: Bytes, told: bool, limits: &ReplayLimits) -> Result<Self, Bytes> {
        match limits.take(least_charge(data.len())) {
            Some(memory) => Ok(Self { data: Some(data), told, memory, charged: AtomicBool::new(true) }),
            None => Err(data),
        }
    }

    /// Returns another reader, unless this one has returned the buffer as a frame.
    #[inline]
    fn try_clone(&self) -> Option<Self> {
        let data = self.data.as_ref()?;
        // A reader whose charge was passed to an earlier clone takes a new one if there is room. If not, the buffer
        // stays charged to that clone.
        let charged = self.charged.swap(false, Ordering::Relaxed) || self.memory.take(least_charge(data.len()));
        Some(Self {
            data: Some(data.clone()),
            told: self.told,
            memory: self.memory.clone(),
            charged: AtomicBool::new(charged),
        })
    }

    /// Returns the size hint for the remaining data. It is exact if the body's hint was exact.
    #[inline]
    fn size_hint(&self) -> SizeHint {
        if !self.told {
            return SizeHint::default();
        }
        let rest = self.data.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(rest).unwrap_or(u64::MAX))
    }

    /// Takes the buffer with its charge, if this reader still has both.
    fn take_charged(&mut self) -> Option<(Bytes, ReplayCharge)> {
        let data = self.data.take()?;
        let bytes = if std::mem::take(self.charged.get_mut()) { least_charge(data.len()) } else { 0 };
        Some((data, self.memory.charge_of_taken(bytes)))
    }

    #[inline]
    fn give_out(&mut self) -> Option<Bytes> {
        self.give_charge_back();
        self.data.take()
    }

    #[inline]
    fn give_charge_back(&mut self) {
        if let (true, Some(data)) = (std::mem::take(self.charged.get_mut()), &self.data) {
            self.memory.give_back(least_charge(data.len()));
        }
    }
}

impl Drop for OneBuffer {
    #[inline]
    fn drop(&mut self) {
        self.give_charge_back();
    }
}
