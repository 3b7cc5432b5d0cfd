//! The gRPC response body, which reads the status in its trailers.

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
    /// The response body of a call under a gRPC policy.
    ///
    /// The frames of the inner body, which is not boxed, are returned unchanged. The status in the trailers determines
    /// whether the call succeeded:
    ///
    /// | end of the body | effect on the budget |
    /// |---|---|
    /// | OK | records a success |
    /// | a retryable code | records a failure, although it is too late for a retry |
    /// | dropped before its end | none |
    ///
    /// At the call's deadline, the body ends with DEADLINE_EXCEEDED trailers. The inner body is then dropped, which
    /// cancels the stream. If `grpc-status-details-bin` is not valid base64, it is removed from the trailers, because
    /// tonic's clients would panic on it.
    ///
    /// # Errors
    /// The errors are those of the inner body, boxed. For a lost connection, the error is a `tonic::Status` with
    /// UNAVAILABLE and the inner error as its source. For a reset stream, it is a status with the code for the reset
    /// reason.
    ///
    /// # Cancel safety
    /// Dropping the body before its end cancels the stream.
    // THR-4, TN-7
    pub struct GrpcBody<B> {
        // `None` if a deadline has ended the body, or if there was no body.
        #[pin]
        inner: Option<B>,
        // `None` once the end is known, or if it need not be recorded.
        finish: Option<Finish>,
    }
}

impl<B> GrpcBody<B> {
    /// Creates a body that reports its end to `finish`, if any.
    #[inline]
    pub(super) fn new(inner: B, finish: Option<Finish>) -> Self {
        Self { inner: Some(inner), finish }
    }

    /// Returns the response for a head that contains the status and whose body was discarded.
    pub(super) fn of_head(head: &RefusedResponse) -> Response<Self> {
        let mut response = Response::new(Self { inner: None, finish: None });
        *response.version_mut() = http::Version::HTTP_2;
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers.clone();
        presentable(head.status, response.headers_mut());
        response
    }

    /// Returns a locally created response: a status, marked with the outcome that it represents.
    #[doc(hidden)]
    pub fn answering(code: Code, text: &str, mark: Unanswered) -> Response<Self> {
        let mut response = Response::new(Self { inner: None, finish: None });
        *response.version_mut() = http::Version::HTTP_2;
        *response.headers_mut() = status_of(code, text);
        response.extensions_mut().insert(mark);
        response
    }
}

/// Returns a body without messages and trailers, which tonic's interceptors need to refuse a call.
impl<B> Default for GrpcBody<B> {
    fn default() -> Self {
        Self { inner: None, finish: None }
    }
}

/// Returns a status as headers, for a response head or trailers.
fn status_of(code: Code, text: &str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    set_status(&mut headers, code, text);
    headers
}

/// The number of fields that [`set_status`] writes.
const FIELDS_OF_STATUS: usize = 2;

/// Writes a status, with its message percent-encoded.
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

/// Returns the trailers of a body that the deadline has ended.
fn late_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    set_status(&mut trailers, Code::DeadlineExceeded, PASSED);
    trailers
}

impl<B: Body<Error: Into<BoxError>>> Body for GrpcBody<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = inner.poll_frame(cx);
        let late = match (&polled, &mut *this.finish) {
            (_, None) => false,
            (Poll::Pending, Some(finish)) => {
                ready!(finish.poll_deadline(cx));
                true
            }
            // A status that has already arrived takes precedence over the deadline.
            (Poll::Ready(Some(Ok(frame))), Some(_)) if frame.is_trailers() => false,
            (Poll::Ready(None), Some(finish)) if finish.has_status => false,
            (Poll::Ready(_), Some(finish)) => finish.is_late(),
        };
        if late {
            // Dropping the body cancels the stream.
            this.inner.set(None);
            if let Some(finish) = this.finish.take() {
                finish.end_late();
            }
            return Poll::Ready(Some(Ok(Frame::trailers(late_trailers()))));
        }
        match ready!(polled) {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    remove_unreadable_details(trailers);
                    if let Some(finish) = this.finish.take() {
                        finish.end_with_trailers(trailers);
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let error = error.into();
                if let Some(finish) = this.finish.take() {
                    finish.end_with_error(&*error);
                }
                Poll::Ready(Some(Err(explained(error))))
            }
            None => {
                if let Some(finish) = this.finish.take() {
                    // Rule ST-3: a response without a status is treated as UNKNOWN.
                    finish.end_with_trailers(&HeaderMap::new());
                }
                Poll::Ready(None)
            }
        }
    }

    /// Returns `false` until the status has been read, so that readers do not stop before it.
    fn is_end_stream(&self) -> bool {
        self.finish.is_none() && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: fmt::Debug> fmt::Debug for GrpcBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcBody").field("inner", &self.inner).field("watched", &self.finish.is_some()).finish()
    }
}

/// Adds a status to a non-gRPC response, and repairs a status that a client could not read.
///
/// If there is no room for the status, the other headers are dropped.
// OUT-1
pub(super) fn presentable(status: StatusCode, headers: &mut HeaderMap) {
    if !headers.contains_key(GRPC_STATUS) {
        let Some(code) = reattempt_grpc::code_of_head(status, headers) else { return };
        let text = format!("the response is not gRPC; its HTTP status is {status}");
        if headers.try_reserve(FIELDS_OF_STATUS).is_err() {
            headers.clear();
        }
        set_status(headers, code, &text);
    }
    remove_unreadable_details(headers);
}
