//! The limit on the memory of all kept bodies, the bytes that each destination holds, and the allowance of one body.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError};

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// The limit on the memory of all kept bodies. Clones share one limit.
///
/// Many calls may wait for their next attempt at one time, and each keeps a body. Beyond this limit, new frames are not
/// kept: the calls are sent, but cannot be retried. Freed frames give their charge back.
///
/// # Destinations
///
/// With [`ReplayLimits::by_destination`](crate::ReplayLimits::by_destination), which the layers call, a hanging
/// destination leaves room for the others. The rule is that of dynamic thresholds (Choudhury and Hahne, 1998, with
/// α = 1): a destination may hold at most as much as is still free. Bodies in memory and streamed frames obey it alike.
///
/// Below a quarter of the limit, bytes are not counted for a destination. A body that could pass the quarter is counted
/// from its first byte.
///
/// | holders that never give back | held by each | free |
/// |---|---|---|
/// | one destination, and bytes that are counted for none | 3/8 and 1/4, together 5/8 | 3/8 |
/// | N destinations that take in turn | 3/(4(N+1)) | 3/(4(N+1)) |
/// | N destinations, each after the one before it is full | 3/8, 3/16, 3/32, … | 3/(4·2^N) |
///
/// The last row approaches the one above it as bodies are freed, because only destinations that hold less than what is
/// free can take again. A destination leaves at least as much free as it holds. So a destination that holds nothing can
/// keep a body of half the size of the one that was kept last, however many others hold memory.
///
/// One body can thus take at most half of what is free. A streamed body that was not counted when it began keeps no
/// frame past the quarter.
///
/// A body is charged until its last holder drops it. Over HTTP/2, hyper may hold the body of an ended call until the
/// connection closes.
///
/// ```
/// let memory = reattempt_replay::ReplayMemory::new(8 * 1024 * 1024);
/// assert_eq!((memory.used(), memory.limit()), (0, 8 * 1024 * 1024));
/// ```
#[derive(Clone)]
pub struct ReplayMemory(Arc<Account>);

/// The account that bytes are charged to.
enum Account {
    /// The bound over all bodies.
    Whole(Bound),
    /// One destination, by the hash of its name. Its bytes are also taken from the whole.
    Destination { whole: ReplayMemory, key: u64 },
}

struct Bound {
    limit: usize,
    used: AtomicUsize,
    /// Bodies without a destination take nothing past this: all of the limit, or the first quarter if destinations are
    /// counted.
    uncounted: AtomicUsize,
    /// The bytes that each destination holds. A destination that holds none has no entry.
    held: Mutex<HashMap<u64, usize>>,
    /// Names may be long, and only their hashes are kept.
    hashing: RandomState,
}

impl Bound {
    /// Takes `bytes` unless more than `most` would then be in use.
    ///
    /// The count guards no other data, hence `Relaxed`.
    #[inline]
    fn take(&self, bytes: usize, most: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Takes `bytes` for a destination unless it would then hold more than is free.
    #[cold]
    fn take_for(&self, key: u64, bytes: usize) -> bool {
        let mut held = self.held();
        let own = held.get(&key).map_or(bytes, |own| own.saturating_add(bytes));
        let granted = self.take(bytes, self.limit.saturating_sub(own));
        if granted {
            held.insert(key, own);
        }
        granted
    }

    #[cold]
    fn give_back_of(&self, key: u64, bytes: usize) {
        let mut held = self.held();
        match held.get_mut(&key) {
            Some(own) if *own > bytes => *own -= bytes,
            _ => {
                held.remove(&key);
                if held.len() < held.capacity() / 4 {
                    let twice = 2 * held.len();
                    held.shrink_to(twice);
                }
            }
        }
        self.give_back(bytes);
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplayMemory {
    /// Creates a limit of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Account::Whole(Bound {
            limit: bytes,
            used: AtomicUsize::new(0),
            uncounted: AtomicUsize::new(bytes),
            held: Mutex::new(HashMap::new()),
            hashing: RandomState::new(),
        })))
    }

    #[inline]
    fn bound(&self) -> &Bound {
        match &*self.0 {
            Account::Whole(bound) => bound,
            Account::Destination { whole, .. } => whole.bound(),
        }
    }

    /// Lets only destinations take memory past the first quarter from now on.
    pub(super) fn count_destinations(&self) {
        self.bound().uncounted.store(self.limit() / 4, Ordering::Relaxed);
    }

    /// Returns `true` if a body of this charge could pass the first quarter. It then needs a destination.
    #[inline]
    pub(super) fn passes_quarter(&self, charge: usize) -> bool {
        let bound = self.bound();
        let used = bound.used.load(Ordering::Relaxed);
        used.saturating_add(charge) > bound.uncounted.load(Ordering::Relaxed)
    }

    /// Returns the account of this destination.
    pub(super) fn of_destination(&self, name: &str) -> Self {
        match &*self.0 {
            Account::Whole(bound) => {
                let key = bound.hashing.hash_one(name);
                Self(Arc::new(Account::Destination { whole: self.clone(), key }))
            }
            Account::Destination { .. } => self.clone(),
        }
    }

    /// Returns the bytes that are charged now.
    pub fn used(&self) -> usize {
        self.bound().used.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that may be charged at one time.
    pub fn limit(&self) -> usize {
        self.bound().limit
    }

    /// Takes `bytes` if the rule leaves that many to this account.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> bool {
        match &*self.0 {
            Account::Whole(bound) => {
                bound.take(bytes, bound.uncounted.load(Ordering::Relaxed)) || bytes == 0
            }
            Account::Destination { whole, key } => {
                bytes == 0 || whole.bound().take_for(*key, bytes)
            }
        }
    }

    #[inline]
    pub(super) fn give_back(&self, bytes: usize) {
        match &*self.0 {
            Account::Whole(bound) => bound.give_back(bytes),
            Account::Destination { whole, key } => whole.bound().give_back_of(*key, bytes),
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

    /// Removes the limit of one call.
    pub(super) fn lift(&mut self) {
        self.left = usize::MAX - self.taken();
        self.per_call = usize::MAX;
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
