//! A request body that can be sent again: it streams through while what was read is kept.
//!
//! In flows the caller's body, frame by frame, as whoever sends it asks for more; out flow the same
//! frames to every reader made before the first was freed. A retry layer clones the body before it
//! is sent and sets the clone aside, unread: the frames are kept for as long as that clone, or any
//! other reader, has yet to see them. Nothing is read ahead but to learn whether one frame is all, and no
//! byte is copied.

mod ahead;
mod error;
mod frames;
mod held;
mod limits;
mod memory;
mod progress;
mod shared;
mod wakers;
mod watch;

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::Context;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

pub use error::ReplayError;
pub use limits::ReplayLimits;
pub use memory::{ReplayCharge, ReplayMemory};
pub use watch::ReplayWatch;

use ahead::Said;
use frames::Next;
use held::{Held, Whole};
use progress::{End, Length, Polled};
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
    /// A body that is empty, or that is asked ahead and turns out to be one buffer within the limits, is
    /// known in full from the start: its readers have nothing to share, and none is ever in the way of
    /// another.
    ///
    /// It is `Send` and `Sync` for every body that is `Send`. It allocates nothing for an empty body,
    /// at most once for any other that is known in full from the start (not even that, mostly, where the
    /// compiler knows the body, nor where it can be moved), twice for the rest, and again only to keep
    /// more than one frame or to let several readers wait.
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
        // Known in full: every reader has it, and nothing has to be shared.
        Held { held: Held },
        // Read once, by this reader alone. The wrapper makes a body that is only `Send` also
        // `Sync`, at the price that the body cannot be asked anything through a shared reference;
        // so its answers are noted after each poll.
        Once { end: End, rest: Length, #[pin] body: SyncWrapper<B> },
        Shared { reader: Reader<B> },
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
    ///
    /// A body whose size hint is exact, and within what `limits` allow a call, is asked for its
    /// first frame here and now, for it may be all there is, and once more if it has come to its length
    /// and does not say that this is the end: a body that was in memory before is then handed on as it
    /// is. If more is to come, or nothing has come yet, the readers get what was said, and ask on with
    /// their own wakers. Bodies of unknown length (but see [`read_ahead`](ReplayBody::read_ahead)), and
    /// larger ones, are not asked before the first reader is.
    #[inline]
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        if body.is_end_stream() {
            return Self { inner: Inner::Held { held: Held::Empty(body.size_hint()) } };
        }
        Self::of_some(body, limits)
    }

    /// The same for a body that can be moved once it was asked, such as one that lies on the heap already.
    ///
    /// It is asked here and now even if it says nothing of its length, so that a body of one frame, as
    /// encoders of single messages make them, is known in full as well. Of any other body two frames at
    /// most are so read by whoever calls this, and none once the memory that `limits` share is used up.
    /// Readers are told of its length what it said itself.
    ///
    /// What ends the body from outside while it waits to be sent, such as tonic's `CancellationHandle`,
    /// does so no more once it has been read to its end.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http_body::Body;
    /// use http_body_util::{Full, combinators::UnsyncBoxBody};
    /// use reattempt_http::{ReplayBody, ReplayLimits, ReplayMemory};
    ///
    /// let memory = ReplayMemory::new(1024);
    /// let limits = ReplayLimits::default().memory(memory.clone());
    /// let boxed = UnsyncBoxBody::new(Full::new(Bytes::from_static(b"a message of one frame, at hand")));
    /// let first = ReplayBody::read_ahead(boxed, &limits);
    /// assert_eq!(memory.used(), 32, "it is here, and is kept until it is sent");
    /// assert!(first.is_replayable() && !first.is_end_stream());
    /// ```
    #[inline]
    pub fn read_ahead(mut body: B, limits: &ReplayLimits) -> Self
    where
        B: Unpin,
    {
        let hint = body.size_hint();
        let untold = hint.lower() == 0 && hint.upper().is_none() && limits.has_room();
        let fits = hint.exact().is_some_and(|length| limits.allow(length));
        if body.is_end_stream() || limits.keeps_nothing() || !(untold || fits) {
            return Self::new(body, limits);
        }
        match Said::ask(Pin::new(&mut body), hint.exact(), limits) {
            Ok(data) => Self::whole(data, hint, limits),
            Err(said) => Self::shared(Some(Box::pin(body)), said, hint, limits),
        }
    }

    /// The first reader of a body that is not at its end. Not inlined, so that nobody has to make
    /// room for it who has none.
    #[inline(never)]
    fn of_some(body: B, limits: &ReplayLimits) -> Self {
        if limits.keeps_nothing() {
            return Self::passthrough(body);
        }
        let hint = body.size_hint();
        match hint.exact() {
            // That it is not at its end is known, and said again for the compiler, which then finds
            // that a body whose type it knows need not lie on the heap to be asked.
            Some(length) if length > 0 && limits.allow(length) && !body.is_end_stream() => {
                let mut body = Box::pin(body);
                match Said::ask(body.as_mut(), Some(length), limits) {
                    Ok(data) => {
                        // First of all, for the same reason.
                        drop(body);
                        Self::whole(data, hint, limits)
                    }
                    Err(said) => Self::shared(Some(body), said, hint, limits),
                }
            }
            _ => Self::shared(Some(Box::pin(body)), Said::default(), hint, limits),
        }
    }

    /// The first reader of a body that is `data` and has told this of its length.
    #[inline]
    fn whole(data: Bytes, hint: SizeHint, limits: &ReplayLimits) -> Self {
        match Whole::new(data, hint.exact().is_some(), limits) {
            Ok(whole) => Self { inner: Inner::Held { held: Held::Whole(whole) } },
            Err(data) => Self::shared(None, Said::once(Some(Next::Data(data))), hint, limits),
        }
    }

    /// The first reader of a body that lies on the heap, and has said this when it was asked ahead.
    fn shared(
        source: Option<Pin<Box<B>>>,
        said: Said,
        hint: SizeHint,
        limits: &ReplayLimits,
    ) -> Self {
        Self {
            inner: Inner::Shared { reader: Reader::new(source, said, Length::new(&hint), limits) },
        }
    }

    /// The only reader of `body`, which is never kept. Allocates nothing.
    #[inline]
    pub fn passthrough(body: B) -> Self {
        let rest = Length::new(&body.size_hint());
        let end = End { ended: body.is_end_stream(), ..End::default() };
        Self { inner: Inner::Once { body: SyncWrapper::new(body), rest, end } }
    }
}

impl<B> ReplayBody<B> {
    /// Another reader, which starts at the first byte, wherever this one stands.
    ///
    /// `None` when that byte is gone: the body outgrew its limits, was made by
    /// [`passthrough`](ReplayBody::passthrough), was read while it had a single reader, or this
    /// reader was [cancelled](ReplayBody::cancel_others); or the body is one buffer in memory, and
    /// this reader has given it out.
    #[inline]
    pub fn try_clone(&self) -> Option<Self> {
        let inner = match &self.inner {
            Inner::Held { held } => Inner::Held { held: held.try_clone()? },
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
            Inner::Held { held } => held.is_replayable(),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.is_replayable(),
        }
    }

    /// Ends every other reader there is, with [`ReplayError::Superseded`].
    ///
    /// For a retry that takes over while the upload of the attempt before it may still be running,
    /// as HTTP/2 allows: that upload then neither takes frames nor holds any. Clones made
    /// afterwards are not affected. Does nothing if this reader cannot go on itself, and nothing to
    /// a body that is empty or one buffer in memory: its readers neither wait nor share.
    pub fn cancel_others(&self) {
        if let Inner::Shared { reader } = &self.inner {
            reader.cancel_others();
        }
    }

    /// Notes from now on whether a reader of this body is polled. To be called before the first clone is
    /// made.
    ///
    /// It costs an allocation for a body that is one buffer in memory, and nothing for any other.
    pub fn note_polls(&mut self) {
        if let Inner::Held { held } = &mut self.inner {
            held.note_polls();
        }
    }

    /// Returns `true` if a reader of this body, this one or another, has been polled since
    /// [`forget_polls`](ReplayBody::forget_polls) was called last.
    ///
    /// A client that failed to connect has not polled the body, unless an earlier connection carried it.
    /// `false` for an empty body, and for one that is one buffer in memory unless
    /// [`note_polls`](ReplayBody::note_polls) was called.
    ///
    /// ```
    /// # use http_body_util::{BodyExt, Full};
    /// # use reattempt_http::{ReplayBody, ReplayLimits};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let mut first = ReplayBody::new(Full::from("hello"), &ReplayLimits::default());
    /// first.note_polls();
    /// let kept = first.try_clone().expect("nothing was read yet");
    /// assert!(!kept.was_polled());
    /// first.collect().await?;
    /// assert!(kept.was_polled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn was_polled(&self) -> bool {
        match &self.inner {
            Inner::Held { held } => held.was_polled(),
            Inner::Once { .. } => false,
            Inner::Shared { reader } => reader.was_polled(),
        }
    }

    /// Forgets that a reader has been polled, for another attempt.
    pub fn forget_polls(&self) {
        match &self.inner {
            Inner::Held { held } => held.forget_polls(),
            Inner::Once { .. } => {}
            Inner::Shared { reader } => reader.forget_polls(),
        }
    }

    /// Watches whether this reader can go on, from outside of whoever reads: the reader may be moved
    /// away, and even dropped, meanwhile. Of one that is not shared nothing is ever to be told.
    pub fn watch(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Held { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch(),
        }
    }

    /// The same for the first reader of all, from which this one was cloned, and which has gone to
    /// whoever reads it. To be asked while nothing was given up yet, as long as this reader
    /// [is replayable](ReplayBody::is_replayable): afterwards it says that the first reader is cut off.
    pub fn watch_first(&self) -> ReplayWatch {
        match &self.inner {
            Inner::Held { .. } | Inner::Once { .. } => ReplayWatch::idle(),
            Inner::Shared { reader } => reader.watch_first(),
        }
    }

    /// Whether the caller's own body has yielded an error, to whichever reader.
    pub fn source_failed(&self) -> bool {
        match &self.inner {
            Inner::Held { .. } => false,
            Inner::Once { end, .. } => end.has_failed(),
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

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match self.project().inner.project() {
            InnerProjected::Held { held } => held.poll_frame(),
            InnerProjected::Once { body, rest, end } => ask_once(body, rest, end, cx),
            InnerProjected::Shared { reader } => reader.poll_frame(cx),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.at_end()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.rest()
    }
}

impl<B> ReplayBody<B> {
    #[inline]
    fn at_end(&self) -> bool {
        match &self.inner {
            Inner::Held { held } => held.is_end_stream(),
            Inner::Once { end, .. } => end.at_end(),
            Inner::Shared { reader } => reader.end().at_end(),
        }
    }

    #[inline]
    fn rest(&self) -> SizeHint {
        match &self.inner {
            Inner::Held { held } => held.size_hint(),
            Inner::Once { rest, .. } => rest.hint(),
            Inner::Shared { reader } => reader.size_hint(),
        }
    }
}

/// A body that is only passed through. Not inlined, so that the other kinds need not make room.
#[inline(never)]
fn ask_once<B>(
    body: Pin<&mut SyncWrapper<B>>,
    rest: &mut Length,
    end: &mut End,
    cx: &mut Context<'_>,
) -> Polled
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    end.ask(body.get_pin_mut(), cx, |data| *rest = rest.after(data), || ())
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.inner {
            Inner::Held { held } => held.kind(),
            Inner::Once { .. } => "passed through",
            Inner::Shared { .. } => "kept",
        };
        f.debug_struct("ReplayBody")
            .field("kind", &kind)
            .field("rest", &self.rest())
            .field("done", &self.at_end())
            .finish_non_exhaustive()
    }
}
