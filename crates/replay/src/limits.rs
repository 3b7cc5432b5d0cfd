//! The limits on the memory that saved request bodies take.

use std::any::TypeId;
use std::borrow::Cow;

use bytes::Bytes;
use http_body_util::{Collected, Empty, Full};

use crate::memory::Allowance;
use crate::memory::{ReplayCharge, ReplayMemory};

/// The limits on the memory that saved request bodies take.
///
/// A streamed body that outgrows either limit is sent once and is then not retried. If its size hint
/// exceeds the limit of a call, nothing of it is kept at all. A body in memory is kept whole, and counts
/// for the bound over all bodies only. Either kind can be sent again as long as no byte of it was read.
///
/// The charges bound the memory that is held for replays, within a factor of 2, behind hyper's servers and
/// all other sources whose frames below 256 KiB are copied. Copies are charged by the capacity of the
/// buffers that they are in. A frame that is kept by reference counts with its length, and with at least 32
/// bytes; trailers count with their names and values, and 128 bytes for each and for the map. What cannot
/// be seen is not charged: the buffer that a longer frame is a part of, the size of an error, and what the
/// caller's own body holds.
///
/// ```
/// use reattempt_replay::{ReplayLimits, ReplayMemory};
/// let limits = ReplayLimits::default().per_call(1024 * 1024).memory(ReplayMemory::new(256 << 20));
/// # let _ = limits;
/// ```
#[derive(Debug, Clone)]
pub struct ReplayLimits {
    per_call: usize,
    memory: ReplayMemory,
    /// The types that a user has added to those that are in memory.
    in_memory: Vec<TypeId>,
}

impl ReplayLimits {
    /// Sets the most bytes that are kept of one body. Default 64 KiB, which suffices for nearly every call
    /// between services and is a small part of the memory. 0 keeps no body, and `usize::MAX` leaves
    /// only the bound over all bodies.
    pub fn per_call(self, bytes: usize) -> Self {
        Self { per_call: bytes, ..self }
    }

    /// Sets the bound over all bodies that are kept at one time. Default 64 MiB, shared by the clones of
    /// these limits.
    pub fn memory(self, memory: ReplayMemory) -> Self {
        Self { memory, ..self }
    }

    /// Gives each destination a share of the memory. Use [`for_call`](Self::for_call) for the limits of a
    /// call to one destination.
    #[must_use = "the limits are the same, and their memory is shared out from now on"]
    pub fn by_destination(self) -> Self {
        self.memory.require_shares();
        self
    }

    /// Returns the limits of one call. Its destination is computed only once a quarter of the memory is in
    /// use, for it can then add at most another quarter to what is taken. Bodies kept by the limits
    /// themselves add nothing from then on.
    ///
    /// ```
    /// use reattempt_replay::{ReplayLimits, ReplayMemory};
    ///
    /// let memory = ReplayMemory::new(400);
    /// let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    /// let first = limits.for_call(|| unreachable!("nothing is in use")).charge(100);
    /// let hanging = limits.for_call(|| "one.example".into());
    /// let second = hanging.charge(60);
    /// assert!(first.is_some() && second.is_some());
    /// assert!(hanging.charge(60).is_none(), "that would be more than another quarter");
    /// assert!(limits.for_call(|| "two.example".into()).charge(60).is_some());
    /// ```
    #[inline]
    pub fn for_call<'a>(&self, destination: impl FnOnce() -> Cow<'a, str>) -> Cow<'_, Self> {
        if self.memory.is_shared_out() {
            Cow::Owned(self.with_share(&destination()))
        } else {
            Cow::Borrowed(self)
        }
    }

    #[cold]
    fn with_share(&self, destination: &str) -> Self {
        Self { memory: self.memory.share(destination), ..self.clone() }
    }

    /// Adds the bodies of type `B` to those that are in memory, for which see
    /// [`ReplayBody::new`](crate::ReplayBody::new).
    ///
    /// `B` may come from anywhere, and needs only to keep two promises. Polling it never waits, has no
    /// effect and needs no runtime. Its frames pin no buffer that is much larger than the body.
    ///
    /// ```
    /// # use std::{convert::Infallible, pin::Pin, task::{Context, Poll}};
    /// use bytes::Bytes;
    /// use http_body::{Body, Frame};
    /// use reattempt_replay::{ReplayBody, ReplayLimits};
    ///
    /// struct Page(Option<Bytes>);
    ///
    /// impl Body for Page {
    ///     type Data = Bytes;
    ///     type Error = Infallible;
    ///
    ///     fn poll_frame(
    ///         mut self: Pin<&mut Self>,
    ///         _: &mut Context<'_>,
    ///     ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    ///         Poll::Ready(self.0.take().map(|data| Ok(Frame::data(data))))
    ///     }
    /// }
    ///
    /// let limits = ReplayLimits::default().in_memory::<Page>();
    /// let body = ReplayBody::new(Page(Some(Bytes::from_static(b"text"))), &limits);
    /// assert!(body.is_replayable());
    /// ```
    pub fn in_memory<B>(mut self) -> Self {
        self.in_memory.push(typeid::of::<B>());
        self
    }

    /// Returns `true` if bodies of type `B` are in memory.
    #[inline]
    pub(super) fn has_in_memory<B>(&self) -> bool {
        let id = typeid::of::<B>();
        let known = [
            TypeId::of::<Full<Bytes>>(),
            TypeId::of::<Empty<Bytes>>(),
            TypeId::of::<String>(),
            TypeId::of::<Collected<Bytes>>(),
        ];
        known.contains(&id) || self.in_memory.contains(&id)
    }

    /// Takes memory for a body of `bytes` that is kept otherwise than in a
    /// [`ReplayBody`](crate::ReplayBody). The limit of one call does not apply, for the body is in memory
    /// already. Returns `None` if the bound over all bodies does not suffice, or no body is kept.
    pub fn charge(&self, bytes: usize) -> Option<ReplayCharge> {
        (!self.keeps_nothing()).then(|| ReplayCharge::new(&self.memory, bytes)).flatten()
    }

    /// Returns `true` if no byte of a body may be kept. Only empty bodies can then be sent again.
    pub fn keeps_nothing(&self) -> bool {
        self.per_call == 0
    }

    /// Returns `true` if a streamed body of at least `length` bytes is too large to be kept.
    #[inline]
    pub(super) fn exclude(&self, length: u64) -> bool {
        usize::try_from(length).map_or(true, |length| length > self.per_call)
    }

    /// Takes `bytes` of the memory.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> Option<ReplayMemory> {
        self.memory.take(bytes).then(|| self.memory.clone())
    }

    /// The allowance of one streamed body of at least `length` bytes.
    pub(super) fn allowance(&self, length: u64) -> Allowance {
        let per_call = if self.exclude(length) { 0 } else { self.per_call };
        Allowance::new(per_call, self.memory.clone())
    }

    /// The allowance of a body in memory: only the bound over all bodies.
    pub(super) fn allowance_in_memory(&self) -> Allowance {
        Allowance::new(usize::MAX, self.memory.clone())
    }
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self { per_call: 64 * 1024, memory: ReplayMemory::default(), in_memory: Vec::new() }
    }
}
