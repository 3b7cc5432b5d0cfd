//! A request body that can be sent again: it streams to the client while its frames are kept.
//!
//! A retry layer clones the body before it is sent and sets the clone aside, unread. A frame is kept until each
//! reader has returned it. A body in memory is kept by reference. Any other body is polled only when a
//! reader is polled. Its frames are copied unless they are very long, because a frame may be a small part
//! of a large buffer.

mod reading;

use std::ops::RangeInclusive;
use std::pin::Pin;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

use crate::complete::{Complete, OneBuffer};
use crate::error::BoxError;
use crate::frames::Next;
use crate::limits::ReplayLimits;
use crate::memory::Allowance;
use crate::prefetched::Prefetched;
use crate::progress::{End, Length};
use crate::shared::{Keeping, Reader};
use crate::watch::ReplayWatch;

/// Data frames of streamed bodies are copied below this length. The read buffer of hyper's HTTP/1 server grows
/// to 408 KiB, and any frame may be a part of it.
const COPIED_BELOW: usize = 256 * 1024;

/// No length.
const NONE: RangeInclusive<u64> = RangeInclusive::new(1, 0);

/// Any length.
const ANY: RangeInclusive<u64> = 1..=u64::MAX;

pin_project! {
    /// A body that can be read more than once, from the first byte.
    ///
    /// Each value is one reader. [`try_clone`](ReplayBody::try_clone) makes another, which gets the
    /// same bytes and trailers, and an error at the place where it occurred.
    /// Readers may be polled at the same time, from different tasks. A frame is kept until the
    /// slowest reader has had it; a body with one reader is only passed through.
    ///
    /// The reader that is ahead gets the frames of the caller's body as they are. Readers behind it get the
    /// same bytes in the same order, but the frames may differ: frames below 256 KiB are copied one after the other
    /// into larger buffers, and empty ones are left out. Frames of a body in memory stay as they are.
    ///
    /// A body that outgrows its [`ReplayLimits`] is no error: the reader that is furthest on
    /// streams to the end, and only the readers behind it cannot go on
    /// ([`is_replayable`](ReplayBody::is_replayable) is false, and reading ends with
    /// [`ReplayError::NotKept`]).
    ///
    /// The size hint is the caller's own at the start, less what this reader has read, so that a
    /// second attempt is framed as the first was.
    ///
    /// A body that is empty, or one buffer [in memory](ReplayBody::new), is
    /// known in full from the start: its readers have nothing to share, and none is ever in the way of
    /// another.
    ///
    /// It is `Send` and `Sync` for every body that is `Send`. It allocates nothing for an empty body,
    /// at most once for any other that is known in full from the start (not even that where the
    /// compiler knows the body), twice for the rest, and again to keep frames or to let several readers
    /// wait.
    ///
    /// # Cancel safety
    ///
    /// A frame is either still to come or has been returned; dropping a reader loses nothing for
    /// the others, and wakes them if it was the one that waited for the caller's body.
    ///
    /// ```
    /// # use http_body_util::{BodyExt, Full};
    /// # use reattempt_replay::{ReplayBody, ReplayLimits};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let first = ReplayBody::new(Full::from("hello"), &ReplayLimits::default());
    /// let kept = first.try_clone().expect("nothing was read yet");
    /// assert_eq!(first.collect().await?.to_bytes(), "hello");
    /// assert_eq!(kept.collect().await?.to_bytes(), "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub struct ReplayBody<B> {
        #[pin]
        inner: Inner<B>,
    }
}

pin_project! {
    #[project = InnerProjected]
    enum Inner<B> {
        // Complete: every reader has it, and nothing is shared.
        Complete { complete: Complete },
        // Read once, by this reader alone. The wrapper makes a body that is only `Send` also `Sync`. It
        // forbids shared access to the body, so its end and length are noted after each poll.
        Once { end: End, rest: Length, #[pin] body: SyncWrapper<B> },
        Shared { reader: Reader<B> },
    }
}

impl<B> ReplayBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    /// Creates the first reader of `body`.
    ///
    /// A body that is at its end already can be cloned for ever and costs nothing. If `limits`
    /// allow no byte a call, any other body is passed through as by
    /// [`passthrough`](ReplayBody::passthrough).
    ///
    /// A body in memory is asked for its frame here and now, and each reader gets it by reference. These are
    /// `Full<Bytes>`, `Empty<Bytes>`, `Collected<Bytes>`, `String`, and the types that
    /// [`ReplayLimits::in_memory`] adds.
    ///
    /// Every other body is polled only when a reader is polled. If its first frame has the length of the body, it
    /// is asked at once for the next one, so that its end is known while the frame is sent.
    #[inline]
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self { inner: Inner::Complete { complete: Complete::Empty(body.size_hint()) } };
        }
        Self::of_unread(body, NONE, limits)
    }

    /// Creates the first reader of a body that may be one frame without giving its length, as encoders of
    /// single messages make them.
    ///
    /// When the first reader is first polled, and there is another, the body is asked for a second frame
    /// after the first. Two frames at most are so read at once.
    #[inline]
    pub fn read_ahead(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self::new(body, limits);
        }
        Self::of_unread(body, ANY, limits)
    }

    /// Creates the first reader of a body that is not at its end. Not inlined, so that callers without
    /// a body need no room for it.
    #[inline(never)]
    fn of_unread(body: B, may_be_all: RangeInclusive<u64>, limits: &ReplayLimits) -> Self {
        if limits.keeps_nothing() {
            return Self::passthrough(body);
        }
        if limits.has_in_memory::<B>() {
            return Self::in_memory(body, limits);
        }
        let hint = body.size_hint();
        let keeping = Keeping {
            prefetched: Prefetched::default(),
            copied_below: COPIED_BELOW,
            may_be_all: hint.exact().map_or(may_be_all, |length| length..=length),
        };
        Self::shared(Some(Box::pin(body)), &hint, limits.allowance(hint.lower()), keeping)
    }

    /// Creates the first reader of a body that is in memory, whatever its type.
    ///
    /// It is asked for its frames here and now, and they are kept by reference. For the promises that it has to
    /// keep, see [`ReplayLimits::in_memory`].
    #[inline]
    pub fn in_memory(body: B, limits: &ReplayLimits) -> Self {
        let hint = body.size_hint();
        // Known to the callers, and asked again for the compiler, which then finds that a body whose type it
        // knows need not lie on the heap.
        if limits.keeps_nothing() || body.is_end_stream() {
            return Self::new(body, limits);
        }
        let mut body = Box::pin(body);
        let (source, prefetched) = match Prefetched::poll_body(body.as_mut(), hint.exact()) {
            Ok(data) => {
                // First of all, for the same reason.
                drop(body);
                match OneBuffer::new(data, hint.exact().is_some(), limits) {
                    Ok(whole) => {
                        return Self {
                            inner: Inner::Complete { complete: Complete::Buffer(whole) },
                        };
                    }
                    Err(data) => (None, Prefetched::once(Some(Next::Data(data)))),
                }
            }
            Err(said) => (Some(body), said),
        };
        let keeping = Keeping { prefetched, copied_below: 0, may_be_all: NONE };
        Self::shared(source, &hint, limits.allowance_in_memory(), keeping)
    }

    fn shared(
        source: Option<Pin<Box<B>>>,
        hint: &SizeHint,
        allowance: Allowance,
        keeping: Keeping,
    ) -> Self {
        let reader = Reader::new(source, Length::new(hint), allowance, keeping);
        Self { inner: Inner::Shared { reader } }
    }

    /// Makes the readers of this body note whether they are polled, for
    /// [`was_polled`](ReplayBody::was_polled). To be called before the first clone is made.
    ///
    /// Readers of a body that is one buffer in memory otherwise share nothing. For them it costs an
    /// allocation.
    pub fn noting_polls(self, limits: &ReplayLimits) -> Self {
        let Inner::Complete { complete } = &self.inner else { return self };
        let Some(data) = complete.data().cloned() else { return self };
        let hint = complete.size_hint();
        // It gives back what it has taken of the memory, for the new reader to take.
        drop(self);
        let prefetched = Prefetched::once(Some(Next::Data(data)));
        let keeping = Keeping { prefetched, copied_below: 0, may_be_all: NONE };
        Self::shared(None, &hint, limits.allowance_in_memory(), keeping)
    }

    /// Creates the only reader of `body`, which is never kept. Allocates nothing.
    #[inline]
    pub fn passthrough(body: B) -> Self {
        let rest = Length::new(&body.size_hint());
        let end = End { ended: body.is_end_stream(), ..End::default() };
        Self { inner: Inner::Once { body: SyncWrapper::new(body), rest, end } }
    }
}

/// An empty request's body: tower-http's `FollowRedirect` makes one for the hop after a 303.
impl<B> Default for ReplayBody<B>
where
    B: Body<Data = Bytes> + Default,
    B::Error: Into<BoxError>,
{
    fn default() -> Self {
        Self::passthrough(B::default())
    }
}

impl<B> ReplayBody<B> {
    /// Creates another reader, which starts at the first byte.
    ///
    /// Returns `None` if that byte is gone: the body outgrew its limits, was made by
    /// [`passthrough`](ReplayBody::passthrough), or was read while it had a single reader. Also `None` if this
    /// reader was [cancelled](ReplayBody::cancel_others), or has returned the one buffer of a body in memory.
    #[inline]
    pub fn try_clone(&self) -> Option<Self> {
        let inner = match &self.inner {
            Inner::Complete { complete } => Inner::Complete { complete: complete.try_clone()? },
            Inner::Once { .. } => return None,
            Inner::Shared { reader } => Inner::Shared { reader: reader.try_clone()? },
        };
        Some(Self { inner })
    }

    /// Returns `true` if [`try_clone`](ReplayBody::try_clone) would succeed now. A reader that has read nothing can
    /// then be sent itself.
    pub fn is_replayable(&self) -> bool {
        match &self.inner {
            Inner::Complete { complete } => complete.is_replayable(),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.is_replayable(),
        }
    }

    /// Ends every other reader with [`ReplayError::Superseded`](crate::ReplayError::Superseded).
    ///
    /// Over HTTP/2 an upload may still be running when its attempt is retried. That upload then takes no more
    /// frames and holds none. Clones made afterwards are not affected. Does nothing if this reader
    /// cannot continue itself, or if the body is empty or one buffer in memory.
    pub fn cancel_others(&self) {
        if let Inner::Shared { reader } = &self.inner {
            reader.cancel_others();
        }
    }

    /// Returns `true` if a reader of this body, this one or another, has been polled since
    /// [`forget_polls`](ReplayBody::forget_polls) was called last.
    ///
    /// A client that failed to connect has not polled the body, unless an earlier connection carried it.
    /// `false` for an empty body, and for one that is one buffer in memory unless it was made by
    /// [`noting_polls`](ReplayBody::noting_polls).
    ///
    /// ```
    /// # use http_body_util::{BodyExt, Full};
    /// # use reattempt_replay::{ReplayBody, ReplayLimits};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let limits = ReplayLimits::default();
    /// let first = ReplayBody::new(Full::from("hello"), &limits).noting_polls(&limits);
    /// let kept = first.try_clone().expect("nothing was read yet");
    /// assert!(!kept.was_polled());
    /// first.collect().await?;
    /// assert!(kept.was_polled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn was_polled(&self) -> bool {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.was_polled(),
        }
    }

    /// Forgets that a reader has been polled, for another attempt.
    pub fn forget_polls(&self) {
        if let Inner::Shared { reader } = &self.inner {
            reader.forget_polls();
        }
    }

    /// Watches this reader, which may be moved or dropped meanwhile. The watch of a reader that shares nothing
    /// is never ready.
    pub fn watch(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch(),
        }
    }

    /// Watches the first reader of this body, which may have been moved into a request.
    ///
    /// Call it while this reader [is replayable](ReplayBody::is_replayable); later the watch reports the first
    /// reader as cut off.
    pub fn watch_first(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch_first(),
        }
    }

    /// Returns `true` if the caller's own body has returned an error to any reader.
    pub fn source_failed(&self) -> bool {
        match &self.inner {
            Inner::Complete { .. } => false,
            Inner::Once { end, .. } => end.has_failed(),
            Inner::Shared { reader } => reader.source_failed(),
        }
    }
}
