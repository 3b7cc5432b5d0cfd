//! The task that updates a set. It holds only a weak reference while it waits, and ends with the set.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::call::errors::{BoxError, chain};

/// The discovery of a set.
#[derive(Default)]
pub(super) struct Discovery {
    /// `true` once the set has had endpoints.
    is_answered: AtomicBool,
    pub(super) answer: Arc<Notify>,
    pub(super) wanted: Arc<Notify>,
    task: Mutex<Task>,
}

#[derive(Default)]
enum Task {
    #[default]
    None,
    /// The set was created outside a runtime.
    New(Pin<Box<dyn Future<Output = ()> + Send>>),
    Running(AbortHandle),
}

impl Discovery {
    /// Starts the task. Without a runtime, the first call starts it.
    pub(super) fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        *self.lock() = Task::New(Box::pin(task));
        self.start();
    }

    /// Starts the task unless it is running.
    pub(super) fn start(&self) {
        let mut task = self.lock();
        *task = match (std::mem::take(&mut *task), Handle::try_current()) {
            (Task::New(new), Ok(runtime)) => Task::Running(runtime.spawn(new).abort_handle()),
            (other, _) => other,
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` until the first result.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        !self.is_answered.load(Ordering::Acquire)
    }

    /// Records that the set has endpoints.
    pub(super) fn answered(&self) {
        self.is_answered.store(true, Ordering::Release);
        self.answer.notify_waiters();
    }

    /// Requests a look-up, because an endpoint has failed.
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
    /// A user's future, whose panic becomes an error.
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

/// Calls a user's code, whose panic becomes an error.
pub(super) fn caught<R>(code: impl FnOnce() -> R) -> Result<R, BoxError> {
    // The values that it captured are dropped or not used again.
    catch_unwind(AssertUnwindSafe(code)).map_err(|_| "the discovery panicked".into())
}

/// Returns an error as text.
pub(super) fn text(error: &BoxError) -> Arc<str> {
    chain(&**error).into()
}
