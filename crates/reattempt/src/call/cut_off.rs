//! The mark of attempts that a time limit of ours drops, by which guards further in record a timeout.

use std::cell::Cell;

thread_local! {
    /// This thread drops such an attempt.
    static CUTTING_OFF: Cell<bool> = const { Cell::new(false) };
}

/// The thread's mark as it was before, which is set again also if a destructor panics.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        CUTTING_OFF.set(self.0);
    }
}

/// Drops an attempt by `cancel`. If a time limit of the caller's layer ends it, guards further in count it as a timeout
/// of the server, and not as one that the caller has given up.
pub(crate) fn cut_off<R>(by_limit: bool, cancel: impl FnOnce() -> R) -> R {
    if !by_limit {
        return cancel();
    }
    let _before = Before(CUTTING_OFF.replace(true));
    cancel()
}

/// Returns `true` if a time limit of a layer further out is dropping the attempt.
pub(crate) fn is_cut_off() -> bool {
    CUTTING_OFF.get()
}
