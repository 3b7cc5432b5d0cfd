//! The marker for attempts that a time limit of this crate drops, so that inner guards record a timeout.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    /// `true` while this thread drops an attempt because of a time limit.
    static CUTTING_OFF: Cell<bool> = const { Cell::new(false) };
    /// The name of the dropped attempt's server.
    static SERVER: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// The thread's previous marker, which is restored even if a destructor panics.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        CUTTING_OFF.set(self.0);
    }
}

/// Drops an attempt by calling `cancel`. With `by_limit`, inner guards record the attempt as a server timeout and not
/// as an abandoned call.
pub(crate) fn cut_off<R>(by_limit: bool, cancel: impl FnOnce() -> R) -> R {
    if !by_limit {
        return cancel();
    }
    let _before = Before(CUTTING_OFF.replace(true));
    SERVER.set(None);
    cancel()
}

/// Returns `true` if a time limit of an outer layer is dropping the attempt.
pub(crate) fn is_cut_off() -> bool {
    CUTTING_OFF.get()
}

/// Records the server of the attempt that is being dropped. Only the first name is recorded, which comes from the
/// outermost guard that has chosen a server.
pub(crate) fn set_server(server: Option<Arc<str>>) {
    SERVER.with_borrow_mut(|named| *named = named.take().or(server));
}

/// Takes the server of the attempt that [`cut_off`] has dropped.
pub(crate) fn take_server() -> Option<Arc<str>> {
    SERVER.take()
}
