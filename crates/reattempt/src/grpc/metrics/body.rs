//! The bodies of a request and a response that are measured. Their frames are unchanged.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use reattempt_grpc::{Code, GRPC_STATUS};
use tower::BoxError;

use super::span::Span;
use crate::grpc::errors::code_of_error;

pin_project! {
    /// The body of a response that is measured. It returns the frames of the inner body, and reads the status.
    ///
    /// Its errors are the inner body's, boxed. If it is dropped before its end, the call is measured as cancelled.
    pub struct MeasuredBody<B> {
        // First, so that it is dropped first: inner measurements end before outer ones.
        #[pin]
        inner: B,
        // None once the end is known.
        span: Option<Span>,
    }
}

impl<B> MeasuredBody<B> {
    pub(super) fn new(inner: B, span: Option<Span>) -> Self {
        Self { inner, span }
    }
}

impl<B> Body for MeasuredBody<B>
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
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx)).map(|frame| frame.map_err(Into::into));
        let code = match &frame {
            Some(Ok(frame)) => match (frame.data_ref(), frame.trailers_ref()) {
                (Some(data), _) => {
                    if let Some(span) = this.span {
                        span.receives(data);
                    }
                    None
                }
                (None, trailers) => trailers.map(|trailers| match trailers.get(GRPC_STATUS) {
                    Some(status) => Code::from_bytes(status.as_bytes()),
                    None => Code::Unknown,
                }),
            },
            Some(Err(error)) => Some(code_of_error(&**error)),
            None => Some(Code::Unknown),
        };
        if let Some(code) = code
            && let Some(span) = this.span.take()
        {
            span.end(code);
        }
        Poll::Ready(frame)
    }

    /// `false` until the status has been read, so that no reader stops without it.
    fn is_end_stream(&self) -> bool {
        self.span.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B: fmt::Debug> fmt::Debug for MeasuredBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasuredBody")
            .field("inner", &self.inner)
            .field("ended", &self.span.is_none())
            .finish()
    }
}
