//! Models of places: the word beside the lock, and a grant against a call that leaves.

#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/guard/heads.rs"]
mod heads;
#[allow(clippy::module_inception, dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/places.rs"]
mod places;

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use loom::thread;
use places::{PlaceNote, Places, PlacesSettings};
use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, GuardKind, Health, Resume};

use crate::time;
use crate::usual_latency;
use crate::wait_queue;
use crate::wait_queue::Patience;

const NOW: Duration = Duration::from_secs(1);

fn places(limit: u32) -> Arc<Places> {
    places_with(limit, false)
}

/// Returns places that are held until the body ends.
fn holding(limit: u32) -> Arc<Places> {
    places_with(limit, true)
}

fn places_with(limit: u32, hold: bool) -> Arc<Places> {
    let patience = Patience { calls: 9, time: NOW };
    Arc::new(Places::new(&PlacesSettings { limit, patience, hold, kind: GuardKind::BULKHEAD }))
}

fn admit(places: &Places) -> Option<Admit<PlaceNote>> {
    places.admit(&Arrival::new("", NOW))
}

fn held(places: &Places) -> PlaceNote {
    match admit(places) {
        Some(Admit::Admitted(note)) => note,
        _ => panic!("not admitted"),
    }
}

fn waiting(places: &Places) -> PlaceNote {
    match admit(places) {
        Some(Admit::Waiting(note)) => note,
        _ => panic!("it does not wait"),
    }
}

fn is_admitted(places: &Places, note: &mut PlaceNote) -> bool {
    places.resume(note, &Arrival::new("", NOW), Waker::noop()) == Resume::Admitted
}

fn end_note(places: &Places, note: PlaceNote) {
    assert!(places.end_call(note, &End::Unsent, NOW).is_none());
}

/// Ends a call at its response head. Returns the pass of what is held until the response body ends.
fn head(places: &Places, note: PlaceNote) -> Option<PlaceNote> {
    places.end_call(note, &End::judged(Health::Served, NOW), NOW)
}

/// Ends the body, if the place is held that long.
fn body(places: &Places, note: Option<PlaceNote>) {
    let over = End::Over(BodyEnd::Dropped);
    assert!(note.and_then(|note| places.end_call(note, &over, NOW)).is_none());
}

fn is_unused(places: &Places) -> bool {
    let usage = places.usage(NOW);
    (usage.in_flight, usage.waiting) == (0, 0) && places.retire()
}

#[test]
fn the_last_place_goes_to_one_call() {
    loom::model(|| {
        let places = places(1);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || held_or_waiting(&other));
        let own = held_or_waiting(&places);
        assert!(own != other.join().unwrap());
        assert_eq!(places.usage(NOW).in_flight, 1);
    });
}

fn held_or_waiting(places: &Places) -> bool {
    matches!(admit(places), Some(Admit::Admitted(_)))
}

// A call that arrives while the place is released takes it or is given it.
#[test]
fn no_release_is_missed_by_a_newcomer() {
    loom::model(|| {
        let places = places(1);
        let note = held(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || end_note(&other, note));
        let mut own = match admit(&places) {
            Some(Admit::Admitted(note) | Admit::Waiting(note)) => note,
            _ => panic!("refused"),
        };
        other.join().unwrap();
        assert!(is_admitted(&places, &mut own));
        end_note(&places, own);
        assert!(is_unused(&places));
    });
}

/// A call that leaves the queue while it is given the place passes it on.
// G-11
#[test]
fn a_grant_is_not_lost_by_a_drop() {
    loom::model(|| {
        let places = places(1);
        let note = held(&places);
        let (first, mut second) = (waiting(&places), waiting(&places));
        let other = Arc::clone(&places);
        let other = thread::spawn(move || end_note(&other, note));
        end_note(&places, first);
        other.join().unwrap();
        assert!(is_admitted(&places, &mut second));
        end_note(&places, second);
        assert!(is_unused(&places));
    });
}

#[test]
fn a_higher_limit_admits_those_in_line() {
    loom::model(|| {
        let places = places(1);
        let note = held(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || {
            other.set_limit(2);
            other.fill();
        });
        let mut own = match admit(&places) {
            Some(Admit::Admitted(note) | Admit::Waiting(note)) => note,
            _ => panic!("refused"),
        };
        other.join().unwrap();
        assert!(is_admitted(&places, &mut own));
        end_note(&places, own);
        end_note(&places, note);
        assert!(is_unused(&places));
    });
}

#[test]
fn two_releases_at_once() {
    loom::model(|| {
        let places = places(2);
        let (one, two) = (held(&places), held(&places));
        let mut waiting = waiting(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || end_note(&other, one));
        end_note(&places, two);
        other.join().unwrap();
        assert!(is_admitted(&places, &mut waiting));
        end_note(&places, waiting);
        assert!(is_unused(&places));
    });
}

#[test]
fn a_place_is_taken_or_all_are_retired() {
    loom::model(|| {
        let places = places(1);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || other.retire());
        let admitted = admit(&places).is_some();
        assert_ne!(admitted, other.join().unwrap());
    });
}

/// A body may end while a call arrives for its place.
// G-10, G-11
#[test]
fn a_held_place_goes_to_the_call_in_line() {
    loom::model(|| {
        let places = holding(1);
        let note = held(&places);
        let held = head(&places, note);
        assert_eq!(places.usage(NOW).past_head, 1);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || body(&other, held));
        let mut own = match admit(&places) {
            Some(Admit::Admitted(note) | Admit::Waiting(note)) => note,
            _ => panic!("refused"),
        };
        other.join().unwrap();
        assert!(is_admitted(&places, &mut own));
        let held = head(&places, own);
        assert!(held.is_some());
        body(&places, held);
        assert_eq!(places.usage(NOW).past_head, 0);
        assert!(is_unused(&places));
    });
}

/// Of two heads, one finds no slot and is recorded behind the lock; both bodies end at once.
#[test]
fn bodies_that_end_at_once_free_places() {
    loom::model(|| {
        let places = holding(2);
        let (one, two) = (held(&places), held(&places));
        let other = Arc::clone(&places);
        let other = thread::spawn(move || {
            let held = head(&other, one);
            body(&other, held);
        });
        let held = head(&places, two);
        assert!(places.usage(NOW).past_head >= 1);
        body(&places, held);
        other.join().unwrap();
        assert_eq!(places.usage(NOW).past_head, 0);
        assert!(is_unused(&places));
    });
}

/// If the settings change to a release at the head while a head arrives, the place is freed there or with the body.
#[test]
fn release_at_head_frees_a_held_place_once() {
    loom::model(|| {
        let places = holding(1);
        let note = held(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || {
            let patience = Patience { calls: 9, time: NOW };
            let kind = GuardKind::BULKHEAD;
            other.adopt(&PlacesSettings { limit: 1, patience, hold: false, kind });
        });
        let past_head = head(&places, note);
        body(&places, past_head);
        other.join().unwrap();
        let next = held(&places);
        assert!(head(&places, next).is_none(), "the new setting holds from now on");
        assert!(is_unused(&places));
    });
}

/// If the limit falls and rises while a place is held, no call is admitted above it, and none is forgotten.
#[test]
fn a_limit_that_moves_keeps_held_places() {
    loom::model(|| {
        let places = holding(1);
        let note = held(&places);
        let past_head = head(&places, note);
        let mut waiting = waiting(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || {
            other.set_limit(0);
            assert!(other.usage(NOW).in_flight <= 1);
            other.set_limit(1);
            other.fill();
        });
        body(&places, past_head);
        other.join().unwrap();
        assert!(is_admitted(&places, &mut waiting));
        let past_head = head(&places, waiting);
        body(&places, past_head);
        assert!(is_unused(&places));
    });
}
