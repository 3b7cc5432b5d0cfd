//! Request bodies that are opened anew for each attempt, so that none of their bytes are kept.
//!
//! An [`UploadBody`] is an ordinary body with a way to open it: the first poll opens it, and a clone is a new, unopened
//! body. A [`ReplayBody`](crate::ReplayBody) around it keeps no frames: it asks the body for its way (`probe`), and
//! each of its readers opens its own. The retry layer opens the next attempt's body, just before it is sent, while it
//! still holds the last outcome, so that the caller gets that outcome if the body cannot be opened. Length and, for
//! files, identity are checked when a body is opened and before each frame is returned, so no attempt completes with
//! other bytes. Nothing else of a call changes.

mod checked;
mod error;
#[cfg(feature = "file")]
mod file;
mod file_state;
mod joined;
mod probe;
mod reader;
mod source;

use std::fmt;
#[cfg(feature = "file")]
use std::ops::Range;
#[cfg(feature = "file")]
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Empty;
use sync_wrapper::SyncWrapper;

use crate::error::BoxError;

use checked::hint_of;
pub use error::UploadError;
pub use file_state::FileState;
use joined::Joined;
pub(crate) use probe::source_of;
pub(crate) use reader::UploadReader;
use source::{Opened, Opening, Source};

/// A request body of any size that is opened anew for each attempt.
///
/// Use it for bodies that are too large to keep, such as files: the first attempt streams it, a retry opens it again,
/// and memory stays constant. `Content-Length` stays the same. It needs no setting: retry and hedge layers find it,
/// also inside a `reqwest::Body` or a boxed body. Without them it is sent once, like any other body.
///
/// | constructor | content |
/// |---|---|
/// | `file` | a file, which must not change |
/// | `file_range` | a part of a file |
/// | [`new`](Self::new) | a body that an async function opens |
/// | [`with_unknown_length`](Self::with_unknown_length) | the same, without `Content-Length` |
/// | [`cloned`](Self::cloned) | any body that is `Clone` |
/// | [`joined`](Self::joined) | several of them, one after another |
///
/// A wrapper that changes the body, for example by adding trailers, must be inside the open function. A body inside
/// such a wrapper is sent once.
///
/// A clone is the same body, unopened. Use it for tower-http's `FollowRedirect`, with `clone_body_fn`.
///
/// # Errors
///
/// Polling it fails with an [`UploadError`]. A body with more or fewer bytes than its length never ends without an
/// error, and surplus bytes are not returned.
///
/// # Cancel safety
///
/// Dropping it closes what it has opened, and cancels an opening.
///
/// ```
/// use http_body_util::{BodyExt, Full};
/// use reattempt_replay::{ReplayBody, ReplayLimits, UploadBody};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///
/// let upload = UploadBody::new(5, || async { Ok::<_, std::io::Error>(Full::from("hello")) });
/// let first = ReplayBody::new(upload, &ReplayLimits::default());
/// let second = first.try_clone().expect("it can be opened again");
/// assert_eq!(first.collect().await?.to_bytes(), "hello");
/// assert_eq!(second.collect().await?.to_bytes(), "hello");
/// # Ok(())
/// # }
/// ```
pub struct UploadBody {
    source: Arc<Source>,
    stage: Stage,
}

enum Stage {
    /// It was not polled yet.
    Closed,
    Opening(SyncWrapper<Opening>),
    Open(Opened),
    /// Nothing follows.
    Over,
    /// The user's code is running, or has panicked.
    Running,
}

impl UploadBody {
    /// Creates a body of `length` bytes that `open` opens for each attempt.
    ///
    /// Each call of `open` must give the same bytes. It is called when a body is first polled, for a retry before the
    /// retry is sent.
    ///
    /// ```
    /// use http_body_util::Full;
    /// use reattempt_replay::UploadBody;
    /// # async fn from_store(_: &str) -> std::io::Result<bytes::Bytes> { Ok(bytes::Bytes::from_static(b"hello")) }
    ///
    /// let upload = UploadBody::new(5, || async { from_store("key").await.map(Full::new) });
    /// # drop(upload);
    /// ```
    pub fn new<F, Fut, B, E>(length: u64, open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<B, E>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_open(Some(length), open)
    }

    /// Creates a body whose length is unknown, so that it is sent without `Content-Length`.
    ///
    /// Its length is not checked, so `open` must detect a changed content itself.
    pub fn with_unknown_length<F, Fut, B, E>(open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<B, E>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_open(None, open)
    }

    /// Creates a body from one that can be cloned. Each attempt sends a clone.
    pub fn cloned<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Clone + Send + Sync + 'static,
    {
        let length = body.size_hint().exact();
        Self::of_open(length, move || std::future::ready(Ok::<_, BoxError>(body.clone())))
    }

    /// Creates a body from several, one after another, such as a multipart form with files. All of them are opened
    /// before the first is read.
    pub fn joined(parts: impl IntoIterator<Item = UploadBody>) -> Self {
        let parts: Vec<_> = parts.into_iter().collect();
        let length = Joined::length(&parts);
        Self::of_source(Source::new(length, move || Joined::open(parts.clone().into_iter())))
    }

    fn of_open<F, Fut, B, E>(length: Option<u64>, open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<B, E>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_source(Source::new(length, move || {
            let opening = open();
            async move { opening.await.map_err(|error| UploadError::Open(Arc::from(error.into()))) }
        }))
    }

    /// Creates a body from a regular file.
    ///
    /// The file is opened again for each attempt, and read on tokio's blocking threads in pieces of 128 KiB. Its
    /// length, modification time and, on Unix, its device and inode must stay the same: they are compared at each
    /// opening and after each piece is read, before the piece is sent. A change that leaves all of them the same is not
    /// detected; file systems have a resolution of some milliseconds.
    ///
    /// # Errors
    ///
    /// [`UploadError::Open`] if there is no such file, or it is not a regular file, or there is no tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use reattempt_replay::UploadBody;
    ///
    /// let request = http::Request::put("http://one.example/manifest").body(UploadBody::file("Cargo.toml").await?)?;
    /// # drop(request);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "file")]
    #[cfg_attr(docsrs, doc(cfg(feature = "file")))]
    pub async fn file(path: impl AsRef<Path>) -> Result<Self, UploadError> {
        let state = file::state_of(path.as_ref()).await?;
        Ok(Self::of_file(path.as_ref(), state, 0..state.length()))
    }

    /// Creates a body from the bytes of a file in this range, counted from 0. The whole file must not change.
    ///
    /// # Errors
    ///
    /// Those of [`file`](Self::file), and [`UploadError::Range`] if the range is not within the file.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    #[cfg(feature = "file")]
    #[cfg_attr(docsrs, doc(cfg(feature = "file")))]
    pub async fn file_range(path: impl AsRef<Path>, range: Range<u64>) -> Result<Self, UploadError> {
        let state = file::state_of(path.as_ref()).await?;
        if range.start > range.end || range.end > state.length() {
            return Err(UploadError::Range { range, length: state.length() });
        }
        Ok(Self::of_file(path.as_ref(), state, range))
    }

    #[cfg(feature = "file")]
    fn of_file(path: &Path, state: FileState, range: Range<u64>) -> Self {
        let (path, length) = (Arc::<Path>::from(path), range.end - range.start);
        Self::of_source(Source::new(Some(length), move || {
            file::FileBody::open(Arc::clone(&path), state, range.clone())
        }))
    }

    fn of_source(source: Source) -> Self {
        probe::begin();
        Self::unopened(Arc::new(source))
    }

    fn unopened(source: Arc<Source>) -> Self {
        let stage = if source.length == Some(0) { Stage::Over } else { Stage::Closed };
        Self { source, stage }
    }

    /// Sets the longest time that a retry waits for the body to open. The call then ends with its last outcome.
    ///
    /// The default is 10 s, because files open within milliseconds, and most remote sources within a second. It applies
    /// to attempts after the first, whose opening counts as a part of the attempt.
    #[must_use]
    pub fn open_within(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.source).open_within = limit;
        self
    }

    /// Takes the upload that a caller has put into the extensions of a request, because its client makes the body.
    #[doc(hidden)]
    #[inline]
    pub fn take_from(extensions: &mut http::Extensions) -> Option<Self> {
        if probe::is_begun() { extensions.remove() } else { None }
    }

    /// Returns the length in bytes, or `None` if it is unknown.
    pub fn length(&self) -> Option<u64> {
        self.source.length
    }

    /// Opens the body, unless it is open.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        let mut opening = match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Closed => self.source.open(),
            Stage::Opening(opening) => opening.into_inner(),
            Stage::Running => {
                self.stage = Stage::Over;
                return Poll::Ready(Err(UploadError::Panicked));
            }
            open => {
                self.stage = open;
                return Poll::Ready(Ok(()));
            }
        };
        let (next, result) = match opening.as_mut().poll(cx) {
            Poll::Pending => (Stage::Opening(SyncWrapper::new(opening)), Poll::Pending),
            Poll::Ready(Ok(opened)) => (Stage::Open(opened), Poll::Ready(Ok(()))),
            Poll::Ready(Err(error)) => (Stage::Over, Poll::Ready(Err(error))),
        };
        self.stage = next;
        result
    }

    /// Polls the next frame, after opening the body if necessary.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Err(error) = ready!(self.poll_open(cx)) {
            return Poll::Ready(Some(Err(error)));
        }
        let Stage::Open(mut opened) = std::mem::replace(&mut self.stage, Stage::Running) else {
            self.stage = Stage::Over;
            return Poll::Ready(None);
        };
        let polled = opened.as_mut().poll_frame(cx);
        let is_open = matches!(polled, Poll::Pending | Poll::Ready(Some(Ok(_)))) && !opened.is_end_stream();
        self.stage = if is_open { Stage::Open(opened) } else { Stage::Over };
        polled
    }

    /// Returns `true` until the first poll, if the length is not 0.
    fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    /// Returns `true` if nothing follows.
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Drops what was opened, so that nothing follows.
    fn close(&mut self) {
        self.stage = Stage::Over;
    }

    /// Returns the length hint of what follows.
    fn rest(&self) -> SizeHint {
        match &self.stage {
            Stage::Open(opened) => opened.size_hint(),
            Stage::Over => SizeHint::with_exact(0),
            Stage::Closed | Stage::Opening(_) | Stage::Running => hint_of(self.source.length),
        }
    }
}

impl Clone for UploadBody {
    fn clone(&self) -> Self {
        Self::unopened(Arc::clone(&self.source))
    }
}

/// An empty body, which tower-http's `FollowRedirect` needs for the request after a 303.
impl Default for UploadBody {
    fn default() -> Self {
        Self::cloned(Empty::new())
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        self.poll_next(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over() || (self.is_closed() && probe::answer(&self.source).is_some())
    }

    fn size_hint(&self) -> SizeHint {
        let answer = if self.is_closed() { probe::answer(&self.source) } else { None };
        answer.unwrap_or_else(|| self.rest())
    }
}

impl fmt::Debug for UploadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadBody").field("source", &self.source).field("rest", &self.rest()).finish_non_exhaustive()
    }
}
