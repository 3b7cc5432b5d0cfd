//! The entry of a guard for each destination: the bounded table, without a search through it for each call that finds
//! no place.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::ConfigError;

use crate::destination_table::{DestinationTable, Entry, MOST_DESTINATIONS, find};
use crate::sync::{AtomicU64, Ordering};

/// Checks the bound of a table.
pub(crate) fn checked_destinations(most: usize) -> Result<usize, ConfigError> {
    if (1..=MOST_DESTINATIONS).contains(&most) {
        return Ok(most);
    }
    Err(ConfigError::new("max_destinations", most, "a number from 1 to 65536"))
}

/// The time after which a state that was learned is forgotten: one so old is as good as a new one.
pub(crate) const FORGOTTEN: Duration = Duration::from_secs(600);

/// The most destinations that `Debug` lists.
const LISTED: usize = 16;

/// The entries of one guard. Past the bound, destinations share one.
pub(crate) struct Keyed<E> {
    table: DestinationTable<E>,
    /// The second from which on a newcomer to the full table searches it for entries that may leave.
    search_at: AtomicU64,
    /// `false` if all destinations share one entry.
    by_destination: bool,
}

impl<E: Entry> Keyed<E> {
    /// Creates entries for at most that many destinations, or one for all.
    pub(crate) fn new(max_destinations: Option<usize>, others: E) -> Self {
        Self {
            table: DestinationTable::new(max_destinations.unwrap_or(0), others),
            search_at: AtomicU64::new(0),
            by_destination: max_destinations.is_some(),
        }
    }

    /// Uses the entry of `destination`. `act` returns `None` if the entry was retired; the shared one never is.
    ///
    /// `act` may run behind the table's lock, so it must not call anything of the user's.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        destination: &str,
        now: Duration,
        create: impl FnOnce(&Arc<str>) -> E,
        act: impl Fn(&Arc<E>) -> Option<R>,
    ) -> Option<R> {
        if !self.by_destination {
            return act(self.table.others());
        }
        self.with_own(destination, now, create, act)
    }

    /// Uses the entry of `destination` in the table. Not inlined, so that the shared entry is used without it.
    #[inline(never)]
    fn with_own<R>(
        &self,
        destination: &str,
        now: Duration,
        create: impl FnOnce(&Arc<str>) -> E,
        act: impl Fn(&Arc<E>) -> Option<R>,
    ) -> Option<R> {
        let entries = self.table.load();
        let own = find(&entries, self.table.hash(destination), destination);
        let at_hand = match own {
            None if self.table.is_full(&entries) && !self.may_search(now) => {
                Some(self.table.others())
            }
            own => own,
        };
        // `None`: the entry was retired.
        if let Some(done) = at_hand.and_then(&act) {
            return Some(done);
        }
        drop(entries);
        self.table.enter(destination, now, |name| Arc::new(create(name)), act)
    }

    /// Returns the entry that `destination` would use, if there is one.
    pub(crate) fn get(&self, destination: &str) -> Option<Arc<E>> {
        let entries = self.table.load();
        let shared = !self.by_destination || self.table.is_full(&entries);
        match find(&entries, self.table.hash(destination), destination) {
            None if shared => Some(Arc::clone(self.table.others())),
            own => own.cloned(),
        }
    }

    /// Returns all entries, the shared one last.
    pub(crate) fn all(&self) -> Vec<Arc<E>> {
        let entries = self.table.load();
        let own = entries.iter().map(|place| Arc::clone(&place.entry));
        own.chain([Arc::clone(self.table.others())]).collect()
    }

    /// Replaces settings, and then lets each entry adopt them, while no newcomer comes in.
    pub(crate) fn adopt(&self, replace: impl FnOnce(), adopt: impl Fn(&Arc<E>)) {
        self.table.for_all(replace, adopt);
    }

    /// Returns what `pick` finds in the entries, by name, and how many more there are. The shared one has no name.
    pub(crate) fn listed<T>(&self, pick: impl Fn(&E) -> Option<T>) -> (Vec<(Arc<str>, T)>, usize) {
        let entries = self.table.load();
        let own = entries.iter().map(|place| (Arc::clone(&place.name), &place.entry));
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
        self.table.load().len()
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
