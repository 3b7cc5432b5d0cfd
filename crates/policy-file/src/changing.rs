//! The lock that is held while a file's policies change.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    /// The locks that this thread holds.
    static HELD: RefCell<Vec<*const ChangeLock>> = const { RefCell::new(Vec::new()) };
}

/// The lock that is held while a file's policies change. The program's callbacks run meanwhile, and may use the same
/// file.
#[derive(Default)]
pub(crate) struct ChangeLock(Mutex<()>);

/// The result of locking.
pub(crate) enum Changing<'a> {
    Begun(Held<'a>),
    /// This thread holds the lock already, so it is in a callback of the program.
    Already,
}

/// The lock, which is held until this value is dropped.
pub(crate) struct Held<'a> {
    lock: &'a ChangeLock,
    _guard: MutexGuard<'a, ()>,
}

impl ChangeLock {
    pub(crate) fn begin(&self) -> Changing<'_> {
        let is_held = |held: &RefCell<Vec<_>>| held.borrow().iter().any(|held| ptr::eq(*held, self));
        if HELD.with(is_held) {
            return Changing::Already;
        }
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        HELD.with(|held| held.borrow_mut().push(self));
        Changing::Begun(Held { lock: self, _guard: guard })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        HELD.with(|held| held.borrow_mut().retain(|held| !ptr::eq(*held, self.lock)));
    }
}
