//! The caller's body and what its readers share, behind one lock.
//!
//! Whichever reader first needs a frame polls the caller's body. While only one reader has ever
//! asked for a fresh frame that is done with its own task's waker; as soon as there are more, with
//! one that wakes all of them. A reader that is the only one left, of a body that cannot be read
//! again, takes everything out and needs no lock from then on. Wakers are called, and whatever runs
//! foreign code when it is dropped is dropped, after the lock has been released: see [`Afterwards`].

mod asking;
mod own;
mod reader;

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use crate::ahead::Said;
use crate::error::ReplayError;
use crate::frames::{Frames, Freed, Next};
use crate::memory::Allowance;
use crate::progress::Length;
use crate::wakers::{Afterwards, ReaderId, Waiting, Wakers};
use crate::watch::Watched;

pub(super) use reader::{Keeping, Reader};

/// The caller's body. Boxed, so that it can be handed to the last of the readers after it was
/// polled.
pub(super) type Source<B> = Pin<Box<B>>;

/// The id of no reader.
const NOBODY: ReaderId = ReaderId::MAX;

struct Shared<B> {
    /// What the caller's body said of its length before anything was read.
    length: Length,
    state: Mutex<State<B>>,
}

struct State<B> {
    /// `None` once it has given all, or the last reader has it to itself.
    source: Option<Source<B>>,
    /// The source said that nothing follows its last frame.
    ended: bool,
    stage: Stage,
    /// The reader that may ask the source without further ado: it stands at the end, no other has
    /// ever asked, the source is open, and there is another reader, for which all is kept. `NOBODY`
    /// whenever one of these may have ceased to be true.
    leader: ReaderId,
    /// What the source said when it was polled before there were readers, and what was taken of the
    /// memory for it until the first reader asks.
    ahead: Said,
    ahead_charge: usize,
    frames: Frames,
    allowance: Allowance,
    /// Data frames below this length are copied.
    copied_below: usize,
    /// The lengths of a first frame that may be all of the source.
    may_be_all: RangeInclusive<u64>,
    /// Readers that can go on, and those among them that have asked for fresh frames.
    readers: usize,
    asking: usize,
    next_id: ReaderId,
    /// Readers with a lower id have been cancelled, but for the one that did so.
    cancelled_below: ReaderId,
    survivor: ReaderId,
    /// The waker that the source was given last while one reader alone had asked.
    lone: Option<Waiting>,
    /// Made when a second reader asks.
    wakers: Option<Wakers>,
    /// A reader has asked for a frame since this was last cleared.
    polled: bool,
    /// Made when somebody first watches a reader.
    watched: Option<Arc<Watched>>,
}

/// How far the source has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has answered, and that is still to be read.
    Ahead,
    Open,
    /// It is being polled, or never came back from it.
    Asking,
    /// It returned its end, and is not polled again.
    Done,
    /// It returned an error, or panicked, and is not polled again.
    Failed,
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

    /// Why this reader cannot go on.
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

    /// Whether the first frame is still to be had, and `reader` may ask for it.
    fn can_replay(&self, reader: ReaderId, position: u64) -> bool {
        self.frames.start() == 0 && self.refusal(reader, position).is_none()
    }

    fn has_failed(&self) -> bool {
        matches!(self.stage, Stage::Asking | Stage::Failed)
    }

    /// The source was asked once more after the frame that `reader` has just read, and has answered this.
    fn read_ahead(&mut self, answer: Option<Next>, reader: ReaderId, afterwards: &mut Afterwards) {
        let Some(next) = answer else {
            self.ended = true;
            self.stage = Stage::Done;
            return;
        };
        if !self.tell_later(Said::once(Some(next.copied(self.copied_below)))) && self.readers > 1 {
            // It will not be kept either.
            self.give_up(reader, afterwards);
        }
    }

    /// The readers get this first. Returns `false` if the allowance does not suffice for it.
    fn tell_later(&mut self, said: Said) -> bool {
        let charge = said.charge();
        let charged = self.allowance.take(charge);
        self.ahead_charge = if charged { charge } else { 0 };
        self.stage = if said.is_empty() { Stage::Open } else { Stage::Ahead };
        self.ahead = said;
        charged
    }

    /// Keeps nothing any more: the reader that has just read a frame is from now on the only one.
    /// None of the others has read as much.
    #[cold]
    fn give_up(&mut self, reader: ReaderId, afterwards: &mut Afterwards) {
        self.leader = NOBODY;
        self.allowance.give_back_all();
        self.ahead_charge = 0;
        self.readers = 1;
        self.asking = 1;
        let chores = afterwards.chores();
        chores.freed = self.frames.give_up();
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

    /// The source holds the waker of the only reader that has asked. A second one that comes will
    /// replace it there, and so must know it.
    fn wait_alone(&mut self, reader: ReaderId, waker: &Waker, afterwards: &mut Afterwards) {
        if self.lone.as_ref().is_some_and(|(id, known)| *id == reader && known.will_wake(waker)) {
            return;
        }
        if let Some((_, displaced)) = self.lone.replace((reader, waker.clone())) {
            afterwards.chores().displaced.push(displaced);
        }
    }

    /// Puts a reader on the list of those that wait, and returns the waker that wakes all of them,
    /// with which the source is then polled.
    fn wait_with_others(
        &mut self,
        reader: ReaderId,
        waker: &Waker,
        afterwards: &mut Afterwards,
    ) -> Waker {
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

    /// The source was polled for all readers, by `reader`.
    fn tell_others(&mut self, reader: ReaderId, ready: bool, afterwards: &mut Afterwards) {
        if let Some(wakers) = &self.wakers {
            let chores = afterwards.chores();
            chores.wake = wakers.finish(ready);
            chores.except = ready.then_some(reader);
        }
    }
}
