//! The body of a response that may be a fallback.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a response returned through a [`FallbackLayer`](super::FallbackLayer): the inner service's own body,
    /// or bytes in memory.
    pub struct FallbackBody<B> {
        #[pin]
        inner: Option<B>,
        data: Option<Bytes>,
        trailers: Option<HeaderMap>,
    }
}

impl<B> FallbackBody<B> {
    #[doc(hidden)]
    pub fn of_service(inner: B) -> Self {
        Self { inner: Some(inner), data: None, trailers: None }
    }

    #[doc(hidden)]
    pub fn in_memory(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self { inner: None, data: Some(data).filter(|data| !data.is_empty()), trailers }
    }
}

impl<B: Body<Data = Bytes>> Body for FallbackBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(inner) = this.inner.as_pin_mut() {
            return inner.poll_frame(cx);
        }
        let data = this.data.take().map(Frame::data);
        Poll::Ready(data.or_else(|| this.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Some(inner) => inner.is_end_stream(),
            None => self.data.is_none() && self.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.inner, &self.data) {
            (Some(inner), _) => inner.size_hint(),
            (None, data) => SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64)),
        }
    }
}

/// An empty body.
impl<B> Default for FallbackBody<B> {
    fn default() -> Self {
        Self { inner: None, data: None, trailers: None }
    }
}

impl<B: fmt::Debug> fmt::Debug for FallbackBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = self.data.as_ref().map(Bytes::len);
        f.debug_struct("FallbackBody").field("inner", &self.inner).field("bytes", &data).finish()
    }
}
