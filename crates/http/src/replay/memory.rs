//! The bound over everything that is kept of all bodies at one time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that the kept bodies of many calls share.
///
/// A hundred thousand calls that wait for their next attempt each hold a body; past this bound, new
/// frames are no longer kept and their calls go out without being able to be repeated. Clones share
/// one bound. What a body took comes back as its frames are freed.
///
/// ```
/// let memory = reattempt_http::ReplayMemory::new(8 * 1024 * 1024);
/// assert_eq!((memory.used(), memory.limit()), (0, 8 * 1024 * 1024));
/// ```
#[derive(Clone)]
pub struct ReplayMemory(Arc<Bound>);

struct Bound {
    limit: usize,
    used: AtomicUsize,
}

impl ReplayMemory {
    /// A bound of its own, in bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Bound { limit: bytes, used: AtomicUsize::new(0) }))
    }

    /// The bytes charged for frames that are kept now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The most bytes that may be charged at one time.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Takes `bytes` if that many are left. The count guards no other data, hence `Relaxed`.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.0.limit);
        self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    #[inline]
    pub(super) fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Default for ReplayMemory {
    /// 64 MiB: a thousand calls with a body of the default limit, many more with a usual one.
    fn default() -> Self {
        Self::new(64 * 1024 * 1024)
    }
}

impl fmt::Debug for ReplayMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayMemory")
            .field("used", &self.used())
            .field("limit", &self.limit())
            .finish()
    }
}

/// A part of the memory that is taken for as long as this value lives, by
/// [`ReplayLimits::charge`](super::ReplayLimits::charge).
pub struct ReplayCharge {
    memory: ReplayMemory,
    bytes: usize,
}

impl ReplayCharge {
    pub(super) fn new(memory: &ReplayMemory, bytes: usize) -> Option<Self> {
        memory.take(bytes).then(|| Self { memory: memory.clone(), bytes })
    }
}

impl Drop for ReplayCharge {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes);
    }
}

impl fmt::Debug for ReplayCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReplayCharge").field(&self.bytes).finish()
    }
}

/// What a data frame of `length` bytes is charged with: at least about what the queue spends on it.
#[inline]
pub(super) fn least_charge(length: usize) -> usize {
    length.max(32)
}

/// What one body may take of the memory, and has taken. What is not given back before is when it is
/// dropped.
pub(super) struct Allowance {
    per_call: usize,
    /// What may still be taken as far as the limit of one call is concerned: the rest is taken.
    left: usize,
    memory: ReplayMemory,
}

impl Allowance {
    pub(super) fn new(per_call: usize, memory: ReplayMemory) -> Self {
        Self { per_call, left: per_call, memory }
    }

    /// Takes `bytes`, or nothing if that would pass a limit.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let granted = bytes <= self.left && self.memory.take(bytes);
        if granted {
            self.left -= bytes;
        }
        granted
    }

    #[inline]
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
        self.memory.give_back(bytes);
    }

    /// What was taken, to be given back by somebody else.
    pub(super) fn hand_over(&mut self) -> Self {
        let left = std::mem::replace(&mut self.left, self.per_call);
        Self { per_call: self.per_call, left, memory: self.memory.clone() }
    }

    fn taken(&self) -> usize {
        self.per_call - self.left
    }

    pub(super) fn give_back_all(&mut self) {
        self.give_back(self.taken());
    }
}

impl Drop for Allowance {
    #[inline]
    fn drop(&mut self) {
        let taken = self.taken();
        if taken > 0 {
            self.memory.give_back(taken);
        }
    }
}
