//! A request body that can be sent again: it streams through while what was read is kept.
//!
//! In flows the caller's body, frame by frame, as whoever sends it asks for more; out flow the same
//! frames to every reader made before the first was freed. A retry layer clones the body before it
//! is sent and sets the clone aside, unread: the frames are kept for as long as that clone, or any
//! other reader, has yet to see them. Nothing is read ahead and no byte is copied.

mod error;
mod frames;
mod limits;
mod memory;
mod shared;
mod wakers;

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

pub use error::ReplayError;
pub use limits::ReplayLimits;
pub use memory::{ReplayCharge, ReplayMemory};

use shared::Reader;

type BoxError = Box<dyn Error + Send + Sync>;

pin_project! {
    /// A body that can be read more than once, from the first byte, without being copied.
    ///
    /// Each value is one reader. [`try_clone`](ReplayBody::try_clone) makes another, which sees the
    /// same frames: data, empty chunks and trailers, and an error at the place where it occurred.
    /// Readers may be polled at the same time, from different tasks. A frame is kept until the
    /// slowest reader has had it; a body with one reader is only passed through.
    ///
    /// A body that outgrows its [`ReplayLimits`] is no error: the reader that is furthest on
    /// streams to the end, and only the readers behind it cannot go on
    /// ([`is_replayable`](ReplayBody::is_replayable) is false, and reading ends with
    /// [`ReplayError::NotKept`]).
    ///
    /// The size hint is the caller's own at the start, less what this reader has read, so that a
    /// second attempt is framed as the first was.
    ///
    /// It is `Send` and `Sync` for every body that is `Send`. It allocates once when it is made, and
    /// again only to keep more than one frame or to let several readers wait.
    ///
    /// # Cancel safety
    ///
    /// A frame is either still to come or has been returned; dropping a reader loses nothing for
    /// the others, and wakes them if it was the one that waited for the caller's body.
    ///
    /// ```
    /// # use http_body_util::{BodyExt, Full};
    /// # use reattempt_http::{ReplayBody, ReplayLimits};
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
        // At its end when it was made: every reader is at its end, and nothing has to be shared.
        Empty { hint: SizeHint },
        // Read once, by this reader alone. The wrapper makes a body that is only `Send` also
        // `Sync`, at the price that the body cannot be asked anything through a shared reference;
        // so its answers are noted after each poll.
        Once { #[pin] body: SyncWrapper<B>, progress: Progress, hint: SizeHint, failed: bool },
        Shared { reader: Reader<B> },
    }
}

/// How far one reader has come.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Bytes of data returned so far.
    read: u64,
    /// The body said that nothing follows the last frame returned.
    ended: bool,
    /// The end, or an error, has been returned.
    done: bool,
}

impl Progress {
    /// What is still to come when `whole` was to come at the start.
    fn rest_of(self, whole: SizeHint) -> SizeHint {
        let mut rest = SizeHint::new();
        // The lower bound first: it is never above the upper one, from which the same is taken.
        rest.set_lower(whole.lower().saturating_sub(self.read));
        if let Some(upper) = whole.upper() {
            rest.set_upper(upper.saturating_sub(self.read));
        }
        rest
    }

    /// Counts data that is about to be returned.
    #[inline]
    fn count(&mut self, length: usize) {
        self.read = self.read.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
    }
}

impl<B> ReplayBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    /// The first reader of `body`.
    ///
    /// A body that is at its end already can be cloned for ever and costs nothing. If `limits`
    /// allow no byte a call, any other body is passed through as by
    /// [`passthrough`](ReplayBody::passthrough).
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self { inner: Inner::Empty { hint: body.size_hint() } };
        }
        if limits.keeps_nothing() {
            return Self::passthrough(body);
        }
        Self { inner: Inner::Shared { reader: Reader::new(body, limits) } }
    }

    /// The only reader of `body`, which is never kept. Allocates nothing.
    pub fn passthrough(body: B) -> Self {
        let hint = body.size_hint();
        let progress = Progress { ended: body.is_end_stream(), ..Progress::default() };
        Self { inner: Inner::Once { body: SyncWrapper::new(body), progress, hint, failed: false } }
    }
}

impl<B> ReplayBody<B> {
    /// Another reader, which starts at the first byte, wherever this one stands.
    ///
    /// `None` when that byte is gone: the body outgrew its limits, was made by
    /// [`passthrough`](ReplayBody::passthrough), was read while it had a single reader, or this
    /// reader was [cancelled](ReplayBody::cancel_others).
    pub fn try_clone(&self) -> Option<Self> {
        let inner = match &self.inner {
            Inner::Empty { hint } => Inner::Empty { hint: *hint },
            Inner::Once { .. } => return None,
            Inner::Shared { reader } => Inner::Shared { reader: reader.try_clone()? },
        };
        Some(Self { inner })
    }

    /// Whether [`try_clone`](ReplayBody::try_clone) would succeed now.
    ///
    /// For a reader that has read nothing this is also whether it can be sent itself.
    pub fn is_replayable(&self) -> bool {
        match &self.inner {
            Inner::Empty { .. } => true,
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.is_replayable(),
        }
    }

    /// Ends every other reader there is, with [`ReplayError::Superseded`].
    ///
    /// For a retry that takes over while the upload of the attempt before it may still be running,
    /// as HTTP/2 allows: that upload then neither takes frames nor holds any. Clones made
    /// afterwards are not affected. Does nothing if this reader cannot go on itself.
    pub fn cancel_others(&self) {
        if let Inner::Shared { reader } = &self.inner {
            reader.cancel_others();
        }
    }

    /// Whether the caller's own body has yielded an error, to whichever reader.
    pub fn source_failed(&self) -> bool {
        match &self.inner {
            Inner::Empty { .. } => false,
            Inner::Once { failed, .. } => *failed,
            Inner::Shared { reader } => reader.source_failed(),
        }
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().inner.project() {
            InnerProjected::Empty { .. } => Poll::Ready(None),
            InnerProjected::Shared { reader } => reader.poll_frame(cx),
            InnerProjected::Once { body, progress, failed, .. } => {
                if progress.done {
                    return Poll::Ready(None);
                }
                let mut body = body.get_pin_mut();
                Poll::Ready(match ready!(body.as_mut().poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        progress.count(frame.data_ref().map_or(0, Bytes::len));
                        progress.ended = body.is_end_stream();
                        Some(Ok(frame))
                    }
                    Some(Err(error)) => {
                        progress.done = true;
                        *failed = true;
                        Some(Err(ReplayError::Source(Arc::from(error.into())).into()))
                    }
                    None => {
                        progress.done = true;
                        None
                    }
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Empty { .. } => true,
            Inner::Once { progress, .. } => progress.ended || progress.done,
            Inner::Shared { reader } => reader.progress.ended || reader.progress.done,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Empty { hint } => *hint,
            Inner::Once { progress, hint, .. } => progress.rest_of(*hint),
            Inner::Shared { reader } => reader.progress.rest_of(reader.hint()),
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, progress) = match &self.inner {
            Inner::Empty { .. } => ("empty", Progress { done: true, ..Progress::default() }),
            Inner::Once { progress, .. } => ("passed through", *progress),
            Inner::Shared { reader } => ("kept", reader.progress),
        };
        f.debug_struct("ReplayBody")
            .field("kind", &kind)
            .field("read", &progress.read)
            .field("done", &progress.done)
            .finish_non_exhaustive()
    }
}
