//! The frames of a body that were read before a reader asked for them. In flows a body in memory, before
//! it has readers; out flows its only frame, or else what the readers are to get first.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body;

use crate::error::BoxError;
use crate::frames::Next;
use crate::memory::least_charge;

/// What a body has said to nobody yet: nothing, one answer, or a frame and what followed on it.
#[derive(Default)]
pub(super) struct Said {
    first: Option<Answer>,
    second: Option<Next>,
}

/// A frame, or the end.
type Answer = Option<Next>;

impl Said {
    pub(super) fn once(answer: Answer) -> Self {
        Self { first: Some(answer), second: None }
    }

    /// Asks a body in memory, of this length if it is known, for its first frame. Returns its data if
    /// that is all there is.
    #[inline]
    pub(super) fn ask<B>(mut body: Pin<&mut B>, length: Option<u64>) -> Result<Bytes, Self>
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
        if length.is_some_and(|length| length != read) {
            return Err(Self::once(Some(Next::Data(data))));
        }
        if body.is_end_stream() {
            return Ok(data);
        }
        match body.poll_frame(&mut context).map(Next::of) {
            Poll::Ready(None) => Ok(data),
            Poll::Ready(second) => Err(Self { first: Some(Some(Next::Data(data))), second }),
            Poll::Pending => Err(Self::once(Some(Next::Data(data)))),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// What the data that is still to be told is charged with.
    pub(super) fn charge(&self) -> usize {
        let all = self.first.iter().flatten().chain(&self.second);
        let charge = |next: &Next| match next {
            Next::Data(data) => least_charge(data.len()),
            Next::Other(_) | Next::Failed(_) => 0,
        };
        all.map(charge).fold(0, usize::saturating_add)
    }

    /// The next answer, which is told now.
    pub(super) fn tell(&mut self) -> Answer {
        let next = self.second.take().map(Some);
        std::mem::replace(&mut self.first, next).flatten()
    }
}
