//! The caller's body and what its readers share, behind one lock.
//!
//! Whichever reader first needs a frame polls the caller's body. While only one reader has ever been
//! polled that is done with its own task's waker; as soon as there are more, with one that wakes all
//! of them. Wakers are called, and whatever runs foreign code when it is dropped is dropped, after
//! the lock has been released: see [`Afterwards`].

mod reader;

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, SizeHint};

use super::frames::{Frames, Freed, Kept, Next};
use super::memory::Allowance;
use super::wakers::{Afterwards, ReaderId, Waiting, Wakers};
use super::{BoxError, ReplayError};

pub(super) use reader::Reader;

struct Shared<B> {
    /// The caller's size hint before anything was read.
    hint: SizeHint,
    state: Mutex<State<B>>,
}

struct State<B> {
    // Pinned: see `source()`.
    source: B,
    /// The source said that nothing follows its last frame.
    ended: bool,
    /// The source returned its end or an error, and is not polled again.
    finished: bool,
    failed: bool,
    frames: Frames,
    allowance: Allowance,
    /// Readers that can go on, and those among them that have been polled.
    readers: usize,
    polled: usize,
    next_id: ReaderId,
    /// Readers with a lower id have been cancelled, but for the one that did so.
    cancelled_below: ReaderId,
    survivor: ReaderId,
    /// The waker that the source was given last while one reader alone had been polled.
    lone: Option<Waiting>,
    /// Made when a second reader is polled.
    wakers: Option<Wakers>,
}

impl<B> Shared<B> {
    /// A source that panicked has poisoned the lock; what is beside it is whole all the same.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> State<B> {
    /// Why this reader cannot go on.
    #[inline]
    fn refusal(&self, reader: ReaderId, position: u64) -> Option<ReplayError> {
        if reader < self.cancelled_below && reader != self.survivor {
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

    /// A reader at the end has read one more frame: keeps it if another reader needs it.
    #[inline]
    fn keep(&mut self, afterwards: &mut Afterwards, kept: impl FnOnce() -> Kept) {
        if self.readers == 1 {
            self.frames.pass();
            return;
        }
        let kept = kept();
        if self.allowance.take(kept.charge()) {
            self.frames.push(kept);
        } else {
            self.give_up(afterwards);
        }
    }

    /// Keeps nothing any more: the reader that has just read a frame is from now on the only one.
    #[cold]
    fn give_up(&mut self, afterwards: &mut Afterwards) {
        self.allowance.give_back_all();
        self.readers = 1;
        self.polled = 1;
        afterwards.chores().freed = self.frames.give_up();
        self.frames.pass();
    }

    fn give_back(&mut self, freed: Option<&Freed>) {
        if let Some(freed) = freed {
            self.allowance.give_back(freed.charge());
        }
    }

    /// The source holds the waker of the only reader that has been polled. A second one that comes
    /// will replace it there, and so must know it.
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
    #[cold]
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
    #[cold]
    fn tell_others(&mut self, reader: ReaderId, ready: bool, afterwards: &mut Afterwards) {
        if let Some(wakers) = &self.wakers {
            let chores = afterwards.chores();
            chores.wake = wakers.finish(ready);
            chores.except = ready.then_some(reader);
        }
    }

    /// The source, where it lies.
    #[allow(unsafe_code, reason = "std has no safe way to pin what lies in a Mutex in an Arc")]
    fn source(&mut self) -> Pin<&mut B> {
        // SAFETY: a `State` is made inside a `Shared` inside `Arc::pin` and nowhere else, so it
        // stays where it is until it is dropped there. `State` and its fields are private to this
        // module and its child, which nowhere move, replace or swap a `State` or its `source`: they
        // read and write its other fields through the guard of the lock. Neither type has a
        // destructor of its own, and no other code makes a `Pin` to `source`.
        unsafe { Pin::new_unchecked(&mut self.source) }
    }
}

impl<B> State<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    /// The frame at `position`, kept or fresh.
    #[inline]
    fn next(
        &mut self,
        reader: ReaderId,
        position: u64,
        cx: &mut Context<'_>,
        afterwards: &mut Afterwards,
    ) -> Poll<Option<Next>> {
        if let Some((kept, unneeded)) = self.frames.advance(position) {
            if let Some(charge) = unneeded {
                self.allowance.give_back(charge);
            }
            return Poll::Ready(Some(kept.into_next()));
        }
        if self.finished {
            return Poll::Ready(None);
        }
        if self.failed {
            // It panicked, and what it said next would not follow on what it said before.
            let error = Kept::failed("the body panicked".into());
            self.finished = true;
            self.keep(afterwards, || error.clone());
            return Poll::Ready(Some(error.into_next()));
        }
        let all = if self.polled == 1 {
            None
        } else {
            Some(self.wait_with_others(reader, cx.waker(), afterwards))
        };
        let waker = all.as_ref().unwrap_or(cx.waker());
        // So that a panic of the source counts as its failure.
        self.failed = true;
        let polled = self.source().poll_frame(&mut Context::from_waker(waker));
        self.failed = false;
        if all.is_some() {
            self.tell_others(reader, polled.is_ready(), afterwards);
        } else if polled.is_pending() {
            self.wait_alone(reader, cx.waker(), afterwards);
        }
        let frame = match ready!(polled) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                let error = Kept::failed(error.into());
                self.finished = true;
                self.failed = true;
                self.keep(afterwards, || error.clone());
                return Poll::Ready(Some(error.into_next()));
            }
            None => {
                self.finished = true;
                return Poll::Ready(None);
            }
        };
        self.ended = self.source.is_end_stream();
        let next = match frame.into_data() {
            Ok(data) => {
                self.keep(afterwards, || Kept::Data(data.clone()));
                Next::Data(data)
            }
            Err(frame) => {
                match frame.trailers_ref() {
                    Some(trailers) => {
                        self.keep(afterwards, || Kept::Trailers(Box::new(trailers.clone())));
                    }
                    // A kind of frame that is not known yet cannot be kept.
                    None => self.give_up(afterwards),
                }
                Next::Other(Box::new(Ok(frame)))
            }
        };
        Poll::Ready(Some(next))
    }
}
