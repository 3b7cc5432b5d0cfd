//! An opened body whose length is checked while it is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use sync_wrapper::SyncWrapper;

use super::UploadError;
use crate::error::BoxError;
use crate::progress::length_of;

pin_project! {
    /// An opened body, which never completes with another length than the upload's.
    pub(super) struct Checked<B> {
        #[pin]
        opened: SyncWrapper<B>,
        check: LengthCheck,
    }
}

/// The length of a body, and the part of it that was read.
struct LengthCheck {
    /// The length in bytes, or `None` if it is unknown.
    length: Option<u64>,
    /// The number of bytes that the opened body has returned.
    read: u64,
    /// The last data, which is returned once the opened body has shown that nothing follows it.
    last: Option<Bytes>,
    /// The trailers behind the last data.
    trailers: Option<Frame<Bytes>>,
    /// `true` if the opened body has ended.
    over: bool,
}

/// Returns the length hint of a body of this length.
pub(super) fn hint_of(length: Option<u64>) -> SizeHint {
    length.map_or_else(SizeHint::default, SizeHint::with_exact)
}

impl<B: Body> Checked<B> {
    /// Returns an error if the opened body states another length.
    pub(super) fn new(opened: B, length: Option<u64>) -> Result<Self, UploadError> {
        let hint = opened.size_hint();
        let actual = match (length, hint.upper()) {
            (Some(expected), _) if hint.lower() > expected => hint.lower(),
            (Some(expected), Some(upper)) if upper < expected => upper,
            _ => {
                return Ok(Self {
                    opened: SyncWrapper::new(opened),
                    check: LengthCheck { length, read: 0, last: None, trailers: None, over: false },
                });
            }
        };
        Err(UploadError::Length { expected: length.unwrap_or_default(), actual })
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Body for Checked<B> {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.project();
        let (mut opened, check) = (this.opened.get_pin_mut(), this.check);
        loop {
            if let Some(trailers) = check.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            let data = match ready!(opened.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(trailers) => return Poll::Ready(Some(check.end_with(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(read_error(error.into())))),
                None => return Poll::Ready(check.end()),
            };
            check.read = check.read.saturating_add(length_of(&data));
            let ended = opened.is_end_stream();
            match check.length {
                Some(expected) if check.read > expected => {
                    return Poll::Ready(Some(Err(check.mismatch(expected))));
                }
                Some(expected) if check.read == expected && !ended => {
                    if !data.is_empty() {
                        check.last = Some(data);
                    }
                }
                length => {
                    check.over = ended && length.is_none_or(|expected| check.read == expected);
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let LengthCheck { over, last, trailers, .. } = &self.check;
        *over && last.is_none() && trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let LengthCheck { length, read, last, .. } = &self.check;
        let returned = read - last.as_ref().map_or(0, length_of);
        hint_of(length.map(|length| length.saturating_sub(returned)))
    }
}

impl LengthCheck {
    /// Returns the last data, or an error if bytes are missing.
    fn end(&mut self) -> Option<Result<Frame<Bytes>, UploadError>> {
        self.over = true;
        match self.missing() {
            Some(error) => Some(Err(error)),
            None => self.last.take().map(|data| Ok(Frame::data(data))),
        }
    }

    /// Returns the trailers, or the last data before them.
    fn end_with(&mut self, trailers: Frame<Bytes>) -> Result<Frame<Bytes>, UploadError> {
        if let Some(error) = self.missing() {
            return Err(error);
        }
        match self.last.take() {
            Some(data) => {
                self.trailers = Some(trailers);
                Ok(Frame::data(data))
            }
            None => Ok(trailers),
        }
    }

    fn missing(&self) -> Option<UploadError> {
        self.length.filter(|expected| self.read < *expected).map(|expected| self.mismatch(expected))
    }

    fn mismatch(&self, expected: u64) -> UploadError {
        UploadError::Length { expected, actual: self.read }
    }
}

/// Returns the error of an opened body, which may already be an upload's.
fn read_error(error: BoxError) -> UploadError {
    match error.downcast::<UploadError>() {
        Ok(error) => *error,
        Err(error) => UploadError::Read(Arc::from(error)),
    }
}
