//! A pause of a thread, which its owner can end.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The pauses of one thread.
#[derive(Default)]
pub(crate) struct Pause {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Pause {
    /// Waits for this time. Returns `true` if the thread must end.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns `true` if the thread must end.
    pub(crate) fn is_over(&self) -> bool {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the pause, and the thread.
    pub(crate) fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}
