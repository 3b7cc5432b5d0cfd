//! Atomics and locks for the state machines: from std, or from the model checker under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// A cell that is set once.
#[cfg(not(loom))]
pub(crate) use std::sync::OnceLock;

/// A cell that is set once, for models. The checker sees its flag, so a reader may find it unset.
#[cfg(loom)]
pub(crate) struct OnceLock<T> {
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

#[cfg(loom)]
impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.is_set.load(Ordering::Acquire).then(|| self.value.get()).flatten()
    }

    pub(crate) fn get_or_init(&self, new: impl FnOnce() -> T) -> &T {
        let value = self.value.get_or_init(new);
        self.is_set.store(true, Ordering::Release);
        value
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(loom)]
impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        Self { is_set: AtomicBool::new(true), value: value.into() }
    }
}

/// The number of parts in a striped count. Threads add to different parts, unless there are more threads than parts.
pub(crate) const STRIPES: usize = if cfg!(loom) { 2 } else { 4 };

/// Returns the number of this thread's part. Threads are assigned to parts round-robin.
#[cfg(not(loom))]
#[inline]
pub(crate) fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    OWN.with(|own| *own)
}

#[cfg(loom)]
loom::thread_local!(static OWN: std::cell::Cell<usize> = std::cell::Cell::new(0));

/// Returns the number of this thread's part, which is 0 unless the model has set another.
#[cfg(loom)]
pub(crate) fn stripe() -> usize {
    OWN.with(std::cell::Cell::get)
}

/// Sets the number of this thread's part.
#[cfg(loom)]
#[allow(dead_code, reason = "only models use it")]
pub(crate) fn use_stripe(number: usize) {
    OWN.with(|own| own.set(number));
}

/// A value on its own cache lines, so that writes to neighbouring values do not slow it down. Processors fetch the
/// lines in pairs of 64 bytes.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Apart<T>(pub(crate) T);
