//! The entries of a budget or guard: a bounded table, fronted by permanent slots for the first destinations.
//!
//! The first destinations have their entries in slots that never change. Looking them up does not load the table, and
//! their tickets store a slot number instead of a counted reference. The first names keep these slots forever, even if
//! an attacker chose them. Other names are then looked up in the table, which is merely slower.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::snapshot::Part;

use crate::bounded_name::bounded_name;
use crate::destination_table::{DestinationTable, Entry, NamedEntry};
use crate::sync::{AtomicUsize, OnceLock, Ordering};

/// The smallest table bound with permanent slots. In a smaller table, every entry must be evictable.
const LEAST_WITH_PERMANENT: usize = 64;

/// The table's bound divided by this is the number of permanent slots, up to [`MOST_PERMANENT`].
const PERMANENT_PART: usize = 16;
const MOST_PERMANENT: usize = 64;

/// The maximum number of destinations that `Debug` lists.
const LISTED: usize = 16;

/// The entries of a budget or guard.
pub(crate) struct Keyed<E> {
    table: DestinationTable<E>,
    /// The entries that are never retired: [`SHARED`], [`FIRST`], and, from [`NEXT`] on, those of further destinations.
    /// Each of the latter takes the first free slot, starting at its hash. The number of these slots is a power of two
    /// or 0, and at least half of them stay free. Most clients have only one destination, which needs no hash.
    slots: Box<[OnceLock<NamedEntry<E>>]>,
    /// The number of destinations with permanent slots, and its maximum. Changed only under the table's lock.
    permanent: AtomicUsize,
    most_permanent: usize,
    /// `false` if all destinations share an entry.
    by_destination: bool,
}

/// An entry that is never retired, and its slot. It has no destructor, so dropping it is free.
pub(crate) struct Permanent<'a, E> {
    pub(crate) entry: &'a Arc<E>,
    slot: usize,
}

/// An entry that was found but is not yet held.
pub(crate) enum Found<'a, E> {
    Permanent(Permanent<'a, E>),
    Counted(Arc<E>),
}

/// A ticket's hold on its entry. A held table entry is not retired.
pub(crate) enum Hold<E> {
    /// The slot of an entry that is never retired.
    Permanent(usize),
    Counted(Arc<E>),
    /// The call was admitted without a state, because every candidate for eviction had calls in flight.
    Nothing,
}

/// The handling of a new destination for which the table has no room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PastBound {
    /// It gets no entry.
    Nothing,
    /// It uses an entry shared by all such destinations.
    Shared,
    /// It is added anyway, for state that the user sets.
    Enters,
}

/// The slot of the shared entry, for all destinations or for those without room.
const SHARED: usize = 0;
/// The slot of the first destination.
const FIRST: usize = 1;
/// The first slot of the further destinations.
const NEXT: usize = 2;

impl<E> Permanent<'_, E> {
    #[inline]
    pub(crate) fn hold(&self) -> Hold<E> {
        Hold::Permanent(self.slot)
    }
}

impl<E> Found<'_, E> {
    #[inline]
    pub(crate) fn hold(&self) -> Hold<E> {
        match self {
            Self::Permanent(permanent) => permanent.hold(),
            Self::Counted(entry) => Hold::Counted(Arc::clone(entry)),
        }
    }

    #[inline]
    pub(crate) fn entry(&self) -> &Arc<E> {
        match self {
            Self::Permanent(permanent) => permanent.entry,
            Self::Counted(entry) => entry,
        }
    }
}

impl<E> Deref for Found<'_, E> {
    type Target = E;

    #[inline]
    fn deref(&self) -> &E {
        self.entry()
    }
}

impl<E: Entry> Keyed<E> {
    /// Creates entries for at most `max_destinations` destinations, or one for all.
    pub(crate) fn new(max_destinations: Option<usize>, shared: E) -> Self {
        let most = max_destinations.unwrap_or(0);
        let most_permanent = if most < LEAST_WITH_PERMANENT { 0 } else { (most / PERMANENT_PART).min(MOST_PERMANENT) };
        let shared = NamedEntry::apart("".into(), Arc::new(shared));
        let next = if most_permanent == 0 { 0 } else { (2 * most_permanent).next_power_of_two() };
        let mut slots = vec![OnceLock::from(shared)];
        slots.resize_with(NEXT + next, OnceLock::new);
        Self {
            table: DestinationTable::new(most - most_permanent),
            slots: slots.into(),
            permanent: AtomicUsize::new(0),
            most_permanent,
            by_destination: max_destinations.is_some(),
        }
    }

    /// Returns the entry of `destination` if it needs no lookup. Such an entry is never retired.
    #[inline(always)]
    pub(crate) fn at_hand(&self, destination: &str) -> Option<Permanent<'_, E>> {
        let slot = if self.by_destination { FIRST } else { SHARED };
        let named = self.slots.get(slot)?.get()?;
        let is_own = slot == SHARED || is_same(&named.name, destination);
        is_own.then_some(Permanent { entry: &named.entry, slot })
    }

    /// Returns the shared entry, for all destinations or for those without room.
    pub(crate) fn shared(&self) -> Option<Found<'_, E>> {
        let named = self.slots.get(SHARED)?.get()?;
        Some(Found::Permanent(Permanent { entry: &named.entry, slot: SHARED }))
    }

    /// Returns the entry that a ticket holds, or `None` if the ticket comes from another guard and matches no entry.
    #[inline(always)]
    pub(crate) fn held<'a>(&'a self, hold: &'a Hold<E>) -> Option<&'a E> {
        match hold {
            Hold::Permanent(slot) => self.slots.get(*slot)?.get().map(|named| &*named.entry),
            Hold::Counted(entry) => Some(entry),
            Hold::Nothing => None,
        }
    }

    /// Calls `act` with the entry of `destination`. `act` returns `None` if the entry was retired; a permanent one
    /// never is.
    ///
    /// Returns `None` if there is no room for the destination and `past_bound` provides no entry.
    #[inline(always)]
    pub(crate) fn with<R>(
        &self,
        destination: &str,
        now: Duration,
        past_bound: PastBound,
        create: impl Fn(&Arc<str>) -> E,
        act: impl Fn(&Found<'_, E>) -> Option<R>,
    ) -> Option<R> {
        match self.at_hand(destination) {
            Some(permanent) => act(&Found::Permanent(permanent)),
            None => self.look_up(destination, now, past_bound, create, act),
        }
    }

    /// Calls `act` with the entry of `destination` in another slot or in the table.
    // Not inlined, so that the fast path stays small.
    #[inline(never)]
    fn look_up<R>(
        &self,
        destination: &str,
        now: Duration,
        past_bound: PastBound,
        create: impl Fn(&Arc<str>) -> E,
        act: impl Fn(&Found<'_, E>) -> Option<R>,
    ) -> Option<R> {
        let name = bounded_name(destination);
        let hash = self.table.hash(&name);
        match self.find_next(hash, &name) {
            Some(permanent) => act(&Found::Permanent(permanent)),
            None => self.look_up_in_table(hash, &name, now, past_bound, create, act),
        }
    }

    #[inline(never)]
    fn look_up_in_table<R>(
        &self,
        hash: u64,
        destination: &str,
        now: Duration,
        past_bound: PastBound,
        create: impl Fn(&Arc<str>) -> E,
        act: impl Fn(&Found<'_, E>) -> Option<R>,
    ) -> Option<R> {
        let found = self.table.find(hash, destination).map(Found::Counted);
        // `None`: there was no entry, or it was retired. An entry found under the lock is held, so it cannot be
        // retired.
        if let Some(done) = found.and_then(|found| act(&found)) {
            return Some(done);
        }
        let enters = matches!(past_bound, PastBound::Enters);
        match self.enter(hash, destination, now, enters, &create) {
            Some(found) => act(&found),
            None if matches!(past_bound, PastBound::Shared) => act(&self.shared()?),
            None => None,
        }
    }

    /// Finds or creates an entry for `destination` under the lock.
    #[cold]
    fn enter(
        &self,
        hash: u64,
        destination: &str,
        now: Duration,
        past_bound: bool,
        create: &dyn Fn(&Arc<str>) -> E,
    ) -> Option<Found<'_, E>> {
        if self.permanent.load(Ordering::Acquire) < self.most_permanent {
            self.table.alone(|| self.add_permanent(hash, destination, create));
        }
        // Another thread may have stored it in the meantime, even in the last slot.
        if let Some(permanent) = self.find_permanent(hash, destination) {
            return Some(Found::Permanent(permanent));
        }
        self.table.enter(hash, destination, now, past_bound, create).map(Found::Counted)
    }

    /// Returns the entry of `destination` if it has a permanent slot.
    fn find_permanent(&self, hash: u64, destination: &str) -> Option<Permanent<'_, E>> {
        self.at_hand(destination).or_else(|| self.find_next(hash, destination))
    }

    /// Returns the entry of `destination` if it has a permanent slot from [`NEXT`] on.
    #[inline(always)]
    fn find_next(&self, hash: u64, destination: &str) -> Option<Permanent<'_, E>> {
        let slots = self.slots.get(NEXT..)?;
        let mut slot = slot_of(hash, slots.len());
        while let Some(named) = slots.get(slot)?.get() {
            if is_same(&named.name, destination) {
                return Some(Permanent { entry: &named.entry, slot: slot + NEXT });
            }
            slot = slot_of(slot as u64 + 1, slots.len());
        }
        None
    }

    /// Gives a new destination a permanent slot, if one is free. Called under the table's lock.
    #[cold]
    fn add_permanent(&self, hash: u64, destination: &str, create: &dyn Fn(&Arc<str>) -> E) {
        let permanent = self.permanent.load(Ordering::Relaxed);
        // Another thread may have been faster.
        if permanent >= self.most_permanent || self.find_permanent(hash, destination).is_some() {
            return;
        }
        let named = || {
            let name: Arc<str> = destination.into();
            NamedEntry::apart(Arc::clone(&name), Arc::new(create(&name)))
        };
        if permanent == 0 {
            self.slots.get(FIRST).into_iter().for_each(|slot| drop(slot.set(named())));
        } else {
            let slots = self.slots.get(NEXT..).unwrap_or_default();
            let from = slot_of(hash, slots.len());
            let free = slots[from..].iter().chain(slots).find(|slot| slot.get().is_none());
            free.into_iter().for_each(|slot| drop(slot.set(named())));
        }
        self.permanent.store(permanent + 1, Ordering::Release);
    }

    /// Returns the entry of `destination`, whose hash is `hash`, if there is one.
    #[inline]
    pub(crate) fn find(&self, hash: u64, destination: &str) -> Option<Found<'_, E>> {
        let permanent = self.find_permanent(hash, destination).map(Found::Permanent);
        permanent.or_else(|| self.table.find(hash, destination).map(Found::Counted))
    }

    /// Returns the entry of `destination`, if there is one.
    pub(crate) fn get(&self, destination: &str) -> Option<Arc<E>> {
        let destination = &*bounded_name(destination);
        self.find(self.hash(destination), destination).map(|found| Arc::clone(found.entry()))
    }

    /// Returns the hash of a name.
    #[inline]
    pub(crate) fn hash(&self, destination: &str) -> u64 {
        self.table.hash(destination)
    }

    /// Visits each entry without a lock, the shared one first.
    pub(crate) fn for_each(&self, mut act: impl FnMut(&NamedEntry<E>)) {
        self.slots.iter().filter_map(OnceLock::get).for_each(&mut act);
        self.table.for_each(act);
    }

    /// Returns all entries.
    pub(crate) fn all(&self) -> Vec<Arc<E>> {
        let mut all = Vec::new();
        self.for_each(|named| all.push(Arc::clone(&named.entry)));
        all
    }

    /// Replaces settings and lets each entry adopt them, while no destination can be added.
    pub(crate) fn adopt(&self, replace: impl FnOnce(), adopt: impl Fn(&Arc<E>)) {
        let replace_permanent = || {
            replace();
            self.slots.iter().filter_map(OnceLock::get).for_each(|named| adopt(&named.entry));
        };
        self.table.for_all(replace_permanent, &adopt);
    }

    /// Returns the values that `pick` finds in the entries, sorted by name, and the number of values omitted. The
    /// shared entry has no name.
    pub(crate) fn listed<T>(&self, pick: impl Fn(&E) -> Option<T>) -> (Vec<(Arc<str>, T)>, usize) {
        let mut listed = Vec::new();
        self.for_each(|named| {
            let picked = pick(&named.entry);
            listed.extend(picked.map(|picked| (Arc::clone(&named.name), picked)));
        });
        listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let more = listed.len().saturating_sub(LISTED);
        listed.truncate(LISTED);
        (listed, more)
    }

    /// Returns a snapshot's part of each destination, sorted by name. The shared entry's part comes first, if it has a
    /// kind. `inspect` runs without a lock.
    pub(crate) fn inspect(&self, shared: Option<&'static str>, inspect: impl Fn(&E, Part) -> Part) -> Vec<Part> {
        let mut entries = Vec::new();
        self.for_each(|named| entries.push((Arc::clone(&named.name), Arc::clone(&named.entry))));
        let own = entries.split_off(entries.len().min(1));
        let shared = entries.iter().zip(shared).map(|((_, entry), kind)| inspect(entry, Part::new(kind, "")));
        let mut own: Vec<_> =
            own.iter().map(|(name, entry)| inspect(entry, Part::new("destination", &**name))).collect();
        own.sort_unstable_by(|one, other| one.name().cmp(other.name()));
        shared.chain(own).collect()
    }

    /// Returns the number of destinations with their own entry.
    pub(crate) fn len(&self) -> usize {
        self.table.len() + self.permanent.load(Ordering::Relaxed)
    }
}

/// Returns the slot for a number. `slots` is a power of two or 0.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the slots are counted by the low bits")]
const fn slot_of(number: u64, slots: usize) -> usize {
    number as usize & slots.wrapping_sub(1)
}

/// Compares two names. Most are short, so comparing them inline is faster than calling `memcmp`.
#[inline]
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        8..=16 => ends::<8>(one) == ends::<8>(other),
        17..=32 => ends::<16>(one) == ends::<16>(other),
        _ => one == other,
    }
}

/// Returns the first and the last `N` bytes, which together cover any name of `N` to `2 N` bytes.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (bytes.first_chunk(), bytes.last_chunk())
}
