//! The response body of a measured call or attempt.

use std::fmt;

use bytes::Bytes;
use http_body::{Body, Frame};
use reattempt_engine::body::{Watch, Watched};
use reattempt_engine::wall::grpc::code_of_error;
use reattempt_grpc::{Code, GRPC_STATUS};
use tower::BoxError;

use super::span::Span;

/// The body of a measured response, which reads the status. The frames of the inner body are returned unchanged.
///
/// Its errors are the inner body's, boxed. If the body is dropped before its end, the call is recorded as cancelled.
pub type MeasuredBody<B> = Watched<B, MeasuredEnd>;

/// The measurement of a call or an attempt, which ends with the response body.
pub struct MeasuredEnd(
    /// `None` once the end is known.
    pub(super) Option<Span>,
);

impl fmt::Debug for MeasuredEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasuredEnd").field("known", &self.0.is_none()).finish()
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Watch<B> for MeasuredEnd {
    type Error = BoxError;

    fn error(error: B::Error) -> BoxError {
        error.into()
    }

    fn read_frame(&mut self, frame: Option<Result<&Frame<Bytes>, &BoxError>>, _: impl FnOnce() -> bool) {
        let code = match frame {
            Some(Ok(frame)) => match (frame.data_ref(), frame.trailers_ref()) {
                (Some(data), _) => {
                    if let Some(span) = &mut self.0 {
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
            && let Some(span) = self.0.take()
        {
            span.end_with(code);
        }
    }

    fn is_open(&self) -> bool {
        self.0.is_some()
    }
}
