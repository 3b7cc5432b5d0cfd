//! Models of the slots for a guard's first destinations: a name has one entry, and each thread finds it.
//!
//! The table behind the slots is not explored, because the checker does not see arc-swap. No model fills the slots.

#[allow(clippy::module_inception, dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/keyed.rs"]
mod keyed;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use keyed::{Hold, Keyed, PastBound};
use loom::thread;

use crate::destination_table::Entry;

const NOW: Duration = Duration::from_secs(1);

/// An entry with a number.
struct Numbered(usize);

impl Entry for Numbered {
    fn retire(&self, _: Duration, _: bool, _: &dyn Fn() -> bool) -> bool {
        false
    }
}

/// A guard's entries, and the number of entries created so far.
struct Entries(Keyed<Numbered>, AtomicUsize);

impl Entries {
    /// Creates entries with permanent slots for four destinations.
    fn new() -> Arc<Self> {
        Arc::new(Self(Keyed::new(Some(64), Numbered(0)), AtomicUsize::new(1)))
    }

    /// Returns the entry number of a destination that has a slot.
    fn number(&self, destination: &str) -> usize {
        let create = |_: &Arc<str>| Numbered(self.1.fetch_add(1, Ordering::Relaxed));
        let hold = self.0.with(destination, NOW, PastBound::Nothing, create, |found| Some((found.0, found.hold())));
        let (number, hold) = hold.unwrap();
        assert!(matches!(hold, Hold::Permanent(_)), "{destination}");
        assert_eq!(self.0.held(&hold).unwrap().0, number);
        number
    }
}

/// Looks destinations up in two threads. Returns the numbers that each thread got.
fn race<const N: usize>(entries: &Arc<Entries>, own: [&'static str; N], other: [&'static str; N]) -> [[usize; N]; 2] {
    let others = Arc::clone(entries);
    let others = thread::spawn(move || other.map(|destination| others.number(destination)));
    [own.map(|destination| entries.number(destination)), others.join().unwrap()]
}

#[test]
fn first_name_has_one_entry() {
    loom::model(|| {
        let entries = Entries::new();
        let [[own], [other]] = race(&entries, ["a"], ["a"]);
        assert_eq!((own, other, entries.0.len()), (1, 1, 1));
    });
}

#[test]
fn next_name_has_one_entry() {
    loom::model(|| {
        let entries = Entries::new();
        entries.number("first");
        let [[own], [other]] = race(&entries, ["a"], ["a"]);
        assert_eq!((own, other, entries.0.len()), (2, 2, 2));
    });
}

/// A thread that misses the name in the last slot then finds that slot taken, with the name in it.
#[test]
fn name_in_last_slot_has_one_entry() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let entries = Entries::new();
        for name in ["first", "second", "third"] {
            entries.number(name);
        }
        let [[own], [other]] = race(&entries, ["a"], ["a"]);
        assert_eq!((own, other, entries.0.len()), (4, 4, 4));
    });
}

#[test]
fn two_names_have_two_entries() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let entries = Entries::new();
        let [own, [b, a]] = race(&entries, ["a", "b"], ["b", "a"]);
        assert_eq!(own, [a, b]);
        assert_ne!(a, b);
        assert_eq!((entries.number("a"), entries.number("b"), entries.0.len()), (a, b, 2));
    });
}
