//! The queue's lock: std's, or loom's under `--cfg loom`.
//!
//! The loom models are in the tests of `reattempt-schedule-responsive`, which include this file and the queue.

#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard};
