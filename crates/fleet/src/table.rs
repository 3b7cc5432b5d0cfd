//! A bounded table of the destinations for which a process asks the store.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use reattempt_control::bounded_name;

use crate::sync::Mutex;

/// The maximum number of destinations in a table. For all others, the process decides alone.
const MOST_DESTINATIONS: usize = 1024;

/// The interval at which a full table is searched for entries that can be removed. A search visits all entries.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// The states that a process keeps, by destination.
#[derive(Debug)]
pub(crate) struct Table<T>(Mutex<Entries<T>>);

#[derive(Debug)]
struct Entries<T> {
    states: HashMap<Box<str>, Arc<T>, RandomState>,
    next_search: Duration,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Entries { states: HashMap::default(), next_search: Duration::ZERO }))
    }

    /// Returns all states, unordered.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).states.values().map(Arc::clone).collect()
    }

    /// Returns the state of a destination, or a new one. Returns `None` if there is no room, because a full table keeps
    /// all states that are in use or not idle. For a known destination, the clock is not read.
    ///
    /// A limit on destinations does not limit memory if names can have any length, so `new` gets a name of at most 255
    /// bytes.
    pub(crate) fn get(
        &self,
        name: &str,
        now: impl FnOnce() -> Duration,
        is_idle: impl Fn(&T, Duration) -> bool,
        new: impl FnOnce(&str) -> T,
    ) -> Option<Arc<T>> {
        let name = &*bounded_name(name);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = entries.states.get(name) {
            return Some(Arc::clone(found));
        }
        if entries.states.len() >= MOST_DESTINATIONS {
            let now = now();
            if now < entries.next_search {
                return None;
            }
            entries.next_search = now + SEARCH_INTERVAL;
            entries.states.retain(|_, state| Arc::strong_count(state) > 1 || !is_idle(state, now));
            if entries.states.len() >= MOST_DESTINATIONS {
                return None;
            }
        }
        let new = Arc::new(new(name));
        entries.states.insert(name.into(), Arc::clone(&new));
        Some(new)
    }
}
