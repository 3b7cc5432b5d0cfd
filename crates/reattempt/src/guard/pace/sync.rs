//! The queue's lock: from std, or from the model checker under `--cfg loom`.
//!
//! The models are in the tests of `reattempt-schedule-responsive`. They include this file and the queue.

#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard};
