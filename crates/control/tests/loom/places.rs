//! Places under the model checker: the word beside the lock, and a grant against a call that leaves.

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
use places::{Pass, Places, Rule};
use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Resume};

use crate::line;
use crate::line::Patience;
use crate::time;

const NOW: Duration = Duration::from_secs(1);

fn places(limit: u32) -> Arc<Places> {
    let patience = Patience { calls: 9, time: NOW };
    Arc::new(Places::new(&Rule { limit, patience, hold: false, kind: GuardKind::Bulkhead }))
}

fn admit(places: &Places) -> Option<Admit<Pass>> {
    places.admit(&Arrival::new("", NOW))
}

fn held(places: &Places) -> Pass {
    match admit(places) {
        Some(Admit::Admitted(pass)) => pass,
        _ => panic!("not admitted"),
    }
}

fn waiting(places: &Places) -> Pass {
    match admit(places) {
        Some(Admit::Waiting(pass)) => pass,
        _ => panic!("it does not wait"),
    }
}

fn is_admitted(places: &Places, pass: &mut Pass) -> bool {
    places.resume(pass, &Arrival::new("", NOW), Waker::noop()) == Resume::Admitted
}

fn end(places: &Places, pass: Pass) {
    assert!(places.end(pass, &End::Unsent, NOW).is_none());
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

// A call that comes while the place is released takes it, or is given it.
#[test]
fn no_release_is_missed_by_a_newcomer() {
    loom::model(|| {
        let places = places(1);
        let pass = held(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || end(&other, pass));
        let mut own = match admit(&places) {
            Some(Admit::Admitted(pass) | Admit::Waiting(pass)) => pass,
            _ => panic!("refused"),
        };
        other.join().unwrap();
        assert!(is_admitted(&places, &mut own));
        end(&places, own);
        assert!(is_unused(&places));
    });
}

/// A call that leaves the line while it is given the place passes it on.
// G-11
#[test]
fn a_grant_is_not_lost_by_a_drop() {
    loom::model(|| {
        let places = places(1);
        let pass = held(&places);
        let (first, mut second) = (waiting(&places), waiting(&places));
        let other = Arc::clone(&places);
        let other = thread::spawn(move || end(&other, pass));
        end(&places, first);
        other.join().unwrap();
        assert!(is_admitted(&places, &mut second));
        end(&places, second);
        assert!(is_unused(&places));
    });
}

#[test]
fn a_higher_limit_admits_those_in_line() {
    loom::model(|| {
        let places = places(1);
        let pass = held(&places);
        let other = Arc::clone(&places);
        let other = thread::spawn(move || other.set_limit(2));
        let mut own = match admit(&places) {
            Some(Admit::Admitted(pass) | Admit::Waiting(pass)) => pass,
            _ => panic!("refused"),
        };
        other.join().unwrap();
        assert!(is_admitted(&places, &mut own));
        end(&places, own);
        end(&places, pass);
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
        let other = thread::spawn(move || end(&other, one));
        end(&places, two);
        other.join().unwrap();
        assert!(is_admitted(&places, &mut waiting));
        end(&places, waiting);
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
