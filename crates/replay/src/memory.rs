//! The limit on the memory of all kept bodies, the shares of destinations, and the allowance of one body.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// The limit on the memory of all kept bodies. Clones share one limit.
///
/// Many calls may wait for their next attempt at one time, and each keeps a body. Beyond this limit, new frames are not
/// kept: the calls are sent, but cannot be retried. Freed frames give their charge back.
///
/// With [`ReplayLimits::by_destination`](crate::ReplayLimits::by_destination), which the layers call, one
/// destination that hangs leaves room for the others. Once a quarter of the limit is in use, a destination can add
/// at most another quarter. So it holds at most half of the limit, plus the frame or the body in memory that passed the
/// first quarter. Bodies that began earlier keep no further frames.
///
/// A body is charged until its last holder drops it. Over HTTP/2, hyper may hold the body of an ended call until the
/// connection closes.
///
/// ```
/// let memory = reattempt_replay::ReplayMemory::new(8 * 1024 * 1024);
/// assert_eq!((memory.used(), memory.limit()), (0, 8 * 1024 * 1024));
/// ```
#[derive(Clone)]
pub struct ReplayMemory(Arc<Bound>);

struct Bound {
    limit: usize,
    used: AtomicUsize,
    kind: Kind,
}

enum Kind {
    /// The bound over all bodies.
    Whole(Shares),
    /// The share of one destination. Its bytes are also taken from the whole.
    Share(ReplayMemory),
}

/// The shares of the destinations, and the rule that makes them necessary.
#[derive(Default)]
struct Shares {
    /// `true` if bodies without a share can take nothing past the first quarter.
    required: AtomicBool,
    table: Mutex<Table>,
}

/// The shares of the destinations that hold, or may still take, memory.
#[derive(Default)]
struct Table {
    shares: HashMap<Box<str>, Weak<Bound>>,
    /// The number of shares at which unused ones are removed.
    most: usize,
}

impl Table {
    /// Returns the share of this destination.
    fn share(&mut self, destination: &str, whole: &ReplayMemory) -> ReplayMemory {
        if let Some(share) = self.shares.get(destination).and_then(Weak::upgrade) {
            return ReplayMemory(share);
        }
        if self.shares.len() >= self.most {
            self.shares.retain(|_, share| share.strong_count() > 0);
            self.most = 2 * self.shares.len() + 16;
        }
        let share = ReplayMemory::of(whole.0.quarter(), Kind::Share(whole.clone()));
        self.shares.insert(destination.into(), Arc::downgrade(&share.0));
        share
    }
}

impl Bound {
    fn quarter(&self) -> usize {
        self.limit / 4
    }

    /// Takes `bytes` if that many are left, unless `is_enough` rejects the bytes in use.
    ///
    /// The count guards no other data, hence `Relaxed`.
    #[inline]
    fn take(&self, bytes: usize, is_enough: impl Fn(usize) -> bool) -> bool {
        let add = |used: usize| {
            used.checked_add(bytes).filter(|sum| *sum <= self.limit && !is_enough(used))
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl ReplayMemory {
    /// Creates a limit of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self::of(bytes, Kind::Whole(Shares::default()))
    }

    fn of(limit: usize, kind: Kind) -> Self {
        Self(Arc::new(Bound { limit, used: AtomicUsize::new(0), kind }))
    }

    /// Lets only shares take memory past the first quarter from now on.
    pub(super) fn require_shares(&self) {
        if let Kind::Whole(shares) = &self.0.kind {
            shares.required.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if a quarter is in use. Then new bodies need a share.
    #[inline]
    pub(super) fn is_shared_out(&self) -> bool {
        self.used() >= self.0.quarter()
    }

    /// Returns the share of this destination. It takes a lock, so call it only if the memory
    /// [is shared out](Self::is_shared_out).
    pub(super) fn share(&self, destination: &str) -> Self {
        match &self.0.kind {
            Kind::Whole(shares) => shares.table.lock().share(destination, self),
            Kind::Share(_) => self.clone(),
        }
    }

    /// Returns the bytes that are charged now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that may be charged at one time.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Takes `bytes` if that many are left.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> bool {
        match &self.0.kind {
            Kind::Whole(shares) => self.0.take(bytes, |used| {
                bytes > 0 && used >= self.0.quarter() && shares.required.load(Ordering::Relaxed)
            }),
            Kind::Share(whole) => {
                let taken = self.0.take(bytes, |_| false);
                let granted = taken && whole.0.take(bytes, |_| false);
                if taken && !granted {
                    self.0.give_back(bytes);
                }
                granted
            }
        }
    }

    #[inline]
    pub(super) fn give_back(&self, bytes: usize) {
        self.0.give_back(bytes);
        if let Kind::Share(whole) = &self.0.kind {
            whole.0.give_back(bytes);
        }
    }
}

impl Default for ReplayMemory {
    /// Creates a limit of 64 MiB: room for 1,024 bodies of 64 KiB, the default limit for each call.
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

/// A charge on a [`ReplayMemory`], from [`ReplayLimits::charge`](crate::ReplayLimits::charge). Dropping it gives the
/// bytes back.
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

/// The least charge of a frame: about the size of its entry in the queue.
pub(super) const LEAST_CHARGE: usize = 32;

/// The largest capacity of a chunk, unless the frame that it is made for is longer.
const LARGEST_CHUNK: usize = 16 * 1024;

/// The charge of a data frame of `length` bytes that is kept by reference.
#[inline]
pub(super) fn least_charge(length: usize) -> usize {
    length.max(LEAST_CHARGE)
}

/// The memory that one body may take and has taken. Dropping it gives back all that is taken.
pub(super) struct Allowance {
    per_call: usize,
    /// The bytes that the limit of one call still allows.
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

    /// Takes the capacity of a chunk that `length` bytes are copied into. It is as much as the body has taken so far,
    /// so that there are few chunks. If a limit leaves less, it is what the limit of the call leaves, or `length`.
    pub(super) fn take_chunk(&mut self, length: usize) -> Option<usize> {
        let ample = self.taken().clamp(LEAST_CHARGE, LARGEST_CHUNK).max(length).min(self.left);
        if ample < length {
            return None;
        }
        [ample, length].into_iter().find(|capacity| self.take(*capacity))
    }

    #[inline]
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
        self.memory.give_back(bytes);
    }

    /// Moves the charge into another allowance, which gives it back.
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
