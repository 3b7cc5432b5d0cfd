//! The atomics that the state machines are built from: those of std, or, under `--cfg loom`, those
//! of the model checker, which tries every order in which threads can see them.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
