//! The replayable request body, which streams to the client and keeps its frames.
//!
//! Before a retry layer sends the body, it clones the body and sets the clone aside, unread. A frame is kept until
//! every reader has returned it. Frames of an in-memory body are kept by reference. Any other body is polled only when
//! a reader is polled. Its frames below 256 KiB are copied, because a frame may be a small slice of a large buffer.

mod reading;

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
use crate::noted::Noted;
use crate::prefetched::Prefetched;
use crate::progress::{End, Length, length_of};
use crate::shared::{Keeping, Reader, Whole};
use crate::watch::ReplayWatch;

/// The length below which data frames of streamed bodies are copied. The read buffer of hyper's HTTP/1 server grows to
/// 408 KiB, and any frame may be a slice of it.
const COPIED_BELOW: usize = 256 * 1024;

/// The size of the buffer in which tonic encodes a message. A frame keeps all of it in memory.
const ENCODERS_BUFFER: usize = 8 * 1024;

pin_project! {
    /// A body that can be read more than once, from the first byte.
    ///
    /// Each value is one reader. [`try_clone`](ReplayBody::try_clone) creates another reader with the same bytes and
    /// trailers. Readers may be polled at the same time, from different tasks. A frame is kept until the slowest reader
    /// has returned it. With a single reader, the frames are passed through and not kept. If the caller's body fails,
    /// every reader returns the error at the same position.
    ///
    /// The leading reader returns the frames of the caller's body unchanged. Readers behind it return the same bytes,
    /// possibly split differently: frames below 256 KiB are merged into larger buffers, and empty frames are dropped.
    /// Frames of an in-memory body stay as they are.
    ///
    /// A body that outgrows its [`ReplayLimits`] does not fail. The leading reader streams to the end. For the readers
    /// behind it, [`is_replayable`](ReplayBody::is_replayable) returns `false` and reading ends with
    /// [`ReplayError::NotKept`].
    ///
    /// The size hint is that of the caller's body, minus the bytes that this reader has returned. So a second attempt
    /// has the same framing as the first. There is one exception: if the body is a single in-memory buffer and the
    /// caller's hint was not exact, the size hint has no upper bound.
    ///
    /// Readers share no state if the body is empty or a single [in-memory](ReplayBody::new) buffer.
    ///
    /// The type is `Send` and `Sync` for every body that is `Send`. Creating a value allocates nothing for an empty or
    /// passed-through body, at most once for a single in-memory buffer, and twice for any other body. Kept frames and
    /// waiting readers allocate more.
    ///
    /// # Cancel safety
    ///
    /// Dropping a reader, or the future that polls it, loses no frame for the other readers. If the dropped reader was
    /// waiting for the caller's body, the others are woken.
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
        // The whole body: every reader has it, and nothing is shared.
        Complete { complete: Complete },
        // A body that is read once, by this reader alone. The wrapper makes a body that is only `Send` also `Sync`, but
        // forbids shared access to it. So the end and the length are stored after each poll.
        Once { end: End, rest: Length, #[pin] body: SyncWrapper<B> },
        Shared { reader: Reader<B> },
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> ReplayBody<B> {
    /// Creates the first reader of `body`.
    ///
    /// | body | treatment |
    /// |---|---|
    /// | already at its end | can always be cloned, and is not charged |
    /// | any other, if `limits` allow 0 bytes per call | [passed through](ReplayBody::passthrough) |
    /// | in memory | polled now; each reader gets the frames by reference |
    /// | any other | polled when a reader is polled |
    ///
    /// In-memory bodies are `Full<Bytes>`, `Empty<Bytes>`, `Collected<Bytes>`, `String`, and the types that
    /// [`ReplayLimits::in_memory`] adds.
    ///
    /// If the first frame of a streamed body has the body's exact length, it is kept whole, whatever the per-call
    /// limit. The body is then polled once more, so that its end is known while the frame is sent.
    #[inline]
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            let complete = Complete::Empty(body.size_hint());
            return Self { inner: Inner::Complete { complete } };
        }
        Self::of_unread(body, Whole::Unknown, limits)
    }

    /// Creates the first reader of a body that may have only one frame although its size hint is not exact.
    /// Single-message encoders, such as tonic's, create such bodies.
    ///
    /// If a clone exists, the body is polled once more right after its first frame, whatever the length of that frame.
    /// At most two frames are read ahead in this way.
    #[inline]
    pub fn read_ahead(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self::new(body, limits);
        }
        Self::of_unread(body, Whole::Any, limits)
    }

    /// Like [`read_ahead`](Self::read_ahead), creates the first reader of a body that may have only one frame. It also
    /// polls the body now, at most twice. Unless it is empty, its readers record their polls, as with
    /// [`noting_polls`](Self::noting_polls).
    ///
    /// A body with a single frame, within the per-call limit, is shared by reference. It is charged with at least 8
    /// KiB, because an encoder's frame keeps the encoder's buffer in memory. Any other body is read as with
    /// `read_ahead`.
    ///
    /// Call this function only where the body may be polled, such as inside the runtime that the body needs.
    pub fn read_ahead_now(mut body: B, limits: &ReplayLimits) -> Self
    where
        B: Unpin,
    {
        if limits.keeps_nothing() || body.is_end_stream() {
            return Self::new(body, limits);
        }
        let hint = body.size_hint();
        let (source, prefetched) = match Prefetched::poll_body(Pin::new(&mut body), hint.exact()) {
            Ok(data) => {
                drop(body);
                let fits = !limits.exclude(length_of(&data));
                match limits.charge(data.len().max(ENCODERS_BUFFER)).filter(|_| fits) {
                    Some(charge) => return Self::complete(Complete::Noted(Noted::new(hint, Some((data, charge))))),
                    None => (None, Prefetched::once(Some(Next::Data(data)))),
                }
            }
            Err(answer) => (Some(Box::pin(body)), answer),
        };
        let whole = hint.exact().map_or(Whole::Any, Whole::Exact);
        let keeping = Keeping { prefetched: prefetched.copied(COPIED_BELOW), copied_below: COPIED_BELOW, whole };
        Self::shared(source, &hint, limits.allowance(hint.lower()), keeping)
    }

    /// Creates the first reader of a body that is not at its end. Not inlined, so that callers without a body reserve
    /// no stack space for it.
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

    /// Creates the first reader of an in-memory body of any type.
    ///
    /// The body is polled now, at most twice, and its frames are kept by reference. The body must meet the requirements
    /// of [`ReplayLimits::in_memory`].
    #[inline]
    pub fn in_memory(body: B, limits: &ReplayLimits) -> Self {
        let hint = body.size_hint();
        // The callers have already checked this. The second check lets the compiler keep a body of a known type off the
        // heap.
        if limits.keeps_nothing() || body.is_end_stream() {
            return Self::new(body, limits);
        }
        let mut body = Box::pin(body);
        let (source, prefetched) = match Prefetched::poll_body(body.as_mut(), hint.exact()) {
            Ok(data) => {
                // Dropped first, for the same reason.
                drop(body);
                match OneBuffer::new(data, hint.exact().is_some(), limits) {
                    Ok(whole) => return Self::complete(Complete::Buffer(whole)),
                    Err(data) => (None, Prefetched::once(Some(Next::Data(data)))),
                }
            }
            Err(answer) => (Some(body), answer),
        };
        let keeping = Keeping { prefetched, copied_below: 0, whole: Whole::Unknown };
        Self::shared(source, &hint, limits.allowance_in_memory(), keeping)
    }

    #[inline(always)]
    fn complete(complete: Complete) -> Self {
        Self { inner: Inner::Complete { complete } }
    }

    fn shared(source: Option<Pin<Box<B>>>, hint: &SizeHint, allowance: Allowance, keeping: Keeping) -> Self {
        let reader = Reader::new(source, Length::new(hint), allowance, keeping);
        Self { inner: Inner::Shared { reader } }
    }

    /// Makes the readers of this body record their polls for [`was_polled`](ReplayBody::was_polled). Call it before
    /// making the first clone.
    ///
    /// This affects only bodies whose readers otherwise share no state. The thread's next call reuses the memory for
    /// the record.
    // Not inlined, like the drop of its record, because inlining would slow down the code for other bodies.
    #[inline(never)]
    pub fn noting_polls(self) -> Self {
        match self.inner {
            Inner::Complete { complete } => Self::complete(complete.noting()),
            inner => Self { inner },
        }
    }

    /// Creates a stand-in for a reader that could not be created. Reading it fails with
    /// [`ReplayError::NotKept`](crate::ReplayError::NotKept).
    #[inline]
    pub fn not_kept() -> Self {
        Self { inner: Inner::Complete { complete: Complete::NotKept } }
    }

    /// Creates the only reader of `body`, without keeping frames. It does not allocate.
    #[inline]
    pub fn passthrough(body: B) -> Self {
        let rest = Length::new(&body.size_hint());
        let end = End { ended: body.is_end_stream(), ..End::default() };
        Self { inner: Inner::Once { body: SyncWrapper::new(body), rest, end } }
    }
}

/// An empty body, which tower-http's `FollowRedirect` needs for the request after a 303.
impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Default> Default for ReplayBody<B> {
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
    /// - the body is a single in-memory buffer, and this reader has already returned it.
    #[inline]
    pub fn try_clone(&self) -> Option<Self> {
        let inner = match &self.inner {
            Inner::Complete { complete } => Inner::Complete { complete: complete.try_clone()? },
            Inner::Once { .. } => return None,
            Inner::Shared { reader } => Inner::Shared { reader: reader.try_clone()? },
        };
        Some(Self { inner })
    }

    /// Returns `true` if [`try_clone`](ReplayBody::try_clone) would succeed. If this reader has also returned nothing
    /// yet, it can be sent itself, without a clone.
    pub fn is_replayable(&self) -> bool {
        match &self.inner {
            Inner::Complete { complete } => complete.is_replayable(),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.is_replayable(),
        }
    }

    /// Ends every other reader with [`ReplayError::Superseded`](crate::ReplayError::Superseded).
    ///
    /// Over HTTP/2, an upload may still be running when its attempt is retried. After this method is called, that
    /// upload gets no more frames, and no frame is kept for it. Later clones are not affected.
    ///
    /// This has no effect if this reader cannot continue, or if the body is empty or a single in-memory buffer.
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
    /// An empty body is treated as polled once a client has read its size hint or its end, because the client need not
    /// poll it.
    ///
    /// The result is always `false` for a body that is [passed through](ReplayBody::passthrough). For an empty body or
    /// a single in-memory buffer it is `false` unless [`noting_polls`](ReplayBody::noting_polls) was called.
    ///
    /// ```
    /// # use http_body_util::{BodyExt, Full};
    /// # use reattempt_replay::{ReplayBody, ReplayLimits};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let limits = ReplayLimits::default();
    /// let first = ReplayBody::new(Full::from("hello"), &limits).noting_polls();
    /// let kept = first.try_clone().expect("nothing was read yet");
    /// assert!(!kept.was_polled());
    /// first.collect().await?;
    /// assert!(kept.was_polled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn was_polled(&self) -> bool {
        match &self.inner {
            Inner::Complete { complete } => complete.noted().is_some_and(Noted::was_inspected),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.was_polled(),
        }
    }

    /// Clears the record of polls. Call it before another attempt.
    pub fn forget_polls(&self) {
        match &self.inner {
            Inner::Complete { complete } => {
                if let Some(noted) = complete.noted() {
                    noted.set_inspected(false);
                }
            }
            Inner::Once { .. } => {}
            Inner::Shared { reader } => reader.forget_polls(),
        }
    }

    /// Creates a watch on this reader. The reader may be moved or dropped afterwards. If it shares no state with other
    /// readers, the watch never becomes ready.
    pub fn watch(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch(),
        }
    }

    /// Creates a watch on this body's first reader, even if that reader has already been moved into a request.
    ///
    /// Call it while this reader [is replayable](ReplayBody::is_replayable). Later, the watch may report the first
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
