//! The atomics and the lock of the memory's counts. The models of `reattempt-control` put those of the model checker in
//! their place.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};
