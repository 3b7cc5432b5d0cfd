//! The atomics and locks of the state machines: those of std, or under `--cfg loom` those of the model checker.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// A value with cache lines of its own, so that writes to its neighbours do not slow it down. Processors fetch the
/// lines in pairs of 64 bytes.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Apart<T>(pub(crate) T);
