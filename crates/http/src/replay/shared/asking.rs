//! How a reader comes by its next frame: kept, or fresh from the caller's body.

use std::sync::MutexGuard;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;

use super::{NOBODY, Stage, State};
use crate::replay::BoxError;
use crate::replay::frames::{Kept, Next};
use crate::replay::memory::least_charge;
use crate::replay::progress::{self, Polled, Progress, panic_error};
use crate::replay::wakers::{Afterwards, ReaderId};

/// Where a reader stands.
pub(super) struct Place {
    pub(super) id: ReaderId,
    /// Frames read so far, while they are counted: as long as the body is shared.
    pub(super) position: u64,
    /// It has asked for a fresh frame, so that it counts among those that may wait.
    pub(super) asked: bool,
    pub(super) progress: Progress,
}

impl Place {
    /// Fresh data for the reader that leads, in a few steps: nearly every frame comes this way.
    #[inline(always)]
    pub(super) fn lead<B>(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &mut Context<'_>,
    ) -> Polled
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let state = &mut *guard;
        let Some(source) = &mut state.source else { return self.next_slowly(guard, cx) };
        state.leader = NOBODY;
        state.stage = Stage::Asking;
        let polled = source.as_mut().poll_frame(cx);
        state.stage = Stage::Open;
        let next = match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let ended = source.is_end_stream();
                state.ended = ended;
                match frame.into_data() {
                    Ok(data) => {
                        if state.keep_data(&data) {
                            state.leader = self.id;
                            self.position += 1;
                            self.progress.ended = ended;
                            return self.progress.give(data);
                        }
                        Poll::Ready(Some(Next::Data(data)))
                    }
                    Err(other) => Poll::Ready(Some(Next::Other(Box::new(other)))),
                }
            }
            other => other.map(Next::of),
        };
        self.answered(guard, cx, next)
    }

    /// The next frame, in a few steps if it was kept.
    #[inline(always)]
    pub(super) fn next<B>(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &mut Context<'_>,
    ) -> Polled
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let state = &mut *guard;
        if !state.has_cancelled(self.id)
            && let Some(data) = state.frames.advance_data(self.position)
        {
            self.position += 1;
            self.progress.ended = state.ended && self.position == state.frames.end();
            return self.progress.give(data);
        }
        self.next_slowly(guard, cx)
    }

    /// Whatever comes to pass.
    #[inline(never)]
    fn next_slowly<B>(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &mut Context<'_>,
    ) -> Polled
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let state = &mut *guard;
        if self.progress.is_done() {
            return Poll::Ready(None);
        }
        if let Some(refusal) = state.refusal(self.id, self.position) {
            self.progress.stage = progress::Stage::Done;
            // A reader that has had everything misses nothing.
            return Poll::Ready((!self.progress.ended).then(|| Err(refusal.into())));
        }
        if let Some(kept) = state.frames.advance(self.position, &mut state.allowance) {
            self.position += 1;
            self.progress.ended = state.ended && self.position == state.frames.end();
            drop(guard);
            return self.give(Some(kept.into()));
        }
        if !self.asked {
            self.asked = true;
            state.asking += 1;
        }
        let next = match state.stage {
            Stage::Ahead => {
                state.stage = Stage::Open;
                state.ended = state.source.as_ref().is_none_or(|source| source.is_end_stream());
                state.ahead.take().flatten()
            }
            Stage::Open => return self.ask(guard, cx),
            Stage::Asking => Some(Next::Failed(panic_error())),
            Stage::Done | Stage::Failed => None,
        };
        self.answered(guard, cx, Poll::Ready(next))
    }

    /// Polls the source, alone or for all who wait.
    fn ask<B>(&mut self, mut guard: MutexGuard<'_, State<B>>, cx: &mut Context<'_>) -> Polled
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let state = &mut *guard;
        state.leader = NOBODY;
        let mut afterwards = Afterwards::default();
        let all = (state.asking > 1)
            .then(|| state.wait_with_others(self.id, cx.waker(), &mut afterwards));
        let next = match &mut state.source {
            Some(source) => {
                let waker = all.as_ref().unwrap_or(cx.waker());
                state.stage = Stage::Asking;
                let polled = source.as_mut().poll_frame(&mut Context::from_waker(waker));
                state.stage = Stage::Open;
                if polled.is_ready() {
                    state.ended = source.is_end_stream();
                }
                polled.map(Next::of)
            }
            // It had said all when it was asked ahead.
            None => Poll::Ready(None),
        };
        if all.is_some() {
            state.tell_others(self.id, next.is_ready(), &mut afterwards);
        }
        self.conclude(guard, cx, next, afterwards)
    }

    #[cold]
    fn answered<B>(
        &mut self,
        guard: MutexGuard<'_, State<B>>,
        cx: &Context<'_>,
        next: Poll<Option<Next>>,
    ) -> Polled {
        self.conclude(guard, cx, next, Afterwards::default())
    }

    /// This reader, at the end, has heard what the source says.
    fn conclude<B>(
        &mut self,
        mut guard: MutexGuard<'_, State<B>>,
        cx: &Context<'_>,
        next: Poll<Option<Next>>,
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
                state.keep(next, &mut afterwards);
                self.position += 1;
                self.progress.ended = state.ended && self.position == state.frames.end();
            }
        }
        if state.stage == Stage::Open && state.asking == 1 && state.readers > 1 {
            state.leader = self.id;
        }
        drop(guard);
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
        self.progress.stage = progress::Stage::Done;
        Poll::Ready(last)
    }
}

impl<B> State<B> {
    /// A reader at the end has read one more frame: keeps it if another reader needs it.
    fn keep(&mut self, next: &Next, afterwards: &mut Afterwards) {
        if self.readers == 1 {
            self.frames.pass();
            return;
        }
        match next.to_kept() {
            Some(kept) if self.allowance.take(kept.charge()) => self.frames.push(kept),
            _ => self.give_up(afterwards),
        }
    }

    /// Keeps data that the leader has read, if there is room for it.
    #[inline(always)]
    fn keep_data(&mut self, data: &Bytes) -> bool {
        let granted = self.allowance.take(least_charge(data.len()));
        if granted {
            self.frames.push(Kept::Data(data.clone()));
        }
        granted
    }
}
