//! The replayable request body, which keeps its frames while it streams them to the client.
//!
//! Before a retry layer sends a body, it keeps an unread clone. A frame is kept until every reader has returned it.
//! Frames of in-memory bodies are kept by reference. Any other body is polled only when a reader is polled. Its frames
//! below 256 KiB are copied, because a frame may be a small slice of a large buffer.

// structure(file-length): one public type, most of it docs.

mod reading;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

use crate::complete::{Complete, OneBuffer};
use crate::error::BoxError;
use crate::frames::Next;
use crate::limits::{ReplayLimits, is_known_in_memory};
use crate::memory::Allowance;
use crate::noted::Noted;
use crate::prefetched::Prefetched;
use crate::progress::{End, Length, length_of};
use crate::shared::{Keeping, Reader, Whole};
use crate::source_watch::SourceWatch;
use crate::upload::{UploadError, UploadReader, source_of};
use crate::watch::ReplayWatch;

/// The length below which data frames of streamed bodies are copied. The read buffer of hyper's HTTP/1 server grows to
/// 408 KiB, and any frame may be a slice of it.
const COPIED_BELOW: usize = 256 * 1024;

/// The size of the buffer in which tonic encodes a message. A frame keeps the whole buffer in memory.
const ENCODERS_BUFFER: usize = 8 * 1024;

pin_project! {
    /// A request body that can be read more than once, each time from the first byte.
    ///
    /// Each value is one reader. [`try_clone`](ReplayBody::try_clone) creates another reader of the same bytes and
    /// trailers. Readers may be polled concurrently, from different tasks. A frame is kept until the slowest reader has
    /// returned it. With a single reader, frames are passed through without being kept. If the caller's body fails,
    /// every reader returns the error at the same position.
    ///
    /// The leading reader returns the frames of the caller's body unchanged. Readers behind it return the same bytes,
    /// possibly split differently: frames below 256 KiB are merged into larger buffers, and empty frames are dropped.
    /// Frames of an in-memory body are not changed.
    ///
    /// A body that outgrows its [`ReplayLimits`] does not fail. The leading reader continues to the end. For the
    /// readers behind it, [`is_replayable`](ReplayBody::is_replayable) returns `false` and reading ends with
    /// [`ReplayError::NotKept`].
    ///
    /// The size hint is that of the caller's body, minus the bytes that this reader has returned. A second attempt
    /// therefore has the same framing as the first. The exception is a single in-memory buffer for which the caller's
    /// hint was not exact: its size hint has no upper bound.
    ///
    /// Of an [`UploadBody`](crate::UploadBody), nothing is kept: each reader opens it. It can always be sent again.
    ///
    /// Readers share no state if the body is empty or a single [in-memory](ReplayBody::new) buffer.
    ///
    /// The type is `Send` and `Sync` for every body that is `Send`. Creating a value allocates nothing for an empty or
    /// passed-through body, at most once for a single in-memory buffer or an upload, and twice for any other body.
    /// Kept frames and waiting readers need further allocations.
    ///
    /// # Cancel safety
    ///
    /// Dropping a reader, or the future that polls it, does not lose frames for the other readers. If the dropped
    /// reader was waiting for the caller's body, the others are woken.
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
        // The whole body. Every reader holds all of it, and no state is shared.
        Complete { complete: Complete },
        // A body that is read once, by this reader alone. The wrapper makes a `Send` body `Sync`, but forbids shared
        // access to it. The end and the length are therefore stored after each poll.
        Once { end: End, rest: Length, #[pin] body: SyncWrapper<B> },
        Shared { reader: Reader<B> },
        // A body that each reader opens for itself.
        Upload { reader: UploadReader },
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> ReplayBody<B> {
    /// Creates the first reader of `body`.
    ///
    /// | body | treatment |
    /// |---|---|
    /// | already at its end | can always be cloned, without a charge |
    /// | an unread [`UploadBody`](crate::UploadBody), also inside transparent wrappers | each reader opens it; `limits` do not apply |
    /// | any other, if `limits` allow 0 bytes per call | [passed through](ReplayBody::passthrough) |
    /// | in memory | polled immediately; each reader gets the frames by reference |
    /// | any other | polled when a reader is polled |
    ///
    /// In-memory bodies are `Full<Bytes>`, `Empty<Bytes>`, `Collected<Bytes>`, `String`, and the types that
    /// [`ReplayLimits::in_memory`] adds.
    ///
    /// If the first frame of a streamed body has the body's exact length, it is kept whole, regardless of the per-call
    /// limit. The body is then polled once more, so that its end is known while the frame is being sent.
    #[inline]
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            let complete = Complete::Empty(body.size_hint());
            return Self { inner: Inner::Complete { complete } };
        }
        Self::of_unread(body, Whole::Unknown, limits)
    }

    /// Creates the first reader of a body that may consist of a single frame, even though its size hint is not exact.
    /// Encoders of single messages, such as tonic's, create such bodies.
    ///
    /// If a clone exists, the body is polled once more right after its first frame, regardless of that frame's length.
    /// At most two frames are read ahead in this way.
    #[inline]
    pub fn read_ahead(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self::new(body, limits);
        }
        Self::of_unread(body, Whole::Any, limits)
    }

    /// Works like [`read_ahead`](Self::read_ahead), but polls the body immediately, at most twice. Unless the body is
    /// empty, its readers record their polls, as with [`noting_polls`](Self::noting_polls).
    ///
    /// A body with a single frame within the per-call limit is shared by reference. It is charged at least 8 KiB,
    /// because an encoder's frame keeps the encoder's buffer in memory. Any other body is read as with `read_ahead`.
    ///
    /// Call this function only where the body may be polled, for example inside the runtime that it needs.
    pub fn read_ahead_now(mut body: B, limits: &ReplayLimits) -> Self
    where
        B: Unpin,
    {
        if limits.keeps_nothing() || body.is_end_stream() || Self::is_upload_body(&body) {
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

    /// Creates the first reader of a body that is not at its end. Not inlined, so that callers without a body do not
    /// reserve stack space for one.
    #[inline(never)]
    fn of_unread(body: B, whole: Whole, limits: &ReplayLimits) -> Self {
        if let Some(reader) = Self::upload_reader(&body) {
            return Self { inner: Inner::Upload { reader } };
        }
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
    /// The body is polled immediately, at most twice, and its frames are kept by reference. The body must meet the
    /// requirements of [`ReplayLimits::in_memory`].
    #[inline]
    pub fn in_memory(body: B, limits: &ReplayLimits) -> Self {
        let hint = body.size_hint();
        // The callers have already checked this. Checking again lets the compiler keep a body of a known type off the
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

    /// Returns `true` if [`new`](Self::new) would find an [`UploadBody`](crate::UploadBody) in `body`, which can be
    /// sent again although nothing of it is kept.
    #[inline]
    pub fn is_upload_body(body: &B) -> bool {
        !is_known_in_memory::<B>() && source_of(body).is_some()
    }

    #[inline]
    fn upload_reader(body: &B) -> Option<UploadReader> {
        if is_known_in_memory::<B>() { None } else { source_of(body).map(UploadReader::new) }
    }

    /// Makes a body that is [passed through](Self::passthrough) observable by [`watch_source`](Self::watch_source),
    /// which allocates twice. Any other body is returned unchanged.
    pub fn watched(self) -> Self {
        let body = match self.inner {
            Inner::Once { body, .. } if !Self::is_always_in_memory() => body.into_inner(),
            inner => return Self { inner },
        };
        if body.is_end_stream() {
            return Self::passthrough(body);
        }
        let (hint, limits) = (body.size_hint(), ReplayLimits::default().per_call(0));
        let keeping = Keeping { prefetched: Prefetched::default(), copied_below: 0, whole: Whole::Unknown };
        Self::shared(Some(Box::pin(body)), &hint, limits.allowance(0), keeping)
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
    /// creating the first clone.
    ///
    /// This affects only bodies whose readers otherwise share no state. The record's memory is reused by the thread's
    /// next call.
    // Not inlined, like dropping the record, because inlining would slow down the code for other bodies.
    #[inline(never)]
    pub fn noting_polls(self) -> Self {
        match self.inner {
            Inner::Complete { complete } => Self::complete(complete.noting()),
            inner => Self { inner },
        }
    }

    /// Creates a placeholder for a reader that could not be created. Reading it fails with
    /// [`ReplayError::NotKept`](crate::ReplayError::NotKept).
    #[inline]
    pub fn not_kept() -> Self {
        Self { inner: Inner::Complete { complete: Complete::NotKept } }
    }

    /// Creates the only reader of `body`, without keeping frames. This does not allocate.
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
    /// Returns `None` if:
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
            Inner::Upload { reader } => Inner::Upload { reader: reader.try_clone()? },
        };
        Some(Self { inner })
    }

    /// Returns `true` if [`try_clone`](ReplayBody::try_clone) would succeed. If this reader has also returned nothing
    /// yet, it can be sent without being cloned.
    pub fn is_replayable(&self) -> bool {
        match &self.inner {
            Inner::Complete { complete } => complete.is_replayable(),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.is_replayable(),
            Inner::Upload { reader } => reader.is_replayable(),
        }
    }

    /// Ends every other reader with [`ReplayError::Superseded`](crate::ReplayError::Superseded).
    ///
    /// Over HTTP/2, an upload may still be running when its attempt is retried. After this call, that upload gets no
    /// more frames, and none are kept for it. Later clones are not affected.
    ///
    /// Has no effect if this reader cannot continue, or if the body is empty or a single in-memory buffer.
    pub fn cancel_others(&self) {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } => {}
            Inner::Shared { reader } => reader.cancel_others(),
            Inner::Upload { reader } => reader.cancel_others(),
        }
    }

    /// Returns the time limit for [`poll_open`](Self::poll_open), or `None` if this is no reader of an
    /// [`UploadBody`](crate::UploadBody).
    pub fn open_within(&self) -> Option<Duration> {
        match &self.inner {
            Inner::Upload { reader } => Some(reader.open_within()),
            _ => None,
        }
    }

    /// Opens the [`UploadBody`](crate::UploadBody) that this reader reads, before the reader is sent.
    ///
    /// Any other body, and one that is open, is ready at once.
    ///
    /// # Errors
    ///
    /// Returns the error of an opening that failed. The reader, and a clone made from it, should then not be sent.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if it is not polled again: the opening goes on with the next poll of this reader.
    pub fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        match &mut self.inner {
            Inner::Upload { reader } => reader.poll_open(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Returns `true` if any reader of this body has been polled since
    /// [`forget_polls`](ReplayBody::forget_polls) was last called.
    ///
    /// A client polls the body only after it has connected. If a connection attempt fails although the body was polled,
    /// an earlier connection may have carried the request.
    ///
    /// An empty body counts as polled once a client has checked its size hint or its end, because clients need not poll
    /// it.
    ///
    /// The result is always `false` for a body that is [passed through](ReplayBody::passthrough). For an empty body or
    /// a single in-memory buffer, it is `false` unless [`noting_polls`](ReplayBody::noting_polls) was called.
    /// [`note_if_alone`](ReplayBody::note_if_alone) counts as a poll.
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
            Inner::Upload { reader } => reader.was_polled(),
        }
    }

    /// Records a poll if every other reader was dropped.
    ///
    /// Call it on the kept reader while an attempt is in flight. A service that has dropped the attempt's reader has
    /// sent another body, or none, and nothing shows how far that came.
    pub fn note_if_alone(&self) {
        match &self.inner {
            Inner::Complete { complete } => complete.noted().into_iter().for_each(Noted::note_if_alone),
            Inner::Once { .. } => {}
            Inner::Shared { reader } => reader.note_if_alone(),
            Inner::Upload { reader } => reader.note_if_alone(),
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
            Inner::Upload { reader } => reader.forget_polls(),
        }
    }

    /// Creates a watch on this reader. The reader may be moved or dropped afterwards. If it shares no state with other
    /// readers, the watch never becomes ready.
    pub fn watch(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } | Inner::Upload { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch(),
        }
    }

    /// Creates a watch on this body's first reader, even if that reader has already been moved into a request.
    ///
    /// Call it while this reader [is replayable](ReplayBody::is_replayable). Otherwise the watch may report the first
    /// reader as cut off although it can continue.
    pub fn watch_first(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Complete { .. } | Inner::Once { .. } | Inner::Upload { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch_first(),
        }
    }

    /// Returns `true` if bodies of this type are always [in memory](Self::new), so that no one waits for them.
    #[inline]
    pub fn is_always_in_memory() -> bool {
        is_known_in_memory::<B>()
    }

    /// Creates a watch on the caller's body, which shows if an upload waits for it. Returns `None` if the body is
    /// empty, a single in-memory buffer, or [passed through](ReplayBody::passthrough): then the caller is never waited
    /// for, or it cannot be observed.
    #[inline]
    pub fn watch_source(&self) -> Option<SourceWatch> {
        // The compiler evaluates the check of the type, and most bodies have one of these types.
        match &self.inner {
            Inner::Shared { reader } if !is_known_in_memory::<B>() => Some(reader.watch_source()),
            Inner::Upload { reader } if !is_known_in_memory::<B>() => Some(reader.watch_source()),
            _ => None,
        }
    }

    /// Returns `true` if the caller's body has returned an error to any reader, or has panicked.
    pub fn source_failed(&self) -> bool {
        match &self.inner {
            Inner::Complete { .. } => false,
            Inner::Once { end, .. } => end.has_failed(),
            Inner::Shared { reader } => reader.source_failed(),
            Inner::Upload { reader } => reader.source_failed(),
        }
    }
}
