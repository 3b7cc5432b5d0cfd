//! What the last reader of a body takes out of the shared state, to go on without a lock.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::{Source, Stage, State};
use crate::replay::BoxError;
use crate::replay::frames::{Kept, Remaining};
use crate::replay::memory::{Allowance, least_charge};
use crate::replay::progress::{self, Polled, Progress};
use crate::replay::wakers::ReaderId;

/// The rest of a body, in the hands of one reader.
pub(super) struct Own<B> {
    /// What was kept for it. Empty for one that was ahead of all the others.
    frames: Remaining,
    allowance: Allowance,
    /// What follows; `None` if nothing does.
    source: Option<Source<B>>,
    /// Nothing does, and the source had said so with its last frame.
    ended: bool,
}

impl<B> State<B> {
    /// Everything, for a reader that is the only one there will ever be: no other can go on, and the
    /// first frame is gone.
    #[cold]
    pub(super) fn hand_over(&mut self, reader: ReaderId, position: u64) -> Option<Box<Own<B>>> {
        let alone = self.readers == 1 && !self.has_cancelled(reader);
        let gone = position > 0 && position == self.frames.start();
        if !alone || !gone || !matches!(self.stage, Stage::Open | Stage::Done) {
            return None;
        }
        // One that has said all stays where it is, for here it cannot be dropped.
        let source = if self.stage == Stage::Open { self.source.take() } else { None };
        Some(Box::new(Own {
            frames: self.frames.hand_over(),
            allowance: self.allowance.hand_over(),
            source,
            ended: self.ended,
        }))
    }
}

impl<B> Own<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    #[inline]
    pub(super) fn poll_frame(
        &mut self,
        progress: &mut Progress,
        cx: &mut Context<'_>,
        failed: impl FnOnce(),
    ) -> Polled {
        if let Some(kept) = self.frames.next() {
            return self.again(kept, progress);
        }
        match &mut self.source {
            Some(source) => progress.ask(source.as_mut(), cx, failed),
            None => {
                progress.stage = progress::Stage::Done;
                Poll::Ready(None)
            }
        }
    }

    #[inline]
    fn again(&mut self, kept: Kept, progress: &mut Progress) -> Polled {
        progress.ended = self.ended && self.frames.is_empty();
        match kept {
            Kept::Data(data) => {
                self.allowance.give_back(least_charge(data.len()));
                progress.give(data)
            }
            Kept::Trailers(trailers) => Poll::Ready(Some(Ok(Frame::trailers(*trailers)))),
            Kept::Failed(error) => {
                progress.stage = progress::Stage::Done;
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }
}
