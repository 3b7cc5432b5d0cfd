//! A thread's pause, which the thread's owner can end early.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The pauses of one thread.
#[derive(Default)]
pub(crate) struct Pause {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Pause {
    /// Waits for this duration. Returns `true` if the thread must end.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Runs a step, unless the thread must end. After [`end`](Self::end) has returned, no step runs.
    pub(crate) fn unless_over<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        (!*is_over).then(step)
    }

    /// Ends the pause and the thread. Waits for a running step to finish.
    pub(crate) fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn no_step_follows_the_end() {
        let pause = Pause::default();
        assert_eq!(pause.unless_over(|| 1), Some(1));
        pause.end();
        assert_eq!(pause.unless_over(|| 1), None);
    }

    /// A running step has finished when `end` returns.
    #[test]
    fn end_waits_for_a_step() {
        let (pause, is_done) = (Arc::new(Pause::default()), Arc::new(AtomicBool::new(false)));
        let (begun, is_begun) = channel();
        let (release, is_released) = channel::<()>();
        let (own, done) = (Arc::clone(&pause), Arc::clone(&is_done));
        let step = thread::spawn(move || {
            own.unless_over(|| {
                begun.send(()).ok();
                is_released.recv().ok();
                done.store(true, Ordering::SeqCst);
            })
        });
        assert!(is_begun.recv().is_ok());
        let (own, done) = (Arc::clone(&pause), Arc::clone(&is_done));
        let ending = thread::spawn(move || {
            own.end();
            done.load(Ordering::SeqCst)
        });
        // Gives `end` time to start. It must not return yet.
        (0..100).for_each(|_| thread::yield_now());
        assert!(release.send(()).is_ok());
        assert!(step.join().is_ok_and(|step| step.is_some()));
        assert!(ending.join().is_ok_and(|was_done| was_done), "the end came before the step was over");
    }
}
