//! A bounded table with one entry per destination, shared by budgets and guards.
//!
//! A table that only grows is a leak, and hostile names could fill a table that never evicts entries. When the table is
//! full, a new destination therefore evicts another one.
//!
//! # Eviction
//!
//! An entry with a call in flight is never evicted. All others are *idle*. The entries form a ring with a *hand*, as in
//! the clock algorithm for page caches. Adding a destination inspects the next [`SEEN`] entries, starting at the hand,
//! and considers the first [`CONSIDERED`] idle ones. The work therefore does not grow with the table.
//!
//! 1. An entry in its initial state is evicted first, because a new entry would be no different.
//! 2. Otherwise the first entry that was not used since the hand last passed it is evicted. Usage marks are stored
//!    outside the table: a lookup sets the mark, and the hand clears it.
//! 3. If all of them were used, the first one is evicted.
//!
//! If nothing can be evicted, the new destination gets no entry, and its guard or budget decides without state. Except
//! under a rate limit, a destination is never refused because of other destinations' names. Under a rate limit, all
//! destinations without an entry share one state, which may refuse calls.
//!
//! # Threads
//!
//! The table is divided into parts of about [`PART`] entries. Adding a destination copies one or two parts under a
//! lock. A lookup reads its part without a lock.
//!
//! A call holds a reference to its entry from before its first use until the call ends. An entry is therefore idle if
//! only the ring and the entry's part of the table refer to it. A thread may find an entry just before its eviction.
//! The eviction therefore checks the references and marks the entry as *retired* in one atomic step. A thread that
//! finds a retired entry repeats its lookup under the lock, where it sees the new part.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
#[cfg(not(loom))]
use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::sync::{Mutex, MutexGuard, Ordering};

/// Model runs must be reproducible, so the hash has no random seed.
#[cfg(loom)]
type RandomState = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// The default capacity of a table: enough for the destinations of a busy gateway, in a few hundred kilobytes.
pub(crate) const DEFAULT_DESTINATIONS: usize = 1024;
/// The highest capacity of a table. An entry takes a few hundred bytes, so more would amount to a leak.
const MOST_DESTINATIONS: usize = 65_536;

/// The number of entries inspected in a full table, and the number of idle ones considered for eviction.
const SEEN: usize = 128;
const CONSIDERED: usize = 8;

/// The mean number of entries in a part of a full table, all of which are copied to add one.
const PART: usize = 16;

/// The reference count of an idle entry: the ring and its part.
const IDLE: usize = 2;

/// Clamps a table's capacity to its valid range.
pub(crate) fn clamped_destinations(most: usize) -> usize {
    most.clamp(1, MOST_DESTINATIONS)
}

/// A value that a table can store for a destination.
pub(crate) trait Entry {
    /// Retires the entry if it is idle and in its initial state at `now`. Returns `true` if it was retired.
    ///
    /// If `forgets`, any other state may be discarded as well. A call may use the entry until the step that retires it.
    /// `is_idle` must therefore be called in that step: under the entry's lock, or after the word to be exchanged is
    /// loaded.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool;
}

/// The entries of a part, by name hash.
pub(crate) type Part<E> = HashTable<NamedEntry<E>>;

/// An entry with its destination's name.
pub(crate) struct NamedEntry<E> {
    pub(crate) name: Arc<str>,
    pub(crate) entry: Arc<E>,
    /// The index of the entry in the ring.
    number: usize,
}

impl<E> NamedEntry<E> {
    /// Creates an entry that is not in the ring.
    pub(crate) fn apart(name: Arc<str>, entry: Arc<E>) -> Self {
        Self { name, entry, number: usize::MAX }
    }
}

impl<E> Clone for NamedEntry<E> {
    fn clone(&self) -> Self {
        let (name, entry) = (Arc::clone(&self.name), Arc::clone(&self.entry));
        Self { name, entry, number: self.number }
    }
}

pub(crate) struct DestinationTable<E> {
    /// A power of two.
    parts: Box<[ArcSwap<Part<E>>]>,
    /// Held while the table changes. An entry is retired only while it is held.
    ring: Mutex<Ring<E>>,
    /// The marks of entries that were used since the hand last passed. They affect only the eviction order, so they are
    /// not part of the model.
    used: Box<[AtomicBool]>,
    hashing: RandomState,
}

/// The entries, with their name hashes.
struct Ring<E> {
    entries: Vec<(u64, Arc<E>)>,
    hand: usize,
}

impl<E: Entry> DestinationTable<E> {
    /// Creates an empty table with a capacity of `most` destinations.
    pub(crate) fn new(most: usize) -> Self {
        let (empty, parts) = (Arc::default(), most.div_ceil(PART).next_power_of_two());
        Self {
            parts: (0..parts).map(|_| ArcSwap::new(Arc::clone(&empty))).collect(),
            ring: Mutex::new(Ring { entries: Vec::new(), hand: 0 }),
            used: (0..most).map(|_| AtomicBool::new(false)).collect(),
            hashing: RandomState::default(),
        }
    }

    /// Returns the part for a hash.
    #[inline]
    fn part(&self, hash: u64) -> Option<&ArcSwap<Part<E>>> {
        // The low bits choose the slot in a part.
        let [.., low, high, _, _] = hash.to_le_bytes();
        self.parts.get(usize::from(u16::from_le_bytes([low, high])) & (self.parts.len() - 1))
    }

    /// Returns the entry of `destination`, if there is one, and marks it as used.
    #[inline]
    pub(crate) fn find(&self, hash: u64, destination: &str) -> Option<Arc<E>> {
        let part = self.part(hash)?.load();
        let named = part.find(hash, |named| *named.name == *destination)?;
        // The mark is read before it is written, because a write would take the cache line from other threads. An entry
        // beyond the capacity has no mark.
        let mark = self.used.get(named.number);
        if let Some(mark) = mark.filter(|mark| !mark.load(Ordering::Relaxed)) {
            mark.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(&named.entry))
    }

    /// Finds or adds an entry for `destination`, whose hash is `hash`, under the lock. The entry cannot be retired
    /// while the returned reference is held.
    ///
    /// `create` creates a new entry for its name. Returns `None` if there is no room. If `past_bound`, there is always
    /// room, for state that the user sets.
    pub(crate) fn enter(
        &self,
        hash: u64,
        destination: &str,
        now: Duration,
        past_bound: bool,
        create: &dyn Fn(&Arc<str>) -> E,
    ) -> Option<Arc<E>> {
        let mut ring = self.lock();
        // Another thread may have added the entry in the meantime.
        if let Some(entry) = self.find(hash, destination) {
            return Some(entry);
        }
        let number = match self.free(&mut ring, now) {
            None if past_bound => ring.entries.len(),
            number => number?,
        };
        let name: Arc<str> = destination.into();
        let entry = Arc::new(create(&name));
        match ring.entries.get_mut(number) {
            Some(named) => *named = (hash, Arc::clone(&entry)),
            None => ring.entries.push((hash, Arc::clone(&entry))),
        }
        let named = NamedEntry { name, entry: Arc::clone(&entry), number };
        self.change(hash, |part| {
            part.insert_unique(hash, named, |named| self.hash(&named.name));
        });
        Some(entry)
    }

    /// Returns a free index of the ring, after an eviction if the table is full.
    fn free(&self, ring: &mut Ring<E>, now: Duration) -> Option<usize> {
        let len = ring.entries.len();
        if len < self.used.len() {
            return Some(len);
        }
        let is_idle = |number: &usize| {
            let named = ring.entries.get(*number);
            named.is_some_and(|(_, entry)| Arc::strong_count(entry) <= IDLE)
        };
        let seen = (ring.hand..).take(SEEN.min(len)).map(|number| number % len);
        let idle: Vec<_> = seen.filter(is_idle).take(CONSIDERED).collect();
        let retires = |number: usize, forgets| {
            let named = ring.entries.get(number);
            named.is_some_and(|(_, entry)| entry.retire(now, forgets, &|| is_idle(&number)))
        };
        let was_used = |number: usize| self.used.get(number).is_some_and(|mark| mark.swap(false, Ordering::Relaxed));
        let first = |leaves: &dyn Fn(usize) -> bool| idle.iter().copied().find(|own| leaves(*own));
        let left = first(&|number| retires(number, false))
            .or_else(|| first(&|number| !was_used(number) && retires(number, true)))
            .or_else(|| first(&|number| retires(number, true)));
        let last = left.or(idle.get(CONSIDERED - 1).copied());
        ring.hand = last.map_or(ring.hand + SEEN, |last| last + 1).checked_rem(len)?;
        let number = left?;
        was_used(number);
        let hash = ring.entries.get(number).map(|(hash, _)| *hash)?;
        self.change(hash, |part| {
            let named = part.find_entry(hash, |named| named.number == number);
            named.into_iter().for_each(|named| drop(named.remove()));
        });
        Some(number)
    }

    /// Replaces the part for a hash with a changed copy. Called under the lock.
    fn change(&self, hash: u64, change: impl FnOnce(&mut Part<E>)) {
        let Some(part) = self.part(hash) else { return };
        let mut changed = Part::clone(&part.load());
        change(&mut changed);
        part.store(Arc::new(changed));
    }

    /// Runs `act` while no destination can be added.
    pub(crate) fn alone(&self, act: impl FnOnce()) {
        let _ring = self.lock();
        act();
    }

    /// Runs `first`, and then `act` for each entry, while no destination can be added.
    pub(crate) fn for_all(&self, first: impl FnOnce(), act: impl Fn(&Arc<E>)) {
        let ring = self.lock();
        first();
        ring.entries.iter().for_each(|(_, entry)| act(entry));
    }

    /// Visits each entry, unordered and without a lock.
    pub(crate) fn for_each(&self, mut act: impl FnMut(&NamedEntry<E>)) {
        self.parts.iter().for_each(|part| part.load().iter().for_each(&mut act));
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.load().len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Ring<E>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hash of a name.
    ///
    /// Callers choose slots by the low bits, so the hash is foldhash's `quality`. With some seeds, its `fast` clusters
    /// names such as `host-1` and `host-2`: a lookup then compares 18 names instead of about 1.6. The seed is random,
    /// so an attacker who chooses names cannot predict collisions. Even with collisions, a lookup compares at most as
    /// many names as the table can hold.
    #[inline]
    pub(crate) fn hash(&self, destination: &str) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        hasher.write(destination.as_bytes());
        hasher.finish()
    }
}
