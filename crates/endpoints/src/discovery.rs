//! The task that updates a set. While the task waits, it holds only a weak reference to the set, so it ends when the
//! set is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use reattempt_engine::wall::chain;
use tower::BoxError;

/// There is no result yet, so calls wait.
const AWAITED: u8 = 0;
/// Calls do not wait.
const ANSWERED: u8 = 1;
/// Calls do not wait, and the next one in a runtime restarts the task.
const STOPPED: u8 = 2;

/// The maximum number of calls that wait for the first result. Each of them holds its request.
const MOST_WAITING: usize = 4096;

/// The discovery task of a set and its state.
pub(super) struct Discovery {
    /// One of the constants.
    state: AtomicU8,
    pub(super) answer: Arc<Notify>,
    pub(super) wanted: Arc<Notify>,
    /// The places for calls that wait for the first result.
    places: Arc<Semaphore>,
    task: Mutex<Task>,
}

impl Default for Discovery {
    fn default() -> Self {
        let (answer, wanted) = (Arc::default(), Arc::default());
        let places = Arc::new(Semaphore::new(MOST_WAITING));
        Self { state: AtomicU8::new(AWAITED), answer, wanted, places, task: Mutex::default() }
    }
}

#[derive(Default)]
enum Task {
    #[default]
    None,
    /// Not running: the set was created outside a runtime, or the task's runtime has shut down.
    New(Pin<Box<dyn Future<Output = ()> + Send>>),
    Running(AbortHandle),
}

impl Discovery {
    /// Starts the task, or lets the first call start it if there is no runtime.
    pub(super) fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        *self.lock() = Task::New(Box::pin(task));
        self.start();
    }

    /// Starts the task unless it is running.
    pub(super) fn start(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let new = {
            let mut task = self.lock();
            match std::mem::take(&mut *task) {
                Task::New(new) => new,
                other => return *task = other,
            }
        };
        self.change(STOPPED, ANSWERED);
        // The lock is not held here, because a runtime that is shutting down drops the task immediately, which puts the
        // job back.
        let spawned = runtime.spawn(new).abort_handle();
        let mut task = self.lock();
        if let Task::None = *task {
            *task = Task::Running(spawned);
        }
    }

    /// Takes back a task whose runtime has shut down.
    pub(super) fn put_back(&self, task: impl Future<Output = ()> + Send + 'static) {
        *self.lock() = Task::New(Box::pin(task));
        self.change(ANSWERED, STOPPED);
        // Calls that wait in other runtimes restart it.
        self.answer.notify_waiters();
    }

    fn change(&self, from: u8, to: u8) {
        // Any other state is left unchanged.
        let _ = self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a call must wait or must start the task.
    #[inline]
    pub(super) fn holds_up_calls(&self) -> bool {
        self.state.load(Ordering::Acquire) != ANSWERED
    }

    /// Returns `true` until the first result.
    pub(super) fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Acquire) == AWAITED
    }

    /// Returns a place for a call that waits for the first result, or `None` if too many do.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Records that the set has endpoints.
    pub(super) fn answered(&self) {
        self.change(AWAITED, ANSWERED);
        self.answer.notify_waiters();
    }

    /// Requests an early look-up, because an endpoint has failed.
    pub(super) fn look_up_soon(&self) {
        self.wanted.notify_one();
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        if let Task::Running(task) = &*self.lock() {
            task.abort();
        }
    }
}

pin_project! {
    /// A user's future, whose panics are converted to errors.
    pub(super) struct Caught<F> {
        #[pin]
        future: F,
    }
}

impl<F> Caught<F> {
    pub(super) const fn new(future: F) -> Self {
        Self { future }
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.project().future;
        match caught(|| future.poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}

/// Calls user code, and converts its panics to errors.
pub(super) fn caught<R>(code: impl FnOnce() -> R) -> Result<R, BoxError> {
    // Sound because the captured values are dropped or not used again.
    catch_unwind(AssertUnwindSafe(code)).map_err(|_| "the discovery panicked".into())
}

/// Returns an error as text.
pub(super) fn text(error: &BoxError) -> Arc<str> {
    chain(&**error).into()
}
