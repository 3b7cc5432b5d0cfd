//! The atomics and the lock for the memory counts. The models in `reattempt-control` replace them with the model
//! checker's.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder may panic, because polling a body may panic. Its users keep the protected value valid.
#[derive(Debug, Default)]
pub(super) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
