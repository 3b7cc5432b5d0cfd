//! The rest of a body, owned by its last reader, which needs no lock.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;

use super::{Source, SourceStage, State};
use crate::error::BoxError;
use crate::frames::{Next, Remaining};
use crate::memory::Allowance;
use crate::progress::{self, Polled, Progress};
use crate::source_watch::SourceWatch;
use crate::wakers::ReaderId;

/// The rest of a body, taken out of the shared state by its last reader.
pub(super) struct SoleReader<B> {
    /// The caller's body, once all kept frames have been returned.
    source: Option<Source<B>>,
    /// The frames kept for the reader. Empty if it was the leader.
    frames: Remaining,
    allowance: Allowance,
    /// The caller's body after those frames, or `None` after its end.
    following: Option<Source<B>>,
    source_watch: Option<SourceWatch>,
    /// `true` if the body was at its end when it returned the last of those frames.
    ended: bool,
}

impl<B> State<B> {
    /// Takes everything out for a reader that will remain the only one. No other can continue, and none can be created,
    /// because the first frame is gone.
    #[cold]
    pub(super) fn hand_over(&mut self, reader: ReaderId, position: u64) -> Option<Box<SoleReader<B>>> {
        let alone = self.readers == 1 && !self.has_cancelled(reader);
        let gone = position > 0 && position == self.frames.start();
        if !alone || !gone || !matches!(self.stage, SourceStage::Open | SourceStage::Done) {
            return None;
        }
        // A source that has ended stays here, because dropping it under the lock could run foreign code.
        let following = if self.stage == SourceStage::Open { self.source.take() } else { None };
        Some(Box::new(SoleReader {
            source: None,
            frames: self.frames.hand_over(&mut self.allowance),
            allowance: self.allowance.hand_over(),
            following,
            source_watch: self.source_watch.clone(),
            ended: self.ended,
        }))
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> SoleReader<B> {
    #[inline(always)]
    pub(super) fn poll_frame(
        &mut self,
        progress: &mut Progress,
        cx: &mut Context<'_>,
        failed: impl FnOnce(),
    ) -> Polled {
        let polled = match &mut self.source {
            Some(source) => progress.poll_source(source.as_mut(), cx, failed),
            None => self.poll_kept(progress, cx, failed),
        };
        if let Some(watch) = &self.source_watch {
            watch.set(polled.is_pending());
        }
        polled
    }

    /// Returns the kept frames, then the frames of the caller's body.
    #[inline(never)]
    fn poll_kept(&mut self, progress: &mut Progress, cx: &mut Context<'_>, failed: impl FnOnce()) -> Polled {
        let Some((kept, charge)) = self.frames.next() else {
            return self.poll_following(progress, cx, failed);
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
    fn poll_following(&mut self, progress: &mut Progress, cx: &mut Context<'_>, failed: impl FnOnce()) -> Polled {
        self.source = self.following.take();
        match &mut self.source {
            Some(source) => progress.poll_source(source.as_mut(), cx, failed),
            None => {
                progress.end.stage = progress::BodyStage::Done;
                Poll::Ready(None)
            }
        }
    }
}
