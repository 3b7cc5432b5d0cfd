//! The atomics and locks of the state machines: those of std, or under `--cfg loom` those of the model checker.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// A value with cache lines of its own (processors fetch them in pairs of 64 bytes), so that it is
/// not slowed down by writes to what lies beside it.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Apart<T>(pub(crate) T);
