//! The wakers of readers that are waiting for the caller's body at the same time.
//!
//! The body is polled with one waker that wakes all readers, because a single woken reader may never poll again. The
//! list has its own lock, which is released before a waker is called or dropped: a body may wake itself while it is
//! polled. Dropping a task's last waker may also drop the task, and with it another reader.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::frames::Freed;
use crate::sync::Lock;

/// The id of a reader within its body. A wider type would make every request larger.
pub(super) type ReaderId = u32;

/// A reader and its waker.
pub(super) type Waiting = (ReaderId, Waker);

/// Work to do after the body's lock is released. There is rarely any.
#[derive(Default)]
pub(super) struct Afterwards(Option<Box<Chores>>);

#[derive(Default)]
pub(super) struct Chores {
    /// The readers to wake, except the one that is currently polling.
    pub(super) wake: Vec<Waiting>,
    pub(super) except: Option<ReaderId>,
    /// Wakers to drop without waking them.
    pub(super) displaced: Vec<Waker>,
    pub(super) freed: Freed,
}

impl Afterwards {
    #[cold]
    pub(super) fn chores(&mut self) -> &mut Chores {
        self.0.get_or_insert_default()
    }

    #[inline]
    pub(super) fn run(self) {
        if let Some(chores) = self.0 {
            chores.run();
        }
    }
}

impl Chores {
    #[cold]
    fn run(self) {
        let Self { wake, except, displaced, freed } = self;
        drop((displaced, freed));
        wake_all(wake.into_iter().filter(|(id, _)| Some(*id) != except));
    }
}

/// Wakes these readers. No lock may be held.
pub(super) fn wake_all(waiting: impl IntoIterator<Item = Waiting>) {
    for (_, waker) in waiting {
        waker.wake();
    }
}

/// All readers' wakers, and the single waker that wakes them all.
pub(super) struct Wakers {
    list: Arc<List>,
    all: Waker,
}

#[derive(Default)]
struct List(Lock<WakerState>);

#[derive(Default)]
struct WakerState {
    waiting: Vec<Waiting>,
    /// `true` while the body is being polled. Wakes are then recorded, and carried out after the poll.
    polling: bool,
    woken: bool,
}

impl Wakers {
    pub(super) fn new() -> Self {
        let list = Arc::new(List::default());
        Self { all: Waker::from(Arc::clone(&list)), list }
    }

    /// Returns the waker that wakes every reader in the list.
    pub(super) fn all(&self) -> Waker {
        self.all.clone()
    }

    /// Adds a reader to the list. Returns its previous waker, to be dropped without a lock.
    pub(super) fn register(&self, reader: ReaderId, waker: &Waker) -> Option<Waker> {
        let mut contents = self.list.0.lock();
        match contents.waiting.iter_mut().find(|(id, _)| *id == reader) {
            Some((_, known)) if known.will_wake(waker) => None,
            Some((_, known)) => Some(std::mem::replace(known, waker.clone())),
            None => {
                contents.waiting.push((reader, waker.clone()));
                None
            }
        }
    }

    /// Records that the body is about to be polled.
    pub(super) fn begin(&self) {
        let mut contents = self.list.0.lock();
        contents.polling = true;
        contents.woken = false;
    }

    /// Records that the body has been polled. Returns the readers to wake, which are all of them if the body was ready
    /// or woke itself.
    pub(super) fn finish(&self, ready: bool) -> Vec<Waiting> {
        let mut contents = self.list.0.lock();
        contents.polling = false;
        if ready || contents.woken { std::mem::take(&mut contents.waiting) } else { Vec::new() }
    }

    /// Takes every reader except `stays` off the list.
    pub(super) fn take_all_but(&self, stays: Option<ReaderId>) -> Vec<Waiting> {
        let mut contents = self.list.0.lock();
        contents.polling = false;
        let mut taken = std::mem::take(&mut contents.waiting);
        if let Some(own) = taken.iter().position(|(id, _)| Some(*id) == stays) {
            contents.waiting.push(taken.swap_remove(own));
        }
        taken
    }
}

impl Wake for List {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut contents = self.0.lock();
        if contents.polling {
            contents.woken = true;
            return;
        }
        let waiting = std::mem::take(&mut contents.waiting);
        drop(contents);
        wake_all(waiting);
    }
}
