//! The marker for attempts that a time limit of this crate drops, so that inner guards know whose time ran out.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::call::late_answers::leave;

thread_local! {
    /// The reason for which this thread drops an attempt.
    static CUTTING_OFF: Cell<Option<CutOff>> = const { Cell::new(None) };
    /// The name of the dropped attempt's server.
    static SERVER: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
    /// `true` once an inner guard has found that the dropped attempt had no time at its server.
    static HAD_NO_TIME: Cell<bool> = const { Cell::new(false) };
}

/// The time that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// The time limit of one attempt, which is the server's time.
    Attempt,
    /// The call's time or its caller's deadline, which may have left the server little time.
    Call,
    /// Any limit, while the attempt waited for the caller's body.
    Upload,
}

/// The thread's previous marker, which is restored even if a destructor panics.
struct Before(Option<CutOff>);

impl Drop for Before {
    fn drop(&mut self) {
        CUTTING_OFF.set(self.0);
    }
}

impl CutOff {
    /// Drops an attempt by calling `cancel`. If a limit is the reason, inner guards judge the attempt accordingly, and
    /// not as an abandoned call. Its answer may be on its way, unless it still waits for the caller's body.
    pub fn drop_attempt<R>(limit: Option<Self>, cancel: impl FnOnce() -> R) -> R {
        let Some(limit) = limit else { return cancel() };
        let _before = Before(CUTTING_OFF.replace(Some(limit)));
        SERVER.set(None);
        HAD_NO_TIME.set(false);
        if limit == Self::Upload { cancel() } else { leave(cancel) }
    }

    /// Returns the limit for which an outer layer is dropping the attempt, if that is the case.
    pub fn current() -> Option<Self> {
        CUTTING_OFF.get()
    }

    /// Records the server of the attempt that is being dropped. The last name counts, which comes from the outermost
    /// guard that has chosen a server.
    pub fn set_server(server: Option<Arc<str>>) {
        SERVER.with_borrow_mut(|named| *named = server.or(named.take()));
    }

    /// Takes the server of the attempt that [`drop_attempt`](Self::drop_attempt) has dropped.
    pub fn take_server() -> Option<Arc<str>> {
        SERVER.take()
    }

    /// Records that the attempt that is being dropped had no time at its server, for the guards around this one.
    pub fn set_had_no_time() {
        HAD_NO_TIME.set(true);
    }

    /// Returns `true` if an inner guard has found that the attempt had no time at its server.
    pub fn had_no_time() -> bool {
        HAD_NO_TIME.get()
    }
}
