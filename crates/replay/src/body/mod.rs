//! A request body that can be sent again: it streams to the client while its frames are kept.
//!
//! A retry layer clones the body before it is sent and sets the clone aside, unread. A frame is kept until each
//! reader has returned it. The frames of a body in memory are kept by reference. Any other body is polled only
//! when a reader is polled. Its frames below 256 KiB are copied, because a frame may be a small part of a large
//! buffer.

mod reading;

use std::pin::Pin;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

use crate::complete::{Complete, OneBuffer};
use crate::error::BoxError;
use crate::frames::Next;
use crate::inspected::Inspected;
use crate::limits::ReplayLimits;
use crate::memory::Allowance;
use crate::prefetched::Prefetched;
use crate::progress::{End, Length};
use crate::shared::{Keeping, Reader, Whole};
use crate::watch::ReplayWatch;

/// Data frames of streamed bodies are copied below this length. The read buffer of hyper's HTTP/1 server grows
/// to 408 KiB, and any frame may be a part of it.
const COPIED_BELOW: usize = 256 * 1024;

pin_project! {
    /// A body that can be read more than once, from the first byte.
    ///
    /// Each value is one reader. [`try_clone`](ReplayBody::try_clone) creates another one, which returns the
    /// same bytes and trailers. If the caller's body fails, each reader returns the error at the same place.
    /// Readers may be polled at the same time, from different tasks. A frame is kept until the slowest reader
    /// has returned it. A body with one reader is passed through.
    ///
    /// The reader that is ahead returns the frames of the caller's body as they are. Readers behind it return the same
    /// bytes, but may split them differently. Frames below 256 KiB are copied into larger buffers, and empty frames are
    /// left out. Frames of a body in memory stay as they are.
    ///
    /// A body that outgrows its [`ReplayLimits`] does not fail. The reader that is furthest ahead streams to
    /// the end. For the readers behind it, [`is_replayable`](ReplayBody::is_replayable) returns `false` and
    /// reading ends with [`ReplayError::NotKept`].
    ///
    /// The size hint is that of the caller's body, less the bytes that this reader has returned. So a second
    /// attempt is framed as the first one. One buffer in memory without an exact hint has a hint without bounds.
    ///
    /// Readers share no data if the body is empty, or is one buffer [in memory](ReplayBody::new).
    ///
    /// The type is `Send` and `Sync` for every body that is `Send`. Creating a value allocates nothing for a body that
    /// is empty or passed through. It allocates at most once for one buffer in memory, and twice for any other body.
    /// Kept frames and waiting readers allocate more.
    ///
    /// # Cancel safety
    ///
    /// Dropping a reader, or the future that polls it, loses no frame for the other readers. If the dropped
    /// reader waited for the caller's body, the others are woken.
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
        // Read once, by this reader alone. The wrapper makes a body that is only `Send` also `Sync`, but forbids
        // shared access to it. So the end and the length are stored after each poll.
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
    /// | body | treatment |
    /// |---|---|
    /// | at its end already | can always be cloned, and is not charged |
    /// | any other, if `limits` allow 0 bytes a call | [passed through](ReplayBody::passthrough) |
    /// | in memory | polled now; each reader gets the frames by reference |
    /// | any other | polled when a reader is polled |
    ///
    /// In memory are `Full<Bytes>`, `Empty<Bytes>`, `Collected<Bytes>`, `String`, and the types that
    /// [`ReplayLimits::in_memory`] adds.
    ///
    /// If the first frame of a streamed body has the body's exact length, it is kept whole, whatever the limit for each
    /// call. The body is polled once more at once, so that its end is known while the frame is sent.
    #[inline]
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            let complete = Complete::Empty(body.size_hint(), Inspected::default());
            return Self { inner: Inner::Complete { complete } };
        }
        Self::of_unread(body, Whole::Unknown, limits)
    }

    /// Creates the first reader of a body that may consist of one frame although its size hint is not exact.
    /// Encoders of single messages, such as tonic's, create such bodies.
    ///
    /// If a clone exists, the body is polled once more right after its first frame of any length. At most two frames
    /// are read ahead in this way.
    #[inline]
    pub fn read_ahead(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self::new(body, limits);
        }
        Self::of_unread(body, Whole::Any, limits)
    }

    /// Creates the first reader of a body that is not at its end. Not inlined, so that callers without
    /// a body need no room for it.
    #[inline(never)]
    fn of_unread(body: B, whole: Whole, limits: &ReplayLimits) -> Self {
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
            whole: hint.exact().map_or(whole, Whole::Exact),
        };
        Self::shared(Some(Box::pin(body)), &hint, limits.allowance(hint.lower()), keeping)
    }

    /// Creates the first reader of a body of any type that is in memory.
    ///
    /// The body is polled now, at most twice, and its frames are kept by reference. The body must keep the promises
    /// listed at [`ReplayLimits::in_memory`].
    #[inline]
    pub fn in_memory(body: B, limits: &ReplayLimits) -> Self {
        let hint = body.size_hint();
        // The callers have checked this. The second check lets the compiler keep a body of a known type off the heap.
        if limits.keeps_nothing() || body.is_end_stream() {
            return Self::new(body, limits);
        }
        let mut body = Box::pin(body);
        let (source, prefetched) = match Prefetched::poll_body(body.as_mut(), hint.exact()) {
            Ok(data) => {
                // Before anything else, for the same reason.
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
            Err(answer) => (Some(body), answer),
        };
        let keeping = Keeping { prefetched, copied_below: 0, whole: Whole::Unknown };
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

    /// Makes the readers of this body record their polls, for [`was_polled`](ReplayBody::was_polled). Call it before
    /// the first clone is made.
    ///
    /// Only bodies whose readers otherwise share nothing are affected. For one buffer in memory it allocates once. The
    /// mark of an empty body is used again by the next call of the thread.
    pub fn noting_polls(self, limits: &ReplayLimits) -> Self {
        let Inner::Complete { complete } = &self.inner else { return self };
        if let Complete::Empty(hint, _) = complete {
            let complete = Complete::Empty(*hint, Inspected::recording());
            return Self { inner: Inner::Complete { complete } };
        }
        let Some(data) = complete.data().cloned() else { return self };
        let hint = complete.size_hint();
        // Gives its charge back, for the new reader to take.
        drop(self);
        let prefetched = Prefetched::once(Some(Next::Data(data)));
        let keeping = Keeping { prefetched, copied_below: 0, whole: Whole::Unknown };
        Self::shared(None, &hint, limits.allowance_in_memory(), keeping)
    }

    /// Creates the only reader of `body`, whose frames are never kept. It does not allocate.
    #[inline]
    pub fn passthrough(body: B) -> Self {
        let rest = Length::new(&body.size_hint());
        let end = End { ended: body.is_end_stream(), ..End::default() };
        Self { inner: Inner::Once { body: SyncWrapper::new(body), rest, end } }
    }
}

/// An empty body. tower-http's `FollowRedirect` needs one for the request that follows a 303.
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
    /// Returns `None` in these cases:
    ///
    /// - the body outgrew its limits, or was read while it had a single reader;
    /// - it was created by [`passthrough`](ReplayBody::passthrough);
    /// - this reader was [cancelled](ReplayBody::cancel_others);
    /// - the body is one buffer in memory, which this reader has returned.
    #[inline]
    pub fn try_clone(&self) -> Option<Self> {
        let inner = match &self.inner {
            Inner::Complete { complete } => Inner::Complete { complete: complete.try_clone()? },
            Inner::Once { .. } => return None,
            Inner::Shared { reader } => Inner::Shared { reader: reader.try_clone()? },
        };
        Some(Self { inner })
    }

    /// Returns `true` if [`try_clone`](ReplayBody::try_clone) would succeed now. If this reader has returned
    /// nothing yet, it can be sent itself.
    pub fn is_replayable(&self) -> bool {
        match &self.inner {
            Inner::Complete { complete } => complete.is_replayable(),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.is_replayable(),
        }
    }

    /// Ends every other reader with [`ReplayError::Superseded`](crate::ReplayError::Superseded).
    ///
    /// Over HTTP/2 an upload may still be running when its attempt is retried. After this call it takes no more frames,
    /// and no frame is kept for it. Clones made afterwards are not affected.
    ///
    /// It does nothing if this reader cannot continue, or if the body is empty or one buffer in memory.
    pub fn cancel_others(&self) {
        if let Inner::Shared { reader } = &self.inner {
            reader.cancel_others();
        }
    }

    /// Returns `true` if any reader of this body has been polled since
    /// [`forget_polls`](ReplayBody::forget_polls) was last called.
    ///
    /// A client polls the body only after it has connected. If a connection fails and the body was polled, an earlier
    /// connection may have carried the request.
    ///
    /// An empty body counts as polled once its size or its end was asked for, because a client need not poll it.
    ///
    /// It is always `false` for a body that is [passed through](ReplayBody::passthrough). For a body that is empty or
    /// one buffer in memory it is `false` unless the body was made by [`noting_polls`](ReplayBody::noting_polls).
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
            Inner::Complete { complete } => complete.inspected().is_some_and(Inspected::get),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.was_polled(),
        }
    }

    /// Forgets that a reader has been polled. Call it before another attempt.
    pub fn forget_polls(&self) {
        match &self.inner {
            Inner::Complete { complete } => {
                complete.inspected().into_iter().for_each(|inspected| inspected.set(false));
            }
            Inner::Once { .. } => {}
            Inner::Shared { reader } => reader.forget_polls(),
        }
    }

    /// Creates a watch on this reader. The reader may be moved or dropped afterwards. If it shares nothing with other
    /// readers, the watch is never ready.
    pub fn watch(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch(),
        }
    }

    /// Creates a watch on the first reader of this body, even if that reader is in a request.
    ///
    /// Call it while this reader [is replayable](ReplayBody::is_replayable). Later the watch may report the first
    /// reader as cut off although it can continue.
    pub fn watch_first(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch_first(),
        }
    }

    /// Returns `true` if the caller's body has returned an error to any reader, or has panicked.
    pub fn source_failed(&self) -> bool {
        match &self.inner {
            Inner::Complete { .. } => false,
            Inner::Once { end, .. } => end.has_failed(),
            Inner::Shared { reader } => reader.source_failed(),
        }
    }
}
