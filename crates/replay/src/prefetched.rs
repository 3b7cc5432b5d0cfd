//! Prefetched frames, which are read from a body before a reader polls for them.
//!
//! An in-memory or single-message body is polled when its first reader is created. If it has a single frame, each
//! reader gets that frame by reference and nothing is shared. Otherwise the frames read so far are stored here for the
//! readers.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body;

use crate::error::BoxError;
use crate::frames::Next;
use crate::memory::least_charge;

/// Up to two results that no reader has returned yet: a frame or the end, and the result after a frame.
#[derive(Default)]
pub(super) struct Prefetched {
    first: Option<Answer>,
    second: Option<Next>,
}

/// A frame, or the end.
type Answer = Option<Next>;

impl Prefetched {
    pub(super) fn once(answer: Answer) -> Self {
        Self { first: Some(answer), second: None }
    }

    /// Polls a body whose length may be known. Returns its data if it consists of a single frame.
    #[inline]
    pub(super) fn poll_body<B>(mut body: Pin<&mut B>, length: Option<u64>) -> Result<Bytes, Self>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        // No reader is waiting yet; the first one that polls registers its own waker.
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

    /// Copies the data frames below this length, because a frame may be a small slice of a large buffer.
    pub(super) fn copied(self, below: usize) -> Self {
        let copied = |next: Next| next.copied(below);
        Self { first: self.first.map(|first| first.map(copied)), second: self.second.map(copied) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the charge for the stored data.
    pub(super) fn charge(&self) -> usize {
        let all = self.first.iter().flatten().chain(&self.second);
        let charge = |next: &Next| match next {
            Next::Data(data) => least_charge(data.len()),
            Next::Other(_) | Next::Failed(_) => 0,
        };
        all.map(charge).fold(0, usize::saturating_add)
    }

    /// Takes the next result.
    pub(super) fn pop(&mut self) -> Answer {
        let next = self.second.take().map(Some);
        std::mem::replace(&mut self.first, next).flatten()
    }
}
