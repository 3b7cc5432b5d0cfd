//! How a reader comes by its next frame: kept, or fresh from the caller's body.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use parking_lot::{Mutex, MutexGuard};
use sync_wrapper::SyncWrapper;

use super::own::Own;
use super::{NOBODY, Stage, State};
use crate::error::BoxError;
use crate::frames::Next;
use crate::memory::least_charge;
use crate::progress::{
    self, Polled, PolledFrom, Progress, data_of, is_data, length_of, panic_error,
};
use crate::wakers::{Afterwards, ReaderId};

/// Where a reader stands.
pub(super) struct Place<B> {
    /// The body, once this reader has it to itself.
    pub(super) own: Option<SyncWrapper<Box<Own<B>>>>,
    pub(super) progress: Progress,
    pub(super) id: ReaderId,
    /// Frames read so far, while they are counted: as long as the body is shared.
    pub(super) position: u64,
    /// It has asked for a fresh frame, so that it counts among those that may wait.
    pub(super) asked: bool,
}

impl<B> Place<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    /// The next frame of a shared body. What nearly every frame does is written out here, in as few
    /// steps as may be: the leader's fresh data is kept, returned, and nobody is told.
    #[inline(never)]
    pub(super) fn poll(&mut self, shared: &Mutex<State<B>>, cx: &mut Context<'_>) -> Polled {
        let mut guard = shared.lock();
        let state = &mut *guard;
        if state.leader != self.id {
            return self.again(guard, cx);
        }
        let Some(source) = &mut state.source else { return self.next(guard, cx) };
        let unless_it_panics = Panicked { stage: &mut state.stage, leader: &mut state.leader };
        let polled = source.as_mut().poll_frame(cx);
        let ended = source.is_end_stream();
        state.ended = ended;
        std::mem::forget(unless_it_panics);
        // Asked by itself first, which leaves the frame where it is: half as many moves.
        if ended || !is_data(&polled) {
            return self.led(guard, cx, polled);
        }
        let data = match data_of(polled) {
            Ok(data) => data,
            Err(other) => return self.led(guard, cx, other),
        };
        if data.len() < state.copied_below {
            if !state.frames.append(&data) {
                return self.led(guard, cx, Poll::Ready(Some(Ok(Frame::data(data)))));
            }
        } else if state.allowance.take(least_charge(data.len())) {
            state.frames.push_data(data.clone(), &mut state.allowance);
            self.position += 1;
        } else {
            return self.led(guard, cx, Poll::Ready(Some(Ok(Frame::data(data)))));
        }
        self.progress.count(&data);
        self.progress.end.ended = ended;
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    /// Whatever else the leader may hear from the source.
    #[cold]
    #[inline(never)]
    fn led(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &mut Context<'_>,
        polled: PolledFrom<B::Error>,
    ) -> Polled {
        guard.leader = NOBODY;
        self.answered(guard, cx, polled.map(Next::of))
    }

    /// The next frame in a few steps, if it was kept and has to stay.
    #[inline(never)]
    fn again(&mut self, mut guard: MutexGuard<'_, State<B>>, cx: &mut Context<'_>) -> Polled {
        let state = &mut *guard;
        if !state.has_cancelled(self.id)
            && let Some((data, last)) = state.frames.advance_data(self.position)
        {
            state.polled = true;
            self.position += 1;
            self.progress.end.ended = last && state.ended;
            if last {
                state.leader = NOBODY;
            }
            return self.progress.give(data);
        }
        if state.readers == 1
            && let Some(own) = state.hand_over(self.id, self.position)
        {
            let waited = (state.lone.take(), state.wakers.take());
            let shared = MutexGuard::mutex(&guard);
            drop(guard);
            drop(waited);
            self.own = Some(SyncWrapper::new(own));
            return self.poll_own(shared, cx);
        }
        self.next(guard, cx)
    }

    /// The next frame of a body that this reader has to itself.
    #[inline(always)]
    pub(super) fn poll_own(&mut self, shared: &Mutex<State<B>>, cx: &mut Context<'_>) -> Polled {
        let Some(own) = &mut self.own else { return Poll::Ready(None) };
        // The others are refused by now, but may be asked why the call failed.
        let failed = || shared.lock().stage = Stage::Failed;
        own.get_mut().poll_frame(&mut self.progress, cx, failed)
    }

    /// Whatever comes to pass.
    #[inline(never)]
    fn next(&mut self, mut guard: MutexGuard<'_, State<B>>, cx: &mut Context<'_>) -> Polled {
        let state = &mut *guard;
        state.polled = true;
        if self.progress.end.is_done() {
            return Poll::Ready(None);
        }
        if let Some(refusal) = state.refusal(self.id, self.position) {
            self.progress.end.stage = progress::Stage::Done;
            // A reader that has had everything misses nothing.
            return Poll::Ready((!self.progress.end.ended).then(|| Err(refusal.into())));
        }
        if let Some(kept) = state.frames.advance(self.position, &mut state.allowance) {
            self.position += 1;
            if self.position == state.frames.end() {
                self.progress.end.ended = state.ended;
                state.leader = NOBODY;
            }
            drop(guard);
            return self.give(Some(kept.into()));
        }
        if !self.asked {
            self.asked = true;
            state.asking += 1;
        }
        let next = match state.stage {
            Stage::Ahead => {
                let said = state.ahead.tell();
                // From now on it is kept for another reader, or it is not, like all that follows.
                state.allowance.give_back(std::mem::take(&mut state.ahead_charge));
                if state.ahead.is_empty() {
                    // Should it panic, an error takes the place of what it has said.
                    state.stage = Stage::Asking;
                    state.ended = state.source.as_ref().is_none_or(|source| source.is_end_stream());
                    state.stage = Stage::Open;
                }
                said
            }
            Stage::Open => return self.ask(guard, cx),
            Stage::Asking => Some(Next::Failed(panic_error())),
            Stage::Done | Stage::Failed => None,
        };
        self.answered(guard, cx, Poll::Ready(next))
    }

    /// Polls the source, alone or for all who wait.
    fn ask(&mut self, mut guard: MutexGuard<'_, State<B>>, cx: &mut Context<'_>) -> Polled {
        let state = &mut *guard;
        state.leader = NOBODY;
        let mut afterwards = Afterwards::default();
        let all = (state.asking > 1)
            .then(|| state.wait_with_others(self.id, cx.waker(), &mut afterwards));
        let mut ahead = None;
        let next = match &mut state.source {
            Some(source) => {
                let waker = all.as_ref().unwrap_or(cx.waker());
                let context = &mut Context::from_waker(waker);
                state.stage = Stage::Asking;
                let next = source.as_mut().poll_frame(context).map(Next::of);
                state.ended = source.is_end_stream();
                if let Poll::Ready(Some(Next::Data(data))) = &next
                    && !state.ended
                    && state.readers > 1
                    && state.frames.end() == 0
                    && state.may_be_all.contains(&length_of(data))
                    && let Poll::Ready(answer) = source.as_mut().poll_frame(context)
                {
                    ahead = Some(Next::of(answer));
                }
                state.stage = Stage::Open;
                next
            }
            // It had said all when it was asked ahead.
            None => Poll::Ready(None),
        };
        if all.is_some() {
            state.tell_others(self.id, next.is_ready(), &mut afterwards);
        }
        self.conclude(guard, cx, next, ahead, afterwards)
    }

    #[cold]
    fn answered(
        &mut self,
        guard: MutexGuard<'_, State<B>>,
        cx: &Context<'_>,
        next: Poll<Option<Next>>,
    ) -> Polled {
        self.conclude(guard, cx, next, None, Afterwards::default())
    }

    /// This reader, at the end, has heard what the source says, and perhaps what it says after that.
    fn conclude(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &Context<'_>,
        next: Poll<Option<Next>>,
        ahead: Option<Option<Next>>,
        mut afterwards: Afterwards,
    ) -> Polled {
        let state = &mut *guard;
        match &next {
            Poll::Pending if state.asking == 1 => {
                state.wait_alone(self.id, cx.waker(), &mut afterwards);
            }
            Poll::Pending => {}
            Poll::Ready(None) => state.stage = Stage::Done,
            Poll::Ready(Some(next)) => {
                if matches!(next, Next::Failed(_)) {
                    state.stage = Stage::Failed;
                }
                state.keep(next, self.id, &mut afterwards);
                if let Some(answer) = ahead {
                    state.read_ahead(answer, self.id, &mut afterwards);
                }
                self.position = state.frames.end();
                self.progress.end.ended = state.ended;
                if state.ended && state.stage == Stage::Open {
                    state.stage = Stage::Done;
                }
            }
        }
        // What it still holds is not charged.
        let over = matches!(state.stage, Stage::Done | Stage::Failed);
        let spent = if over { state.source.take() } else { None };
        if state.stage == Stage::Open
            && state.asking == 1
            && state.readers > 1
            && state.frames.one_at_end()
        {
            state.leader = self.id;
        }
        drop(guard);
        drop(spent);
        afterwards.run();
        match next {
            Poll::Ready(next) => self.give(next),
            Poll::Pending => Poll::Pending,
        }
    }

    fn give(&mut self, next: Option<Next>) -> Polled {
        let last = match next {
            Some(Next::Data(data)) => return self.progress.give(data),
            Some(Next::Other(frame)) => return Poll::Ready(Some(Ok(*frame))),
            Some(Next::Failed(error)) => Some(Err(error.into())),
            None => None,
        };
        self.progress.end.stage = progress::Stage::Done;
        Poll::Ready(last)
    }
}

/// What becomes of the source that the leader asks, should it panic. Only then is this dropped, so
/// that every other frame does without the notes that would say the same.
struct Panicked<'a> {
    stage: &'a mut Stage,
    leader: &'a mut ReaderId,
}

impl Drop for Panicked<'_> {
    fn drop(&mut self) {
        *self.stage = Stage::Asking;
        *self.leader = NOBODY;
    }
}

impl<B> State<B> {
    /// A reader at the end has read one more frame: keeps it if another reader needs it.
    fn keep(&mut self, next: &Next, reader: ReaderId, afterwards: &mut Afterwards) {
        if self.readers == 1 {
            self.frames.pass();
            return;
        }
        let kept = match next {
            Next::Data(data) if data.len() < self.copied_below => {
                self.frames.push_copy(data, &mut self.allowance)
            }
            _ => self.keep_by_reference(next),
        };
        if !kept {
            self.give_up(reader, afterwards);
        }
    }

    fn keep_by_reference(&mut self, next: &Next) -> bool {
        let Some(kept) = next.to_kept() else { return false };
        let room = self.allowance.take(kept.charge());
        if room {
            self.frames.push(kept, &mut self.allowance);
        }
        room
    }
}
