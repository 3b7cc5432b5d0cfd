//! The marker of attempts that one of our time limits drops. Inner guards then record a timeout.

use std::cell::Cell;

thread_local! {
    /// `true` while this thread drops such an attempt.
    static CUTTING_OFF: Cell<bool> = const { Cell::new(false) };
}

/// The thread's previous marker, which is restored even if a destructor panics.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        CUTTING_OFF.set(self.0);
    }
}

/// Drops an attempt by calling `cancel`. If a time limit of the caller's layer ended it, inner guards count it as a
/// server timeout and not as an abandoned call.
pub(crate) fn cut_off<R>(by_limit: bool, cancel: impl FnOnce() -> R) -> R {
    if !by_limit {
        return cancel();
    }
    let _before = Before(CUTTING_OFF.replace(true));
    cancel()
}

/// Returns `true` if a time limit of an outer layer is dropping the attempt.
pub(crate) fn is_cut_off() -> bool {
    CUTTING_OFF.get()
}
