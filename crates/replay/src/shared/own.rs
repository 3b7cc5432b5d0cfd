//! What the last reader of a body takes out of the shared state, to go on without a lock.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;

use super::{Source, Stage, State};
use crate::error::BoxError;
use crate::frames::{Next, Remaining};
use crate::memory::Allowance;
use crate::progress::{self, Polled, Progress};
use crate::wakers::ReaderId;

/// The rest of a body, in the hands of one reader.
pub(super) struct Own<B> {
    /// The caller's body, once nothing is to be read before it.
    source: Option<Source<B>>,
    /// What was kept for the reader. Empty for one that was ahead of all the others.
    frames: Remaining,
    allowance: Allowance,
    /// What follows on the frames; `None` if nothing does.
    following: Option<Source<B>>,
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
        let following = if self.stage == Stage::Open { self.source.take() } else { None };
        Some(Box::new(Own {
            source: None,
            frames: self.frames.hand_over(&mut self.allowance),
            allowance: self.allowance.hand_over(),
            following,
            ended: self.ended,
        }))
    }
}

impl<B> Own<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    #[inline(always)]
    pub(super) fn poll_frame(
        &mut self,
        progress: &mut Progress,
        cx: &mut Context<'_>,
        failed: impl FnOnce(),
    ) -> Polled {
        match &mut self.source {
            Some(source) => progress.ask(source.as_mut(), cx, failed),
            None => self.again(progress, cx, failed),
        }
    }

    /// What was kept, then what follows on it.
    #[inline(never)]
    fn again(
        &mut self,
        progress: &mut Progress,
        cx: &mut Context<'_>,
        failed: impl FnOnce(),
    ) -> Polled {
        let Some((kept, charge)) = self.frames.next() else {
            return self.follow(progress, cx, failed);
        };
        progress.end.ended = self.ended && self.frames.is_empty();
        self.allowance.give_back(charge);
        match Next::from(kept) {
            Next::Data(data) => progress.give(data),
            Next::Other(frame) => Poll::Ready(Some(Ok(*frame))),
            Next::Failed(error) => progress.end.fail(error),
        }
    }

    #[cold]
    fn follow(
        &mut self,
        progress: &mut Progress,
        cx: &mut Context<'_>,
        failed: impl FnOnce(),
    ) -> Polled {
        self.source = self.following.take();
        match &mut self.source {
            Some(source) => progress.ask(source.as_mut(), cx, failed),
            None => {
                progress.end.stage = progress::Stage::Done;
                Poll::Ready(None)
            }
        }
    }
}
