//! A body that is known in full from the start: nothing at all, or one buffer. Every reader
//! holds it itself, and so there is nothing for them to share: no lock is taken, and no place is
//! needed to meet at.
//!
//! A buffer is charged to the memory once, to the reader that was made last: a clone takes the
//! charge over from the reader it was made of, since one of the two is sent and the other set aside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::limits::ReplayLimits;
use crate::memory::ReplayMemory;
use crate::memory::least_charge;
use crate::progress::Polled;

/// One reader of a body that is known in full.
pub(super) enum Held {
    /// At its end when it was made.
    Empty(SizeHint),
    Whole(Whole),
}

impl Held {
    #[inline]
    pub(super) fn try_clone(&self) -> Option<Self> {
        match self {
            Held::Empty(hint) => Some(Held::Empty(*hint)),
            Held::Whole(whole) => whole.try_clone().map(Held::Whole),
        }
    }

    pub(super) fn is_replayable(&self) -> bool {
        match self {
            Held::Empty(_) => true,
            Held::Whole(whole) => whole.data.is_some(),
        }
    }

    /// The buffer, if there is one and it was not given out.
    pub(super) fn data(&self) -> Option<&Bytes> {
        match self {
            Held::Empty(_) => None,
            Held::Whole(whole) => whole.data.as_ref(),
        }
    }

    pub(super) fn poll_frame(&mut self) -> Polled {
        let data = match self {
            Held::Empty(_) => None,
            Held::Whole(whole) => whole.give_out(),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    #[inline]
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Held::Empty(_) => true,
            Held::Whole(whole) => whole.data.is_none(),
        }
    }

    #[inline]
    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Held::Empty(hint) => *hint,
            Held::Whole(whole) => whole.size_hint(),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Held::Empty(_) => "empty",
            Held::Whole(_) => "kept",
        }
    }
}

/// One reader of a body of one buffer.
pub(super) struct Whole {
    /// `None` once it was given out.
    data: Option<Bytes>,
    /// The body has said how long it is.
    told: bool,
    memory: ReplayMemory,
    /// This reader holds the charge, and so the buffer. Guards no other data, hence `Relaxed`.
    charged: AtomicBool,
}

impl Whole {
    /// The first reader of `data`. The buffer comes back if the memory has no room for it.
    #[inline]
    pub(super) fn new(data: Bytes, told: bool, limits: &ReplayLimits) -> Result<Self, Bytes> {
        match limits.take(least_charge(data.len())) {
            Some(memory) => {
                Ok(Self { data: Some(data), told, memory, charged: AtomicBool::new(true) })
            }
            None => Err(data),
        }
    }

    /// Another reader, if this one has not given the buffer out.
    #[inline]
    fn try_clone(&self) -> Option<Self> {
        let data = self.data.as_ref()?;
        // Whoever has handed its charge over before takes a new one if there is room; if not, the
        // buffer is charged to the reader that was made then.
        let charged = self.charged.swap(false, Ordering::Relaxed)
            || self.memory.take(least_charge(data.len()));
        Some(Self {
            data: Some(data.clone()),
            told: self.told,
            memory: self.memory.clone(),
            charged: AtomicBool::new(charged),
        })
    }

    /// What the body said, or would have said by now.
    #[inline]
    fn size_hint(&self) -> SizeHint {
        if !self.told {
            return SizeHint::default();
        }
        let rest = self.data.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(rest).unwrap_or(u64::MAX))
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

impl Drop for Whole {
    #[inline]
    fn drop(&mut self) {
        self.give_charge_back();
    }
}
