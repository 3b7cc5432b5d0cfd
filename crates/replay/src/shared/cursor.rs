//! A reader's next frame: a kept one, or a fresh one from the caller's body.
//!
//! | case | function |
//! |---|---|
//! | only this reader polls for fresh frames, which are kept for others | `poll_frame` (fast path), `poll_leader_slow` |
//! | the frame was kept | `poll_kept` |
//! | the reader is the last one | `poll_sole` |
//! | every other case | `poll_any`, which polls the source in `poll_source` |
//!
//! Every path with a fresh result ends in `finish_poll`.

use std::sync::MutexGuard;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use sync_wrapper::SyncWrapper;

use super::sole_reader::SoleReader;
use super::{NOBODY, SourceStage, State, Whole};
use crate::error::BoxError;
use crate::frames::Next;
use crate::memory::least_charge;
use crate::progress::{self, Polled, PolledFrom, Progress, data_of, is_data, length_of, panic_error};
use crate::sync::Lock;
use crate::wakers::{Afterwards, ReaderId};

/// The position of one reader.
pub(super) struct Cursor<B> {
    /// The rest of the body, once this is the only reader.
    pub(super) sole: Option<SyncWrapper<Box<SoleReader<B>>>>,
    pub(super) progress: Progress,
    pub(super) id: ReaderId,
    /// The number of frames read so far. It is counted only while the body is shared.
    pub(super) position: u64,
    /// `true` if this reader has polled for a fresh frame, and may therefore be waiting.
    pub(super) polls_fresh: bool,
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Cursor<B> {
    /// Polls a shared body. Contains the fast path, which keeps and returns fresh data for the leader and wakes no
    /// reader.
    #[inline(never)]
    pub(super) fn poll_frame(&mut self, shared: &Lock<State<B>>, cx: &mut Context<'_>) -> Polled {
        let mut guard = shared.lock();
        let state = &mut *guard;
        if state.leader != self.id {
            return self.poll_kept(shared, guard, cx);
        }
        let Some(source) = &mut state.source else { return self.poll_any(guard, cx) };
        let unless_it_panics = SourcePanic { stage: &mut state.stage, leader: &mut state.leader };
        let polled = source.as_mut().poll_frame(cx);
        let ended = source.is_end_stream();
        state.ended = ended;
        std::mem::forget(unless_it_panics);
        // This check does not move the frame, which halves the number of moves.
        if ended || !is_data(&polled) {
            return self.poll_leader_slow(guard, cx, polled);
        }
        let data = match data_of(polled) {
            Ok(data) => data,
            Err(other) => return self.poll_leader_slow(guard, cx, other),
        };
        if data.len() < state.copied_below {
            if !state.frames.append(&data) {
                return self.poll_leader_slow(guard, cx, Poll::Ready(Some(Ok(Frame::data(data)))));
            }
        } else if state.allowance.take(least_charge(data.len())) {
            state.frames.push_data(data.clone(), &mut state.allowance);
            self.position += 1;
        } else {
            return self.poll_leader_slow(guard, cx, Poll::Ready(Some(Ok(Frame::data(data)))));
        }
        self.progress.count(&data);
        self.progress.end.ended = ended;
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    /// Slow path: all results for the leader that the fast path does not cover.
    #[cold]
    #[inline(never)]
    fn poll_leader_slow(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &mut Context<'_>,
        polled: PolledFrom<B::Error>,
    ) -> Polled {
        guard.leader = NOBODY;
        self.finish(guard, cx, polled.map(Next::of))
    }

    /// Returns a kept frame that stays kept, or continues as the last reader.
    #[inline(never)]
    fn poll_kept(
        &mut self,
        shared: &Lock<State<B>>,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &mut Context<'_>,
    ) -> Polled {
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
            && let Some(sole) = state.hand_over(self.id, self.position)
        {
            let waited = (state.lone.take(), state.wakers.take());
            drop(guard);
            drop(waited);
            self.sole = Some(SyncWrapper::new(sole));
            return self.poll_sole(shared, cx);
        }
        self.poll_any(guard, cx)
    }

    /// Polls a body with a single reader.
    #[inline(always)]
    pub(super) fn poll_sole(&mut self, shared: &Lock<State<B>>, cx: &mut Context<'_>) -> Polled {
        let Some(sole) = &mut self.sole else { return Poll::Ready(None) };
        // The other readers cannot continue, but `source_failed` may still be called on them.
        let failed = || shared.lock().stage = SourceStage::Failed;
        sole.get_mut().poll_frame(&mut self.progress, cx, failed)
    }

    /// Slow path: all cases that the paths above do not cover.
    #[inline(never)]
    fn poll_any(&mut self, mut guard: MutexGuard<'_, State<B>>, cx: &mut Context<'_>) -> Polled {
        let state = &mut *guard;
        if self.progress.end.is_done() {
            return Poll::Ready(None);
        }
        if let Some(refusal) = state.refusal(self.id, self.position) {
            self.progress.end.stage = progress::BodyStage::Done;
            // A reader that has returned everything gets no error, because nothing is missing.
            return Poll::Ready((!self.progress.end.ended).then(|| Err(refusal.into())));
        }
        // Polls are recorded only here, because a reader that was cut off belongs to an earlier attempt.
        state.polled = true;
        if let Some(kept) = state.frames.advance(self.position, &mut state.allowance) {
            self.position += 1;
            if self.position == state.frames.end_position() {
                self.progress.end.ended = state.ended;
                state.leader = NOBODY;
            }
            drop(guard);
            return self.returned(Some(kept.into()));
        }
        if !self.polls_fresh {
            self.polls_fresh = true;
            state.fresh_pollers += 1;
        }
        let next = match state.stage {
            SourceStage::Prefetched => {
                let answer = state.prefetched.pop();
                // The frame is charged again if it is kept.
                state.allowance.give_back(std::mem::take(&mut state.prefetched_charge));
                if state.prefetched.is_empty() {
                    // If `is_end_stream` panics, an error is returned instead.
                    state.stage = SourceStage::Polling;
                    state.ended = state.source.as_ref().is_none_or(|source| source.is_end_stream());
                    state.stage = SourceStage::Open;
                }
                answer
            }
            SourceStage::Open => return self.poll_source(guard, cx),
            SourceStage::Polling => Some(Next::Failed(panic_error())),
            SourceStage::Done | SourceStage::Failed => None,
        };
        self.finish(guard, cx, Poll::Ready(next))
    }

    /// Polls the source, for this reader or for all waiting readers.
    fn poll_source(&mut self, mut guard: MutexGuard<'_, State<B>>, cx: &mut Context<'_>) -> Polled {
        let state = &mut *guard;
        state.leader = NOBODY;
        let mut afterwards = Afterwards::default();
        let all = (state.fresh_pollers > 1).then(|| state.register_with_others(self.id, cx.waker(), &mut afterwards));
        let mut second = None;
        let next = match &mut state.source {
            Some(source) => {
                let waker = all.as_ref().unwrap_or(cx.waker());
                let context = &mut Context::from_waker(waker);
                state.stage = SourceStage::Polling;
                let next = source.as_mut().poll_frame(context).map(Next::of);
                state.ended = source.is_end_stream();
                if let Poll::Ready(Some(Next::Data(data))) = &next
                    && !state.ended
                    && state.readers > 1
                    && state.frames.end_position() == 0
                    && state.whole.may_be(length_of(data))
                    && let Poll::Ready(answer) = source.as_mut().poll_frame(context)
                {
                    second = Some(Next::of(answer));
                }
                state.stage = SourceStage::Open;
                next
            }
            // The source ended while it was polled ahead of the readers.
            None => Poll::Ready(None),
        };
        if all.is_some() {
            state.finish_poll_of_all(self.id, next.is_ready(), &mut afterwards);
        }
        self.finish_poll(guard, cx, next, second, afterwards)
    }

    #[cold]
    fn finish(&mut self, guard: MutexGuard<'_, State<B>>, cx: &Context<'_>, next: Poll<Option<Next>>) -> Polled {
        self.finish_poll(guard, cx, next, None, Afterwards::default())
    }

    /// Keeps the source's result for other readers and returns it. `second` is the next result, if the source was
    /// polled twice.
    fn finish_poll(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &Context<'_>,
        next: Poll<Option<Next>>,
        second: Option<Option<Next>>,
        mut afterwards: Afterwards,
    ) -> Polled {
        let state = &mut *guard;
        state.set_source_pending(next.is_pending());
        match &next {
            Poll::Pending if state.fresh_pollers == 1 => {
                state.register_alone(self.id, cx.waker(), &mut afterwards);
            }
            Poll::Pending => {}
            Poll::Ready(None) => state.stage = SourceStage::Done,
            Poll::Ready(Some(next)) => {
                if matches!(next, Next::Failed(_)) {
                    state.stage = SourceStage::Failed;
                }
                state.keep(next, self.id, &mut afterwards);
                if let Some(answer) = second {
                    state.store_second(answer, self.id, &mut afterwards);
                }
                self.position = state.frames.end_position();
                self.progress.end.ended = state.ended;
                if state.ended && state.stage == SourceStage::Open {
                    state.stage = SourceStage::Done;
                }
            }
        }
        // A source that has ended is dropped, because the memory it still holds is not charged.
        let over = matches!(state.stage, SourceStage::Done | SourceStage::Failed);
        let spent = if over { state.source.take() } else { None };
        // The fast path does not update the watch, so a frame that was waited for is returned by the slow path.
        let is_watched = next.is_pending() && state.source_watch.is_some();
        let leads = state.stage == SourceStage::Open && state.fresh_pollers == 1 && state.readers > 1 && !is_watched;
        if leads && state.frames.one_at_end() {
            state.leader = self.id;
        }
        drop(guard);
        drop(spent);
        afterwards.run();
        match next {
            Poll::Ready(next) => self.returned(next),
            Poll::Pending => Poll::Pending,
        }
    }

    fn returned(&mut self, next: Option<Next>) -> Polled {
        let last = match next {
            Some(Next::Data(data)) => return self.progress.give(data),
            Some(Next::Other(frame)) => return Poll::Ready(Some(Ok(*frame))),
            Some(Next::Failed(error)) => Some(Err(error.into())),
            None => None,
        };
        self.progress.end.stage = progress::BodyStage::Done;
        Poll::Ready(last)
    }
}

/// A drop guard that records a panic in the source on the fast path. Without a panic, it is not dropped.
struct SourcePanic<'a> {
    stage: &'a mut SourceStage,
    leader: &'a mut ReaderId,
}

impl Drop for SourcePanic<'_> {
    fn drop(&mut self) {
        *self.stage = SourceStage::Polling;
        *self.leader = NOBODY;
    }
}

impl<B> State<B> {
    /// Keeps the frame that a reader at the end has just received, if another reader needs it.
    fn keep(&mut self, next: &Next, reader: ReaderId, afterwards: &mut Afterwards) {
        if self.readers == 1 {
            self.frames.pass();
            return;
        }
        if let Next::Data(data) = next
            && self.whole == Whole::Exact(length_of(data))
            && self.frames.end_position() == 0
        {
            // As with an in-memory body, all of it is available.
            self.allowance.lift();
        }
        let kept = match next {
            Next::Data(data) if data.len() < self.copied_below => self.frames.push_copy(data, &mut self.allowance),
            _ => self.keep_by_reference(next),
        };
        if !kept {
            self.stop_keeping(reader, afterwards);
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
