//! A reader's position in a body, its end, and the remaining length.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::error::{BoxError, ReplayError};

/// The result of polling a reader.
pub(super) type Polled = PolledFrom<BoxError>;

/// The result of polling the caller's body.
pub(super) type PolledFrom<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// The number of bytes that a reader has returned, and its end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// The number of data bytes returned so far.
    pub(super) read: u64,
    pub(super) end: End,
}

/// The end of a body, as seen by one reader.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct End {
    /// `true` if nothing follows the last returned frame.
    pub(super) ended: bool,
    pub(super) stage: BodyStage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BodyStage {
    #[default]
    Open,
    /// The caller's body is being polled, or has panicked.
    Polling,
    /// The end, or an error, has been returned.
    Done,
    /// The error of the caller's body has been returned to its only reader.
    Failed,
}

impl Progress {
    /// Counts data that is about to be returned.
    #[inline]
    pub(super) fn count(&mut self, data: &Bytes) {
        // Even at memory speed, wrapping would take decades.
        self.read = self.read.wrapping_add(length_of(data));
    }

    /// Counts data and returns it.
    #[inline]
    pub(super) fn give(&mut self, data: Bytes) -> Polled {
        self.count(&data);
        given(data)
    }

    /// Polls a body with a single reader.
    #[inline(always)]
    pub(super) fn poll_source<B>(&mut self, body: Pin<&mut B>, cx: &mut Context<'_>, failed: impl FnOnce()) -> Polled
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let Self { read, end } = self;
        end.poll_source(body, cx, |data| *read = read.wrapping_add(length_of(data)), failed)
    }
}

/// Returns the length of a chunk.
#[inline]
pub(super) fn length_of(data: &Bytes) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}

#[inline]
fn given(data: Bytes) -> Polled {
    Poll::Ready(Some(Ok(Frame::data(data))))
}

impl End {
    pub(super) fn is_done(self) -> bool {
        matches!(self.stage, BodyStage::Done | BodyStage::Failed)
    }

    /// Returns `true` if the caller's body failed while this was its only reader.
    pub(super) fn has_failed(self) -> bool {
        matches!(self.stage, BodyStage::Polling | BodyStage::Failed)
    }

    /// Returns `true` if nothing follows.
    #[inline]
    pub(super) fn at_end(self) -> bool {
        self.ended || self.is_done()
    }

    /// Ends the body with an error.
    #[cold]
    pub(super) fn fail(&mut self, error: ReplayError) -> Polled {
        self.stage = BodyStage::Done;
        Poll::Ready(Some(Err(error.into())))
    }

    /// Polls a body with a single reader, and counts its data.
    #[inline(always)]
    pub(super) fn poll_source<B>(
        &mut self,
        mut body: Pin<&mut B>,
        cx: &mut Context<'_>,
        count: impl FnOnce(&Bytes),
        failed: impl FnOnce(),
    ) -> Polled
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        if self.stage != BodyStage::Open {
            return self.closed();
        }
        let unless_it_panics = BodyPanic(&mut self.stage);
        let polled = body.as_mut().poll_frame(cx);
        let ended = body.is_end_stream();
        std::mem::forget(unless_it_panics);
        match data_of(polled) {
            Ok(data) => {
                self.ended = ended;
                count(&data);
                given(data)
            }
            Err(other) => self.record_other(other, ended, failed),
        }
    }

    /// Slow path: records all results other than data.
    #[cold]
    #[inline(never)]
    fn record_other<E: Into<BoxError>>(&mut self, polled: PolledFrom<E>, ended: bool, failed: impl FnOnce()) -> Polled {
        polled.map(|answer| match answer {
            Some(Ok(frame)) => {
                self.ended = ended;
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                self.stage = BodyStage::Failed;
                failed();
                Some(Err(source_error(error).into()))
            }
            None => {
                self.stage = BodyStage::Done;
                None
            }
        })
    }

    /// Returns the result of a poll after the end: first an error if the body panicked, then the end.
    #[cold]
    pub(super) fn closed(&mut self) -> Polled {
        let panicked = self.stage == BodyStage::Polling;
        self.stage = if panicked { BodyStage::Failed } else { self.stage };
        Poll::Ready(panicked.then(|| Err(panic_error().into())))
    }
}

/// Returns `true` if a body returned data.
#[inline(always)]
pub(super) fn is_data<E>(polled: &PolledFrom<E>) -> bool {
    matches!(polled, Poll::Ready(Some(Ok(frame))) if frame.is_data())
}

/// Separates data from all other results of a poll.
///
/// Moving a frame is costly because it has room for trailers. Nearly all frames are data, so the data is taken out
/// first, with one comparison.
#[inline(always)]
pub(super) fn data_of<E>(polled: PolledFrom<E>) -> Result<Bytes, PolledFrom<E>> {
    match polled {
        Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
            frame.into_data().map_err(|frame| Poll::Ready(Some(Ok(frame))))
        }
        other => Err(other),
    }
}

/// A drop guard that records a panic in the body. Without a panic, it is forgotten instead of dropped.
struct BodyPanic<'a>(&'a mut BodyStage);

impl Drop for BodyPanic<'_> {
    fn drop(&mut self) {
        *self.0 = BodyStage::Polling;
    }
}

/// Converts an error of the caller's body to the form that every reader returns.
#[cold]
pub(super) fn source_error(error: impl Into<BoxError>) -> ReplayError {
    ReplayError::Source(Arc::from(error.into()))
}

/// Creates the error for a body that panicked. The body is not polled again, because a frame may have been lost.
#[cold]
pub(super) fn panic_error() -> ReplayError {
    source_error("the body panicked")
}

/// A compact size hint: `u64::MAX` means no upper bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    lower: u64,
    upper: u64,
}

impl Length {
    #[inline]
    pub(super) fn new(hint: &SizeHint) -> Self {
        Self { lower: hint.lower(), upper: hint.upper().unwrap_or(u64::MAX) }
    }

    /// Returns the remaining length after this chunk.
    #[inline]
    pub(super) fn after(self, data: &Bytes) -> Self {
        self.less(length_of(data))
    }

    /// Returns the remaining length after `read` bytes.
    #[inline]
    pub(super) fn less(self, read: u64) -> Self {
        let upper = match self.upper {
            u64::MAX => u64::MAX,
            upper => upper.saturating_sub(read),
        };
        Self { lower: self.lower.saturating_sub(read), upper }
    }

    #[inline]
    pub(super) fn hint(self) -> SizeHint {
        let mut hint = SizeHint::new();
        // The lower bound is set first, because `SizeHint` panics if the upper bound is below it. Both were reduced
        // equally.
        hint.set_lower(self.lower);
        if self.upper != u64::MAX {
            hint.set_upper(self.upper);
        }
        hint
    }
}
