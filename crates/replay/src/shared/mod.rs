//! The caller's body and its readers' shared state, guarded by one lock.
//!
//! The first reader that needs a frame polls the caller's body. While a single reader polls for fresh frames, the body
//! gets that reader's waker; later it gets one waker that wakes all readers. If a body cannot be read again, its last
//! reader takes everything out and needs no lock from then on. Wakers are woken or dropped after the lock is released,
//! because both may run foreign code (see [`Afterwards`]).
//!
//! The lock is held while the caller's body is polled. A retry decision on another task
//! ([`is_replayable`](crate::ReplayBody::is_replayable), for example) thus waits for at most one poll, which does not
//! block. Releasing the lock during the poll was measured to be slower. A kept frame of 64 bytes then costs 157
//! instructions instead of 150, and 83 ns of CPU time instead of 63. It would also require a list of the readers that
//! poll in the meantime.

mod cursor;
mod reader;
mod sole_reader;

use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::Waker;

use crate::error::ReplayError;
use crate::frames::{Frames, Freed, Next};
use crate::memory::Allowance;
use crate::prefetched::Prefetched;
use crate::progress::Length;
use crate::source_watch::SourceWatch;
use crate::sync::Lock;
use crate::wakers::{Afterwards, ReaderId, Waiting, Wakers};
use crate::watch::Watched;

pub(super) use reader::{Keeping, Reader};

/// The caller's body, boxed so that it can move to the last reader after it has been polled.
pub(super) type Source<B> = Pin<Box<B>>;

/// The id that means no reader.
const NOBODY: ReaderId = ReaderId::MAX;

struct Shared<B> {
    /// The size hint of the caller's body before anything was read.
    length: Length,
    state: Lock<State<B>>,
}

struct State<B> {
    /// `None` after its end, or once the last reader has taken it.
    source: Option<Source<B>>,
    /// `true` if nothing follows the last frame of the source.
    ended: bool,
    stage: SourceStage,
    /// The reader that may take the fast path. It is at the end, and no other reader has polled for a fresh frame. The
    /// source is open, and everything is kept for another reader. `NOBODY` if any of these conditions may no longer
    /// hold.
    leader: ReaderId,
    /// Frames that were read before a reader polled for them, and their charge.
    prefetched: Prefetched,
    prefetched_charge: usize,
    frames: Frames,
    allowance: Allowance,
    /// The length below which data frames are copied.
    copied_below: usize,
    whole: Whole,
    /// The number of readers that can continue, and how many of them have polled for fresh frames.
    readers: usize,
    fresh_pollers: usize,
    next_id: ReaderId,
    /// Readers with a lower id have been cancelled, except the one that cancelled them.
    cancelled_below: ReaderId,
    survivor: ReaderId,
    /// The waker that the source last received while a single reader polled for fresh frames.
    lone: Option<Waiting>,
    /// Created when a second reader polls for fresh frames.
    wakers: Option<Wakers>,
    /// `true` if a reader has polled for a frame since this was last cleared.
    polled: bool,
    /// Created when a reader is first watched.
    watched: Option<Arc<Watched>>,
    /// Created when the source is first watched.
    source_watch: Option<SourceWatch>,
}

/// The state of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceStage {
    /// The next result has already been read.
    Prefetched,
    Open,
    /// It is being polled, or has panicked.
    Polling,
    /// It has ended, and is not polled again.
    Done,
    /// It returned an error or panicked, and is not polled again.
    Failed,
}

/// The lengths at which a first frame may be the whole source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// Unknown, and the source is not polled ahead to find out.
    Unknown,
    Any,
    Exact(u64),
}

impl Whole {
    fn may_be(self, length: u64) -> bool {
        match self {
            Whole::Unknown => false,
            Whole::Any => length > 0,
            Whole::Exact(whole) => length == whole,
        }
    }
}

impl<B> Shared<B> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock()
    }
}

impl<B> State<B> {
    #[inline]
    fn has_cancelled(&self, reader: ReaderId) -> bool {
        reader < self.cancelled_below && reader != self.survivor
    }

    /// Returns the error if a reader cannot continue.
    #[inline]
    fn refusal(&self, reader: ReaderId, position: u64) -> Option<ReplayError> {
        if self.has_cancelled(reader) {
            Some(ReplayError::Superseded)
        } else if position < self.frames.start() {
            Some(ReplayError::NotKept)
        } else {
            None
        }
    }

    /// Returns `true` if the first frame is still kept and `reader` may poll for it.
    fn can_replay(&self, reader: ReaderId, position: u64) -> bool {
        self.frames.start() == 0 && self.refusal(reader, position).is_none()
    }

    fn has_failed(&self) -> bool {
        matches!(self.stage, SourceStage::Polling | SourceStage::Failed)
    }

    /// Records for the watch that a poll of the source returned `Pending`, or something else.
    fn set_source_pending(&self, pending: bool) {
        if let Some(watch) = &self.source_watch {
            watch.set(pending);
        }
    }

    /// Stores the source's second result, polled right after the frame that `reader` is about to return.
    fn store_second(&mut self, answer: Option<Next>, reader: ReaderId, afterwards: &mut Afterwards) {
        let Some(next) = answer else {
            self.ended = true;
            self.stage = SourceStage::Done;
            return;
        };
        if !self.store_prefetched(Prefetched::once(Some(next.copied(self.copied_below)))) && self.readers > 1 {
            // This frame will not be kept either.
            self.stop_keeping(reader, afterwards);
        }
    }

    /// Stores prefetched results. Returns `false` if the allowance is too small.
    fn store_prefetched(&mut self, prefetched: Prefetched) -> bool {
        let charge = prefetched.charge();
        let charged = self.allowance.take(charge);
        self.prefetched_charge = if charged { charge } else { 0 };
        self.stage = if prefetched.is_empty() { SourceStage::Open } else { SourceStage::Prefetched };
        self.prefetched = prefetched;
        charged
    }

    /// Drops all kept frames. Only the reader that has just received a frame can continue, because it has read the
    /// most.
    #[cold]
    fn stop_keeping(&mut self, reader: ReaderId, afterwards: &mut Afterwards) {
        self.leader = NOBODY;
        self.allowance.give_back_all();
        self.prefetched_charge = 0;
        self.readers = 1;
        self.fresh_pollers = 1;
        let chores = afterwards.chores();
        chores.freed = self.frames.stop_keeping();
        if let Some(watched) = &self.watched {
            chores.wake.extend(watched.cut_off(NOBODY, reader));
        }
        self.frames.pass();
    }

    fn give_back(&mut self, freed: Option<&Freed>) {
        if let Some(freed) = freed {
            self.allowance.give_back(freed.charge());
        }
    }

    /// Stores the waker of the only reader that has polled for fresh frames. The source has the same waker. Once a
    /// second reader polls, the source gets a waker that wakes both.
    fn register_alone(&mut self, reader: ReaderId, waker: &Waker, afterwards: &mut Afterwards) {
        if self.lone.as_ref().is_some_and(|(id, known)| *id == reader && known.will_wake(waker)) {
            return;
        }
        if let Some((_, displaced)) = self.lone.replace((reader, waker.clone())) {
            afterwards.chores().displaced.push(displaced);
        }
    }

    /// Adds a reader to the waiting list. Returns the waker that wakes all of them, for polling the source.
    fn register_with_others(&mut self, reader: ReaderId, waker: &Waker, afterwards: &mut Afterwards) -> Waker {
        let displaced = &mut afterwards.chores().displaced;
        let wakers = self.wakers.get_or_insert_with(Wakers::new);
        if let Some((id, lone)) = self.lone.take() {
            displaced.extend(wakers.register(id, &lone));
            displaced.push(lone);
        }
        displaced.extend(wakers.register(reader, waker));
        wakers.begin();
        wakers.all()
    }

    /// Collects the readers to wake after `reader` has polled the source for all of them.
    fn finish_poll_of_all(&mut self, reader: ReaderId, ready: bool, afterwards: &mut Afterwards) {
        if let Some(wakers) = &self.wakers {
            let chores = afterwards.chores();
            chores.wake = wakers.finish(ready);
            chores.except = ready.then_some(reader);
        }
    }
}
