//! A response body with a watcher that is notified of its frames and its end.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// A watcher that is notified of every frame of a body `B`.
pub trait Watch<B: Body> {
    /// The error of the watched body.
    type Error;

    /// Converts an error of the inner body to that of the watched body.
    #[doc(hidden)]
    fn error(error: B::Error) -> Self::Error;

    /// Records a frame, an error, or the end of the body. `is_over` returns `true` if this was the last frame.
    #[doc(hidden)]
    fn read_frame(&mut self, frame: Option<Result<&Frame<B::Data>, &Self::Error>>, is_over: impl FnOnce() -> bool);

    /// Returns `true` until the end is known, so that the reader continues to poll.
    #[doc(hidden)]
    fn is_open(&self) -> bool {
        false
    }
}

pin_project! {
    /// A body with a watcher. It returns the inner body's frames unchanged.
    pub struct Watched<B, W> {
        // Declared before the watcher, so that inner watchers end before outer ones.
        #[pin]
        inner: B,
        watch: W,
    }
}

impl<B, W> Watched<B, W> {
    #[doc(hidden)]
    #[inline]
    pub fn new(inner: B, watch: W) -> Self {
        Self { inner, watch }
    }
}

impl<B: Body, W: Watch<B>> Body for Watched<B, W> {
    type Data = B::Data;
    type Error = W::Error;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, W::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx)).map(|frame| frame.map_err(W::error));
        this.watch.read_frame(frame.as_ref().map(Result::as_ref), || this.inner.is_end_stream());
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        !self.watch.is_open() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Creates an empty body without a watcher.
impl<B: Default, W: Default> Default for Watched<B, W> {
    fn default() -> Self {
        Self { inner: B::default(), watch: W::default() }
    }
}

impl<B: fmt::Debug, W: fmt::Debug> fmt::Debug for Watched<B, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("inner", &self.inner).field("watch", &self.watch).finish()
    }
}
