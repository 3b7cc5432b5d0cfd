//! The limits on kept bodies (bytes per call, and for all calls), and the in-memory types.

use std::any::TypeId;
use std::borrow::Cow;

use bytes::Bytes;
use http_body::SizeHint;
use http_body_util::{Collected, Empty, Full};

use crate::memory::{Allowance, ReplayCharge, ReplayMemory, least_charge};

/// The memory limits on kept request bodies: one per call, and one for all calls.
///
/// A streamed body that outgrows either limit is sent once and cannot be sent again. If the lower bound of its size
/// hint exceeds the per-call limit, none of it is kept. An in-memory body is kept whole, and only the limit for all
/// calls applies. The same is true for a body whose exact size hint equals the length of its first frame, such as a
/// boxed `Full`. Even beyond the limits, a body can be sent again if none of it has been read.
///
/// | kept | charge |
/// |---|---|
/// | copied frames | the capacity of the buffers that hold the copies |
/// | a frame kept by reference | its length, at least 32 bytes |
/// | trailers | names and values, plus 128 bytes per field, plus 128 bytes |
///
/// The charges differ from the memory actually held by at most a factor of 2. The exception is a frame of 256 KiB or
/// more that is a small slice of its buffer, which hyper's servers never produce. The rest of such a buffer, errors,
/// and memory inside the caller's body are not charged.
///
/// ```
/// # use reattempt_replay::{ReplayLimits, ReplayMemory};
/// let limits = ReplayLimits::default().per_call(1024 * 1024).memory(ReplayMemory::new(256 << 20));
/// # let _ = limits;
/// ```
#[derive(Debug, Clone)]
pub struct ReplayLimits {
    per_call: usize,
    memory: ReplayMemory,
    /// The user's additional in-memory types.
    in_memory: Vec<TypeId>,
}

impl ReplayLimits {
    /// Sets the maximum number of bytes kept for one streamed body.
    ///
    /// The default is 64 KiB. This is enough for nearly every call between services, and a thousand such bodies fit
    /// within the default [memory limit](Self::memory). With 0, no body is kept, not even an in-memory one. With
    /// `usize::MAX`, only the limit for all calls applies.
    pub fn per_call(self, bytes: usize) -> Self {
        Self { per_call: bytes, ..self }
    }

    /// Sets the memory limit for all bodies that are kept at the same time.
    ///
    /// The default is 64 MiB. Each value returned by [`default`](Self::default) has its own limit, which its clones
    /// share.
    pub fn memory(self, memory: ReplayMemory) -> Self {
        Self { memory, ..self }
    }

    /// Returns the maximum number of bytes kept for one streamed body.
    pub fn per_call_limit(&self) -> usize {
        self.per_call
    }

    /// Returns the memory limit for all bodies that are kept at the same time.
    pub fn memory_ref(&self) -> &ReplayMemory {
        &self.memory
    }

    /// Limits the bytes held for each destination to the amount of [memory](Self::memory) still free. This affects all
    /// `ReplayLimits` that use the same memory. See [`ReplayMemory`] for the resulting shares.
    ///
    /// Afterwards, get the limits for each call from [`for_call`](Self::for_call). Bodies with other limits can use
    /// only a quarter of the memory.
    #[must_use = "the limits are the same, and their memory is counted by destination from now on"]
    pub fn by_destination(self) -> Self {
        self.memory.count_destinations();
        self
    }

    /// Returns the limits for one call to `destination` with a body of this length.
    ///
    /// `destination` is not called if the body cannot exceed a quarter of the memory.
    ///
    /// ```
    /// # use reattempt_replay::{ReplayLimits, ReplayMemory};
    /// use http_body::SizeHint;
    ///
    /// let memory = ReplayMemory::new(400);
    /// let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    /// let length = SizeHint::with_exact(100);
    /// let first = limits.for_call(&length, || unreachable!("it fits the first quarter")).charge(100);
    /// let hanging = limits.for_call(&length, || "one.example".into());
    /// let second = hanging.charge(100);
    /// assert!(first.is_some() && second.is_some());
    /// assert!(hanging.charge(100).is_none(), "it would hold 200 bytes, and 100 would be free");
    /// assert!(limits.for_call(&length, || "two.example".into()).charge(100).is_some());
    /// ```
    #[inline(always)]
    pub fn for_call<'a>(&self, length: &SizeHint, destination: impl FnOnce() -> Cow<'a, str>) -> Cow<'_, Self> {
        let most =
            length.exact().map_or(self.per_call, |length| least_charge(usize::try_from(length).unwrap_or(usize::MAX)));
        if self.memory.passes_quarter(most) {
            Cow::Owned(self.of_destination(&destination()))
        } else {
            Cow::Borrowed(self)
        }
    }

    #[cold]
    fn of_destination(&self, name: &str) -> Self {
        Self { memory: self.memory.of_destination(name), ..self.clone() }
    }

    /// Adds `B` to the in-memory types: [`ReplayBody::new`](crate::ReplayBody::new) polls such bodies immediately and
    /// keeps their frames by reference.
    ///
    /// `B` must meet two requirements:
    ///
    /// - Polling it never waits, has no side effect, and needs no runtime.
    /// - Its frames do not keep a buffer alive that is much larger than the body.
    ///
    /// ```
    /// # use std::{convert::Infallible, pin::Pin, task::{Context, Poll}};
    /// use bytes::Bytes;
    /// use http_body::{Body, Frame};
    /// # use reattempt_replay::{ReplayBody, ReplayLimits};
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

    /// Returns `true` if `B` is an in-memory type.
    #[inline]
    pub(super) fn has_in_memory<B>(&self) -> bool {
        is_known_in_memory::<B>() || self.in_memory.contains(&typeid::of::<B>())
    }

    /// Charges `bytes` for an in-memory body that is kept outside a [`ReplayBody`](crate::ReplayBody).
    ///
    /// The per-call limit does not apply. Returns `None` if the limit for all calls would be exceeded, or if [no body
    /// is kept](Self::keeps_nothing).
    pub fn charge(&self, bytes: usize) -> Option<ReplayCharge> {
        (!self.keeps_nothing()).then(|| ReplayCharge::new(&self.memory, bytes)).flatten()
    }

    /// Returns `true` if the per-call limit is 0. Only empty bodies can then be sent again.
    pub fn keeps_nothing(&self) -> bool {
        self.per_call == 0
    }

    /// Returns `true` if a streamed body of at least `length` bytes is too large to be kept.
    #[inline]
    pub(super) fn exclude(&self, length: u64) -> bool {
        usize::try_from(length).map_or(true, |length| length > self.per_call)
    }

    /// Takes `bytes` from the memory, if available.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> Option<ReplayMemory> {
        self.memory.take(bytes).then(|| self.memory.clone())
    }

    /// Returns the allowance for a streamed body of at least `length` bytes.
    pub(super) fn allowance(&self, length: u64) -> Allowance {
        let per_call = if self.exclude(length) { 0 } else { self.per_call };
        Allowance::new(per_call, self.memory.clone())
    }

    /// Returns the allowance for an in-memory body, to which only the limit for all bodies applies.
    pub(super) fn allowance_in_memory(&self) -> Allowance {
        Allowance::new(usize::MAX, self.memory.clone())
    }
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self { per_call: 64 * 1024, memory: ReplayMemory::default(), in_memory: Vec::new() }
    }
}

/// Returns `true` if `B` is one of the types whose bodies are always in memory.
#[inline]
pub(super) fn is_known_in_memory<B>() -> bool {
    let known = [
        TypeId::of::<Full<Bytes>>(),
        TypeId::of::<Empty<Bytes>>(),
        TypeId::of::<String>(),
        TypeId::of::<Collected<Bytes>>(),
    ];
    known.contains(&typeid::of::<B>())
}
