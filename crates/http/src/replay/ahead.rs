//! What a body says when it is asked before it has readers: nearly always that one frame is all.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body;

use super::frames::Next;
use super::{BoxError, ReplayLimits};

/// What a body has said to nobody yet: nothing, one answer or two.
#[derive(Default)]
pub(super) struct Said {
    first: Option<Answer>,
    second: Option<Answer>,
}

/// A frame, or the end.
type Answer = Option<Next>;

impl Said {
    pub(super) fn once(answer: Answer) -> Self {
        Self { first: Some(answer), second: None }
    }

    /// Asks a body of this length, if it tells one, whether its first frame is all. If so returns its
    /// data.
    #[inline]
    pub(super) fn ask<B>(
        mut body: Pin<&mut B>,
        length: Option<u64>,
        limits: &ReplayLimits,
    ) -> Result<Bytes, Self>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        // Whoever asks next leaves the waker that counts.
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(first) = body.as_mut().poll_frame(&mut context) else {
            return Err(Self::default());
        };
        let data = match Next::of(first) {
            Some(Next::Data(data)) => data,
            other => return Err(Self::once(other)),
        };
        let read = u64::try_from(data.len()).unwrap_or(u64::MAX);
        // A length that was told is one that they allow.
        if !length.map_or_else(|| limits.allow(read), |length| length == read) {
            return Err(Self::once(Some(Next::Data(data))));
        }
        if body.is_end_stream() {
            return Ok(data);
        }
        match body.poll_frame(&mut context).map(Next::of) {
            Poll::Ready(None) => Ok(data),
            Poll::Ready(second) => {
                Err(Self { first: Some(Some(Next::Data(data))), second: Some(second) })
            }
            Poll::Pending => Err(Self::once(Some(Next::Data(data)))),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The next answer, which is told now.
    pub(super) fn tell(&mut self) -> Option<Answer> {
        std::mem::replace(&mut self.first, self.second.take())
    }
}
