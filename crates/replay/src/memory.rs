//! The memory limit for all kept bodies, the bytes held per destination, and the allowance for one body.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError};

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// The memory limit for all kept bodies. Clones share one limit.
///
/// Many calls may wait for their next attempt at the same time, each keeping a body. Beyond this limit, new frames are
/// not kept: the calls are sent, but cannot be retried. Freeing a frame releases its charge.
///
/// # Destinations
///
/// With [`ReplayLimits::by_destination`](crate::ReplayLimits::by_destination), which the layers call, a destination
/// that hangs leaves memory for the others. By the dynamic-threshold rule (Choudhury and Hahne, 1998, with α = 1), a
/// destination may hold at most as much as is still free. The rule applies to in-memory bodies and streamed frames.
///
/// The first quarter of the limit is not counted per destination. A body that could exceed this quarter is counted from
/// its first byte.
///
/// | holders that never release memory | held by each | free |
/// |---|---|---|
/// | one destination, and uncounted bytes | 3/8 and 1/4, in total 5/8 | 3/8 |
/// | N destinations that take turns | 3/(4(N+1)) | 3/(4(N+1)) |
/// | N destinations, one after the other, each up to its limit | 3/8, 3/16, 3/32, … | 3/(4·2^N) |
///
/// As bodies are freed, the last row approaches the one above it, because only destinations that hold less than the
/// free memory can take more. A destination leaves at least as much memory free as it holds. A new destination can
/// therefore always keep a body half as large as the last kept one, however many destinations there are.
///
/// A single body can thus take at most half of the free memory. A streamed body that was not counted at its start keeps
/// no frame beyond the quarter.
///
/// A body is charged until its last holder drops it. Over HTTP/2, hyper may hold the body of a finished call until the
/// connection closes.
///
/// ```
/// let memory = reattempt_replay::ReplayMemory::new(8 * 1024 * 1024);
/// assert_eq!((memory.used(), memory.limit()), (0, 8 * 1024 * 1024));
/// ```
#[derive(Clone)]
pub struct ReplayMemory(Arc<Account>);

/// The account to which bytes are charged.
enum Account {
    /// The limit for all bodies.
    Whole(Bound),
    /// One destination, identified by its name's hash. Its bytes also count towards the whole.
    Destination { whole: ReplayMemory, key: u64 },
}

struct Bound {
    limit: usize,
    used: AtomicUsize,
    /// The limit for bodies without a destination: all of the memory, or its first quarter if destinations are counted.
    uncounted: AtomicUsize,
    /// The bytes held for each destination. A destination that holds none has no entry.
    held: Mutex<HashMap<u64, usize>>,
    /// The hasher for destination names. Only their hashes are kept, because names may be long.
    hashing: RandomState,
}

impl Bound {
    /// Takes `bytes`, unless that would put more than `most` in use.
    ///
    /// The count guards no other data, so `Relaxed` is enough.
    #[inline]
    fn take(&self, bytes: usize, most: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Takes `bytes` for a destination, unless it would then hold more than the free memory.
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
    /// Creates a limit of `bytes`.
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

    /// From now on, reserves the memory beyond the first quarter for bodies with a destination.
    pub(super) fn count_destinations(&self) {
        self.bound().uncounted.store(self.limit() / 4, Ordering::Relaxed);
    }

    /// Returns `true` if a body with this charge could exceed the first quarter and thus needs a destination.
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

    /// Returns the number of bytes currently charged.
    pub fn used(&self) -> usize {
        self.bound().used.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of bytes charged at the same time.
    pub fn limit(&self) -> usize {
        self.bound().limit
    }

    /// Takes `bytes`, if this account allows it.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> bool {
        match &*self.0 {
            Account::Whole(bound) => bound.take(bytes, bound.uncounted.load(Ordering::Relaxed)) || bytes == 0,
            Account::Destination { whole, key } => bytes == 0 || whole.bound().take_for(*key, bytes),
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
    /// Creates a limit of 64 MiB, enough for 1,024 bodies of 64 KiB, the default per-call limit.
    fn default() -> Self {
        Self::new(64 * 1024 * 1024)
    }
}

impl fmt::Debug for ReplayMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayMemory").field("used", &self.used()).field("limit", &self.limit()).finish()
    }
}

/// A charge on a [`ReplayMemory`], from [`ReplayLimits::charge`](crate::ReplayLimits::charge). Dropping it releases the
/// bytes.
pub struct ReplayCharge {
    memory: ReplayMemory,
    bytes: usize,
}

impl ReplayMemory {
    /// Returns a charge for bytes that have already been taken.
    pub(super) fn charge_of_taken(&self, bytes: usize) -> ReplayCharge {
        ReplayCharge { memory: self.clone(), bytes }
    }
}

impl ReplayCharge {
    pub(super) fn new(memory: &ReplayMemory, bytes: usize) -> Option<Self> {
        memory.take(bytes).then(|| Self { memory: memory.clone(), bytes })
    }
}

impl ReplayCharge {
    /// Adds `bytes` to the charge. Returns `false` if the memory has no room for them.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let granted = self.memory.take(bytes);
        if granted {
            self.bytes += bytes;
        }
        granted
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

/// The minimum charge for a frame, about the size of its queue entry.
pub(super) const LEAST_CHARGE: usize = 32;

/// The maximum capacity of a chunk, unless its first frame is longer.
const LARGEST_CHUNK: usize = 16 * 1024;

/// Returns the charge for a data frame of `length` bytes that is kept by reference.
#[inline]
pub(super) fn least_charge(length: usize) -> usize {
    length.max(LEAST_CHARGE)
}

/// One body's memory allowance, and the bytes taken from it. Dropping it releases these bytes.
pub(super) struct Allowance {
    per_call: usize,
    /// The number of bytes that the per-call limit still allows.
    left: usize,
    memory: ReplayMemory,
}

impl Allowance {
    pub(super) fn new(per_call: usize, memory: ReplayMemory) -> Self {
        Self { per_call, left: per_call, memory }
    }

    /// Takes `bytes`, or nothing if that would exceed a limit.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let granted = bytes <= self.left && self.memory.take(bytes);
        if granted {
            self.left -= bytes;
        }
        granted
    }

    /// Takes the capacity of a new chunk, at least `length` bytes. The capacity equals what the body has taken so far,
    /// to keep the number of chunks low. If a limit allows less, it is what the per-call limit allows, or `length`.
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

    /// Removes the per-call limit.
    pub(super) fn lift(&mut self) {
        self.left = usize::MAX - self.taken();
        self.per_call = usize::MAX;
    }

    /// Moves the charge into another allowance, which releases it.
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
