//! The body of a gRPC response: the inner one, watched until its trailers have come.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use reattempt_grpc::{Code, GRPC_MESSAGE, GRPC_STATUS, remove_unreadable_details};
use tower::BoxError;

use super::errors::{Unanswered, explained};
use crate::call::deadline::PASSED;
use crate::call::finish::Finish;
use crate::call::timed_out::RefusedResponse;

pin_project! {
    /// The body of a response that a gRPC policy hands out.
    ///
    /// It is the inner service's own, frame by frame, and lies in the response itself: nothing is boxed
    /// for it. On the way by it reads the final status: only that tells whether the call has succeeded,
    /// which is what its budget is credited for, once (rule THR-4); a failure at this point is too late
    /// for a retry, but counts against the budget if its code is one that is retried. A body that is
    /// dropped before its end counts for nothing.
    ///
    /// A call's deadline ends it: with trailers that say DEADLINE_EXCEEDED, and the inner body is
    /// dropped, which cancels the stream. A `grpc-status-details-bin` that is not base64 is left out of
    /// the trailers, for clients of tonic panic over one (rule TN-7).
    ///
    /// Its errors are the inner body's, boxed. A connection that is lost is a `tonic::Status` of
    /// UNAVAILABLE with that error behind it, and a stream that was reset one of the code of its reason.
    pub struct GrpcBody<B> {
        // None where a deadline has ended it, or where there never was one.
        #[pin]
        inner: Option<B>,
        // None once the end is known, or where nobody wants to know it.
        finish: Option<Finish>,
    }
}

impl<B> GrpcBody<B> {
    /// A body whose end is told, if anybody wants to know.
    #[inline]
    pub(super) fn new(inner: B, finish: Option<Finish>) -> Self {
        Self { inner: Some(inner), finish }
    }

    /// The answer of a server of which only the head is left. That has the status.
    pub(super) fn of_head(head: &RefusedResponse) -> Response<Self> {
        let mut response = Response::new(Self { inner: None, finish: None });
        *response.version_mut() = http::Version::HTTP_2;
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers.clone();
        presentable(head.status, response.headers_mut());
        response
    }

    /// An answer that no server gave: a status and nothing else, and the mark of what it stands for.
    pub(crate) fn answering(code: Code, text: &str, mark: Unanswered) -> Response<Self> {
        let mut response = Response::new(Self { inner: None, finish: None });
        *response.version_mut() = http::Version::HTTP_2;
        *response.headers_mut() = status_of(code, text);
        response.extensions_mut().insert(mark);
        response
    }
}

/// A body without messages and trailers: tonic's interceptors make one for a call that they refuse.
impl<B> Default for GrpcBody<B> {
    fn default() -> Self {
        Self { inner: None, finish: None }
    }
}

/// A status as a response head or trailers have it.
fn status_of(code: Code, text: &str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    set_status(&mut headers, code, text);
    headers
}

/// Writes a status; the text as the protocol has it, percent-encoded.
pub(super) fn set_status(headers: &mut HeaderMap, code: Code, text: &str) {
    headers.insert(GRPC_STATUS, code.number().into());
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    if let Ok(value) = HeaderValue::try_from(encoded) {
        headers.insert(GRPC_MESSAGE, value);
    }
}

/// The trailers of a body that the deadline has ended.
fn late_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    set_status(&mut trailers, Code::DeadlineExceeded, PASSED);
    trailers
}

impl<B> Body for GrpcBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = inner.poll_frame(cx);
        let late = match (&polled, &mut *this.finish) {
            (_, None) => false,
            (Poll::Pending, Some(finish)) => {
                ready!(finish.poll_deadline(cx));
                true
            }
            // A status that has come stands.
            (Poll::Ready(Some(Ok(frame))), Some(_)) if frame.is_trailers() => false,
            (Poll::Ready(_), Some(finish)) => finish.is_late(),
        };
        if late {
            // With its body the stream is cancelled.
            this.inner.set(None);
            if let Some(finish) = this.finish.take() {
                finish.late();
            }
            return Poll::Ready(Some(Ok(Frame::trailers(late_trailers()))));
        }
        match ready!(polled) {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    remove_unreadable_details(trailers);
                    if let Some(finish) = this.finish.take() {
                        finish.ended(trailers);
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let error = error.into();
                if let Some(finish) = this.finish.take() {
                    finish.failed(&*error);
                }
                Poll::Ready(Some(Err(explained(error))))
            }
            None => {
                if let Some(finish) = this.finish.take() {
                    // Rule ST-3: without any status it is UNKNOWN.
                    finish.ended(&HeaderMap::new());
                }
                Poll::Ready(None)
            }
        }
    }

    /// Not before the status has been read, so that nobody stops reading without it.
    fn is_end_stream(&self) -> bool {
        self.finish.is_none() && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: fmt::Debug> fmt::Debug for GrpcBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcBody")
            .field("inner", &self.inner)
            .field("watched", &self.finish.is_some())
            .finish()
    }
}

/// Makes a status presentable: of a response that is no gRPC at all (rule OUT-1), or whose status a client
/// could not read.
pub(super) fn presentable(status: StatusCode, headers: &mut HeaderMap) {
    if !headers.contains_key(GRPC_STATUS) {
        let Some(code) = reattempt_grpc::code_of_head(status, headers) else { return };
        let text = format!("the response is not gRPC; its HTTP status is {status}");
        set_status(headers, code, &text);
    }
    remove_unreadable_details(headers);
}
