//! One reader of a shared body, from its creation to its drop.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http_body::{Body, SizeHint};

use super::cursor::Cursor;
use super::{NOBODY, Shared, Source, SourceStage, State, Whole};
use crate::error::BoxError;
use crate::frames::Frames;
use crate::memory::Allowance;
use crate::prefetched::Prefetched;
use crate::progress::{End, Length, Polled, Progress};
use crate::source_watch::SourceWatch;
use crate::sync::Lock;
use crate::wakers::{ReaderId, wake_all};
use crate::watch::{ReplayWatch, Watched};

/// The id of the first reader.
const FIRST: ReaderId = 0;

/// The settings for keeping a body's frames.
pub(crate) struct Keeping {
    /// The frames that were read before the first reader was created.
    pub(crate) prefetched: Prefetched,
    /// The length below which data frames are copied.
    pub(crate) copied_below: usize,
    pub(crate) whole: Whole,
}

/// One reader of a shared body.
pub(crate) struct Reader<B> {
    shared: Arc<Shared<B>>,
    cursor: Cursor<B>,
}

impl<B> Reader<B> {
    /// Creates the first reader of a body of this length.
    pub(crate) fn new(source: Option<Source<B>>, length: Length, allowance: Allowance, keeping: Keeping) -> Self {
        let mut frames = Frames::default();
        frames.join();
        let Keeping { prefetched, copied_below, whole } = keeping;
        let mut state = State {
            source,
            ended: false,
            stage: SourceStage::Open,
            leader: NOBODY,
            prefetched: Prefetched::default(),
            prefetched_charge: 0,
            frames,
            allowance,
            copied_below,
            whole,
            readers: 1,
            fresh_pollers: 0,
            next_id: FIRST + 1,
            cancelled_below: 0,
            survivor: 0,
            lone: None,
            wakers: None,
            polled: false,
            watched: None,
            source_watch: None,
        };
        state.store_prefetched(prefetched);
        Self::at_start(Arc::new(Shared { length, state: Lock::new(state) }), FIRST)
    }

    fn at_start(shared: Arc<Shared<B>>, id: ReaderId) -> Self {
        let cursor = Cursor { sole: None, id, position: 0, polls_fresh: false, progress: Progress::default() };
        Self { shared, cursor }
    }

    #[inline(never)]
    pub(crate) fn try_clone(&self) -> Option<Self> {
        let mut state = self.shared.lock();
        if !state.can_replay(self.cursor.id, self.cursor.position) {
            return None;
        }
        let id = state.next_id;
        state.next_id = id.checked_add(1).filter(|next| *next != NOBODY)?;
        state.readers += 1;
        state.frames.join();
        drop(state);
        Some(Self::at_start(Arc::clone(&self.shared), id))
    }

    pub(crate) fn is_replayable(&self) -> bool {
        self.shared.lock().can_replay(self.cursor.id, self.cursor.position)
    }

    pub(crate) fn source_failed(&self) -> bool {
        self.cursor.progress.end.has_failed() || self.shared.lock().has_failed()
    }

    pub(crate) fn was_polled(&self) -> bool {
        self.shared.lock().polled
    }

    /// Records a poll if this is the only reader.
    pub(crate) fn note_if_alone(&self) {
        let mut state = self.shared.lock();
        state.polled |= state.readers == 1;
    }

    pub(crate) fn forget_polls(&self) {
        let mut state = self.shared.lock();
        state.polled = false;
        if state.fresh_pollers == 0 {
            state.set_source_pending(false);
        }
        // The leader's fast path does not record its polls.
        state.leader = NOBODY;
    }

    pub(crate) fn watch_source(&self) -> SourceWatch {
        let mut state = self.shared.lock();
        // The fast path does not update the watch, but a poll that returns `Pending` leaves it.
        state.source_watch.get_or_insert_with(SourceWatch::new).clone()
    }

    pub(crate) fn watch(&self) -> ReplayWatch {
        self.watch_id(self.cursor.id)
    }

    pub(crate) fn watch_first(&self) -> ReplayWatch {
        self.watch_id(FIRST)
    }

    /// Creates a watch on the reader with this id. It is ready immediately if that reader could not continue from this
    /// one's position.
    fn watch_id(&self, id: ReaderId) -> ReplayWatch {
        let mut state = self.shared.lock();
        if state.refusal(id, self.cursor.position).is_none() {
            return ReplayWatch::new(state.watched.get_or_insert_default(), id);
        }
        let watched = Arc::new(Watched::default());
        watched.cut_off(NOBODY, NOBODY);
        ReplayWatch::new(&watched, id)
    }

    pub(crate) fn body_end(&self) -> End {
        self.cursor.progress.end
    }

    /// Returns the size hint for this reader's remaining data.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.shared.length.less(self.cursor.progress.read).hint()
    }

    pub(crate) fn cancel_others(&self) {
        let mut wake = Vec::new();
        let mut freed = None;
        let mut state = self.shared.lock();
        if state.refusal(self.cursor.id, self.cursor.position).is_none() && state.readers > 1 {
            state.leader = NOBODY;
            state.set_source_pending(false);
            state.cancelled_below = state.next_id;
            state.survivor = self.cursor.id;
            state.readers = 1;
            state.fresh_pollers = usize::from(self.cursor.polls_fresh);
            let frames = &mut *state;
            freed = frames.frames.leave_all_but(self.cursor.position, &mut frames.allowance);
            state.give_back(freed.as_ref());
            if let Some(wakers) = &state.wakers {
                wake = wakers.take_all_but(Some(self.cursor.id));
            }
            wake.extend(state.lone.take_if(|(id, _)| *id != self.cursor.id));
            if let Some(watched) = &state.watched {
                wake.extend(watched.cut_off(state.cancelled_below, self.cursor.id));
            }
        }
        drop(state);
        drop(freed);
        wake_all(wake);
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Reader<B> {
    #[inline]
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Polled {
        let shared = &self.shared.state;
        if self.cursor.sole.is_some() { self.cursor.poll_sole(shared, cx) } else { self.cursor.poll_frame(shared, cx) }
    }
}

impl<B> Reader<B> {
    #[inline(never)]
    fn leave(&mut self) {
        let mut wake = Vec::new();
        let mut freed = None;
        let mut own = None;
        let mut state = self.shared.lock();
        if self.cursor.progress.end.has_failed() {
            state.stage = SourceStage::Failed;
        }
        if state.refusal(self.cursor.id, self.cursor.position).is_none() {
            state.leader = NOBODY;
            state.readers -= 1;
            state.fresh_pollers -= usize::from(self.cursor.polls_fresh);
            let frames = &mut *state;
            freed = frames.frames.leave(self.cursor.position, &mut frames.allowance);
            state.give_back(freed.as_ref());
            own = state.lone.take_if(|(id, _)| *id == self.cursor.id);
            // The source may hold only the waker of this reader's task, so the other waiting readers must poll the
            // source again.
            if let (true, Some(wakers)) = (self.cursor.polls_fresh, &state.wakers) {
                wake = wakers.take_all_but(None);
            }
        }
        drop(state);
        drop((freed, own));
        if !wake.is_empty() {
            wake.retain(|(id, _)| *id != self.cursor.id);
            wake_all(wake);
        }
    }
}

impl<B> Drop for Reader<B> {
    #[inline]
    fn drop(&mut self) {
        // The last reader drops the whole state anyway.
        if Arc::strong_count(&self.shared) > 1 {
            self.leave();
        }
    }
}
