//! The entries of one guard: the bounded table, with the first destination at hand.
//!
//! A full table is searched for entries that may leave at most once a second, not for each newcomer.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reattempt_core::ConfigError;

use crate::destination_table::{DestinationTable, Entry, MOST_DESTINATIONS, Place, find};
use crate::sync::{AtomicU64, Ordering};

/// Checks the bound of a table.
pub(crate) fn checked_destinations(most: usize) -> Result<usize, ConfigError> {
    if (1..=MOST_DESTINATIONS).contains(&most) {
        return Ok(most);
    }
    Err(ConfigError::new("max_destinations", most, "a number from 1 to 65536"))
}

/// The time without an outcome after which a learned state may be dropped: it no longer describes the server.
pub(crate) const FORGOTTEN: Duration = Duration::from_secs(600);

/// The bound from which on one place may be kept: in a smaller table every entry must be able to leave.
const KEEPS_FIRST: usize = 64;

/// The most destinations that `Debug` lists.
const LISTED: usize = 16;

/// The entries of one guard. Past the bound, destinations share one.
pub(crate) struct Keyed<E> {
    table: DestinationTable<E>,
    /// The first destination, which keeps its entry. Most clients have one destination, and need not look it up.
    first: OnceLock<Place<E>>,
    /// `false` if the bound is below [`KEEPS_FIRST`].
    keeps_first: bool,
    /// The second from which on a newcomer to the full table searches it for entries that may leave.
    search_at: AtomicU64,
    /// `false` if all destinations share one entry.
    by_destination: bool,
}

impl<E: Entry> Keyed<E> {
    /// Creates entries for at most that many destinations, or one for all.
    pub(crate) fn new(max_destinations: Option<usize>, others: E) -> Self {
        let most = max_destinations.unwrap_or(0);
        let keeps_first = most >= KEEPS_FIRST;
        Self {
            table: DestinationTable::new(most - usize::from(keeps_first), others),
            first: OnceLock::new(),
            keeps_first,
            search_at: AtomicU64::new(0),
            by_destination: max_destinations.is_some(),
        }
    }

    /// Returns the entry of `destination` if that takes no look-up. It is never retired.
    #[inline]
    pub(crate) fn at_hand(&self, destination: &str) -> Option<&Arc<E>> {
        if !self.by_destination {
            return Some(self.table.others());
        }
        let first = self.first.get()?;
        (*first.name == *destination).then_some(&first.entry)
    }

    /// Uses the entry of `destination`. `act` returns `None` if the entry was retired; the one at hand never is.
    ///
    /// `act` may run behind the table's lock, so it must not call anything of the user's.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        destination: &str,
        now: Duration,
        create: impl Fn(&Arc<str>) -> E,
        act: impl Fn(&Arc<E>) -> Option<R>,
    ) -> Option<R> {
        match self.at_hand(destination) {
            Some(entry) => act(entry),
            None => self.look_up(destination, now, create, act),
        }
    }

    /// Uses the entry of `destination` in the table. Not inlined, so that the one at hand is used without it.
    #[inline(never)]
    fn look_up<R>(
        &self,
        destination: &str,
        now: Duration,
        create: impl Fn(&Arc<str>) -> E,
        act: impl Fn(&Arc<E>) -> Option<R>,
    ) -> Option<R> {
        if self.keeps_first && self.first.get().is_none() {
            // Another thread may have come first. Settings are not replaced meanwhile.
            self.table.alone(|| {
                self.first.get_or_init(|| {
                    let name: Arc<str> = destination.into();
                    Place { entry: Arc::new(create(&name)), name }
                });
            });
            if let Some(entry) = self.at_hand(destination) {
                return act(entry);
            }
        }
        let entries = self.table.load();
        let own = find(&entries, self.table.hash(destination), destination);
        let found = match own {
            None if self.table.is_full(&entries) && !self.may_search(now) => {
                Some(self.table.others())
            }
            own => own,
        };
        // `None`: the entry was retired.
        if let Some(done) = found.and_then(&act) {
            return Some(done);
        }
        drop(entries);
        self.table.enter(destination, now, |name| Arc::new(create(name)), act)
    }

    /// Returns the entry that `destination` would use, if there is one.
    pub(crate) fn get(&self, destination: &str) -> Option<Arc<E>> {
        if let Some(entry) = self.at_hand(destination) {
            return Some(Arc::clone(entry));
        }
        let entries = self.table.load();
        let shared = self.table.is_full(&entries);
        match find(&entries, self.table.hash(destination), destination) {
            None if shared => Some(Arc::clone(self.table.others())),
            own => own.cloned(),
        }
    }

    /// Returns all entries, the shared one last.
    pub(crate) fn all(&self) -> Vec<Arc<E>> {
        let entries = self.table.load();
        let own = self.first.get().into_iter().chain(entries.iter());
        let own = own.map(|place| Arc::clone(&place.entry));
        own.chain([Arc::clone(self.table.others())]).collect()
    }

    /// Replaces settings, and then lets each entry adopt them, while no newcomer comes in.
    pub(crate) fn adopt(&self, replace: impl FnOnce(), adopt: impl Fn(&Arc<E>)) {
        let replace_first = || {
            replace();
            self.first.get().iter().for_each(|place| adopt(&place.entry));
        };
        self.table.for_all(replace_first, &adopt);
    }

    /// Returns what `pick` finds in the entries, by name, and how many more there are. The shared one has no name.
    pub(crate) fn listed<T>(&self, pick: impl Fn(&E) -> Option<T>) -> (Vec<(Arc<str>, T)>, usize) {
        let entries = self.table.load();
        let own = self.first.get().into_iter().chain(entries.iter());
        let own = own.map(|place| (Arc::clone(&place.name), &place.entry));
        let others = ("".into(), self.table.others());
        let picked = own.chain([others]).filter_map(|(name, entry)| Some((name, pick(entry)?)));
        let mut listed: Vec<_> = picked.collect();
        listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let more = listed.len().saturating_sub(LISTED);
        listed.truncate(LISTED);
        (listed, more)
    }

    /// Returns the number of destinations with an entry of their own.
    pub(crate) fn len(&self) -> usize {
        self.table.load().len() + usize::from(self.first.get().is_some())
    }

    /// Returns `true` once a second.
    fn may_search(&self, now: Duration) -> bool {
        let seconds = now.as_secs();
        let due = self.search_at.load(Ordering::Relaxed);
        let next = seconds.saturating_add(1);
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        seconds >= due && self.search_at.compare_exchange(due, next, set, failed).is_ok()
    }
}
