//! An opened body whose length is checked while it is read.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame};

use super::UploadError;
use super::source::Opened;
use crate::error::BoxError;
use crate::progress::length_of;

/// An opened body, which never completes with another length than the upload's.
pub(super) struct Checked {
    opened: Opened,
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

impl Checked {
    pub(super) fn new(opened: Opened, length: Option<u64>) -> Self {
        Self { opened, length, read: 0, last: None, trailers: None, over: false }
    }

    /// Returns `true` if nothing follows.
    pub(super) fn is_over(&self) -> bool {
        self.over && self.last.is_none() && self.trailers.is_none()
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            let data = match ready!(self.opened.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(trailers) => return Poll::Ready(Some(self.end_with(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(read_error(error)))),
                None => return Poll::Ready(self.end()),
            };
            self.read = self.read.saturating_add(length_of(&data));
            let ended = self.opened.is_end_stream();
            match self.length {
                Some(expected) if self.read > expected => return Poll::Ready(Some(Err(self.mismatch(expected)))),
                Some(expected) if self.read == expected && !ended => {
                    if !data.is_empty() {
                        self.last = Some(data);
                    }
                }
                length => {
                    self.over = ended && length.is_none_or(|expected| self.read == expected);
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
            }
        }
    }

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
