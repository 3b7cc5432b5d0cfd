//! The threads of look-ups, of which a resolver that hangs cannot make many.
//!
//! A thread whose look-up has ended stays until the system's resolver returns. If every reload starts new look-ups,
//! such threads would pile up. So at most a few of them may be left behind; then, further look-ups begin when one ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of threads that are left behind when another one starts.
const MOST_LEFT: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

/// The threads of all look-ups.
pub(crate) static LOOK_UPS: Threads = Threads(Mutex::new(ThreadsState { left: 0, waiting: VecDeque::new() }));

pub(crate) struct Threads(Mutex<ThreadsState>);

struct ThreadsState {
    /// The number of threads that are left behind.
    left: usize,
    waiting: VecDeque<(Job, Arc<Thread>)>,
}

/// A thread, which its owner can leave behind.
#[derive(Default)]
pub(crate) struct Thread(Mutex<Stage>);

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Waiting,
    Running,
    Left,
    Over,
}

impl Threads {
    /// Runs a job on a thread of its own, now or once fewer threads are left behind. If the system has no thread for
    /// it, the job is dropped.
    pub(crate) fn start(&'static self, job: impl FnOnce() + Send + 'static) -> Arc<Thread> {
        let thread = Arc::new(Thread::default());
        let mut state = self.lock();
        state.waiting.push_back((Box::new(job), Arc::clone(&thread)));
        drop(state);
        self.start_waiting();
        thread
    }

    /// Leaves a thread behind, whose job has been told to end.
    pub(crate) fn leave(&self, thread: &Thread) {
        let mut state = self.lock();
        let mut stage = thread.lock();
        match *stage {
            Stage::Running => {
                state.left += 1;
                *stage = Stage::Left;
            }
            Stage::Waiting => *stage = Stage::Over,
            Stage::Left | Stage::Over => {}
        }
        drop(stage);
        let (gone, waiting): (VecDeque<_>, _) =
            std::mem::take(&mut state.waiting).into_iter().partition(|(_, thread)| thread.is_over());
        state.waiting = waiting;
        drop(state);
        // Dropped without the lock, because a job contains the program's callback.
        drop(gone);
    }

    fn start_waiting(&'static self) {
        while let Some((job, thread)) = self.next() {
            let ending = Ending { threads: self, thread };
            let run = move || {
                job();
                drop(ending);
            };
            let _ = std::thread::Builder::new().name("reattempt-look-up".to_owned()).spawn(run);
        }
    }

    fn next(&self) -> Option<(Job, Arc<Thread>)> {
        let mut state = self.lock();
        if state.left >= MOST_LEFT {
            return None;
        }
        let (job, thread) = state.waiting.pop_front()?;
        *thread.lock() = Stage::Running;
        Some((job, thread))
    }

    fn end(&'static self, thread: &Thread) {
        let mut state = self.lock();
        let former = std::mem::replace(&mut *thread.lock(), Stage::Over);
        state.left -= usize::from(former == Stage::Left);
        drop(state);
        self.start_waiting();
    }

    fn lock(&self) -> MutexGuard<'_, ThreadsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a thread, also after a panic, or if the system has no thread.
struct Ending {
    threads: &'static Threads,
    thread: Arc<Thread>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.threads.end(&self.thread);
    }
}

impl Thread {
    fn is_over(&self) -> bool {
        *self.lock() == Stage::Over
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
