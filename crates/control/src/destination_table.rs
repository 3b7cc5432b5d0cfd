//! A table of bounded size with one entry for each destination, shared by budgets and guards.
//!
//! The table is copied when it changes, and read without a lock. A newcomer waits only for other newcomers. If no place
//! is left, entries in their initial state leave, because a new entry would be the same. An entry is *retired* in the
//! atomic step that finds it initial. A thread that holds a retired entry looks again behind the lock, where the new
//! table is in place. If no entry may leave, all destinations without a place share one entry.

use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
#[cfg(not(loom))]
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use reattempt_core::ConfigError;

use crate::sync::Mutex;

/// Each run of a model must be the same, so the hash has no random seed.
#[cfg(loom)]
type RandomState = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// The default bound of a table: room for the destinations of a busy gateway, in some hundred kilobytes.
pub(crate) const DEFAULT_DESTINATIONS: usize = 1024;
/// The highest bound of a table. A newcomer copies the table, which beyond this would take milliseconds.
const MOST_DESTINATIONS: usize = 65_536;

/// Returns the bound of a table if it is a legal one.
pub(crate) fn checked_destinations(most: usize) -> Result<usize, ConfigError> {
    if (1..=MOST_DESTINATIONS).contains(&most) {
        return Ok(most);
    }
    Err(ConfigError::new("max_destinations", most, "a number from 1 to 65536"))
}

/// A value that a table can hold for a destination.
pub(crate) trait Entry {
    /// Takes the entry out of service if it is in its initial state at `now`. Returns `true` if it did.
    fn retire(&self, now: Duration) -> bool;
}

/// The entries of a table, by the hash of their names.
pub(crate) type Entries<E> = HashTable<Place<E>>;

/// An entry with the name of its destination.
pub(crate) struct Place<E> {
    pub(crate) name: Arc<str>,
    pub(crate) entry: Arc<E>,
}

impl<E> Clone for Place<E> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), entry: Arc::clone(&self.entry) }
    }
}

pub(crate) struct DestinationTable<E> {
    entries: ArcSwap<Entries<E>>,
    /// Held while the table changes. An entry is retired only under it.
    changing: Mutex<()>,
    /// The entry of all destinations without a place in the table. It is never retired.
    others: Arc<E>,
    hashing: RandomState,
    most: usize,
}

impl<E: Entry> DestinationTable<E> {
    /// Creates an empty table with room for `most` destinations.
    pub(crate) fn new(most: usize, others: E) -> Self {
        Self {
            entries: ArcSwap::default(),
            changing: Mutex::new(()),
            others: Arc::new(others),
            hashing: RandomState::default(),
            most,
        }
    }

    /// Returns the table as it is now.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<Entries<E>>> {
        self.entries.load()
    }

    /// Returns the entry that destinations without a place share.
    #[inline]
    pub(crate) fn others(&self) -> &Arc<E> {
        &self.others
    }

    /// Returns `true` if the table has no place left.
    #[inline]
    pub(crate) fn is_full(&self, entries: &Entries<E>) -> bool {
        entries.len() >= self.most
    }

    /// Finds `destination` a place behind the lock, and uses its entry while it cannot be retired.
    ///
    /// `create` makes the entry for the name of a newcomer.
    #[cold]
    pub(crate) fn enter<R>(
        &self,
        destination: &str,
        now: Duration,
        create: impl FnOnce(&Arc<str>) -> Arc<E>,
        act: impl FnOnce(&Arc<E>) -> R,
    ) -> R {
        let hash = self.hash(destination);
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = self.entries.load_full();
        // Another thread may have brought it in meanwhile.
        if let Some(entry) = find(&entries, hash, destination) {
            return act(entry);
        }
        let mut changed = Entries::<E>::clone(&entries);
        if self.is_full(&changed) {
            changed.retain(|place| !place.entry.retire(now));
        }
        if self.is_full(&changed) {
            return act(&self.others);
        }
        let name: Arc<str> = destination.into();
        let entry = create(&name);
        let place = Place { name, entry: Arc::clone(&entry) };
        changed.insert_unique(hash, place, |place| self.hash(&place.name));
        self.entries.store(Arc::new(changed));
        act(&entry)
    }

    /// Runs `act` while no newcomer comes in.
    pub(crate) fn alone(&self, act: impl FnOnce()) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        act();
    }

    /// Runs `first`, and then `act` for each entry, the shared one last, while no newcomer comes in.
    pub(crate) fn for_all(&self, first: impl FnOnce(), act: impl Fn(&Arc<E>)) {
        self.alone(|| {
            first();
            self.load().iter().map(|place| &place.entry).chain([&self.others]).for_each(act);
        });
    }

    /// Returns the hash of a name.
    ///
    /// Callers choose slots by its low bits, so the hash is foldhash's `quality`. Its `fast` clusters names such as
    /// `host-1` and `host-2` under some seeds: a look-up then compares 18 names, where 1.6 are usual. The seed is
    /// random, so an adversary who chooses the names cannot know which of them collide. Even with collisions a look-up
    /// compares at most as many names as the table may hold.
    #[inline]
    pub(crate) fn hash(&self, destination: &str) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        hasher.write(destination.as_bytes());
        hasher.finish()
    }
}

/// Returns the entry of `destination`, if it has a place.
#[inline]
pub(crate) fn find<'a, E>(
    entries: &'a Entries<E>,
    hash: u64,
    destination: &str,
) -> Option<&'a Arc<E>> {
    entries.find(hash, |place| *place.name == *destination).map(|place| &place.entry)
}
