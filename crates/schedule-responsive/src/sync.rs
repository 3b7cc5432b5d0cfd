//! The atomics that the interval is moved by: those of the language, or, under `--cfg loom`, those
//! of the model checker, which tries every order in which threads can see them.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
