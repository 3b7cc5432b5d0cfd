//! One reader of a shared body: its place among the frames, its coming and its going.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{Shared, State};
use crate::replay::frames::{Frames, Next};
use crate::replay::wakers::{Afterwards, ReaderId, wake_all};
use crate::replay::{BoxError, Progress, ReplayLimits};

/// One reader of a shared body.
pub(in crate::replay) struct Reader<B> {
    // Pinned, for the caller's body lies in it and must not move once it was polled.
    shared: Pin<Arc<Shared<B>>>,
    id: ReaderId,
    /// Frames read so far.
    position: u64,
    /// It has been polled, so that it counts among those that may wait.
    polled: bool,
    pub(in crate::replay) progress: Progress,
}

impl<B> Reader<B> {
    pub(in crate::replay) fn new(source: B, limits: &ReplayLimits) -> Self
    where
        B: Body,
    {
        let hint = source.size_hint();
        let mut frames = Frames::default();
        frames.join();
        let state = State {
            source,
            ended: false,
            finished: false,
            failed: false,
            frames,
            allowance: limits.allowance(),
            readers: 1,
            polled: 0,
            next_id: 1,
            cancelled_below: 0,
            survivor: 0,
            lone: None,
            wakers: None,
        };
        Self::at_start(Arc::pin(Shared { hint, state: Mutex::new(state) }), 0)
    }

    fn at_start(shared: Pin<Arc<Shared<B>>>, id: ReaderId) -> Self {
        Self { shared, id, position: 0, polled: false, progress: Progress::default() }
    }

    pub(in crate::replay) fn try_clone(&self) -> Option<Self> {
        let mut state = self.shared.lock();
        if !state.can_replay(self.id, self.position) {
            return None;
        }
        let id = state.next_id;
        state.next_id += 1;
        state.readers += 1;
        state.frames.join();
        drop(state);
        Some(Self::at_start(self.shared.clone(), id))
    }

    pub(in crate::replay) fn is_replayable(&self) -> bool {
        self.shared.lock().can_replay(self.id, self.position)
    }

    pub(in crate::replay) fn source_failed(&self) -> bool {
        self.shared.lock().failed
    }

    /// The caller's size hint before anything was read.
    pub(in crate::replay) fn hint(&self) -> SizeHint {
        self.shared.hint
    }

    pub(in crate::replay) fn cancel_others(&self) {
        let mut wake = Vec::new();
        let mut freed = None;
        let mut state = self.shared.lock();
        if state.refusal(self.id, self.position).is_none() && state.readers > 1 {
            state.cancelled_below = state.next_id;
            state.survivor = self.id;
            state.readers = 1;
            state.polled = usize::from(self.polled);
            freed = state.frames.leave_all_but(self.position);
            state.give_back(freed.as_ref());
            if let Some(wakers) = &state.wakers {
                wake = wakers.take_all_but(Some(self.id));
            }
            wake.extend(state.lone.take_if(|(id, _)| *id != self.id));
        }
        drop(state);
        drop(freed);
        wake_all(wake);
    }

    pub(in crate::replay) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        if self.progress.done {
            return Poll::Ready(None);
        }
        let mut afterwards = Afterwards::default();
        let mut state = self.shared.lock();
        if let Some(refusal) = state.refusal(self.id, self.position) {
            self.progress.done = true;
            // A reader that has had everything misses nothing.
            let error = (!self.progress.ended).then(|| Err(refusal.into()));
            return Poll::Ready(error);
        }
        if !self.polled {
            self.polled = true;
            state.polled += 1;
        }
        let next = state.next(self.id, self.position, cx, &mut afterwards);
        if let Poll::Ready(Some(_)) = next {
            self.position += 1;
            self.progress.ended = state.ended && self.position == state.frames.end();
        }
        drop(state);
        afterwards.run();
        match ready!(next) {
            Some(Next::Data(data)) => {
                self.progress.count(data.len());
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Next::Other(other)) => {
                self.progress.done = other.is_err();
                Poll::Ready(Some(*other))
            }
            None => {
                self.progress.done = true;
                Poll::Ready(None)
            }
        }
    }
}

impl<B> Drop for Reader<B> {
    fn drop(&mut self) {
        let mut wake = Vec::new();
        let mut freed = None;
        let mut own = None;
        let mut state = self.shared.lock();
        if state.refusal(self.id, self.position).is_none() {
            state.readers -= 1;
            state.polled -= usize::from(self.polled);
            freed = state.frames.leave(self.position);
            state.give_back(freed.as_ref());
            own = state.lone.take_if(|(id, _)| *id == self.id);
            // The source may hold no other waker than the one of this reader's task: those who wait
            // with it have to poll the source again.
            if let (true, Some(wakers)) = (self.polled, &state.wakers) {
                wake = wakers.take_all_but(None);
            }
        }
        drop(state);
        drop((freed, own));
        wake.retain(|(id, _)| *id != self.id);
        wake_all(wake);
    }
}
