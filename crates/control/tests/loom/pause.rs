//! Models of a pause: calls that arrive, resume and leave while another call begins or extends the pause.

#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/pause/times.rs"]
mod times;

use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use reattempt_core::ServerHint;
use reattempt_core::guard::{Admit, Arrival, End, Health, Resume};
use times::{Note, Paused, Rule, Spread};

use crate::wait_queue::Patience;

const NOW: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);

/// Returns a destination whose calls return at the end of the pause, of which one may wait for up to 5 s.
fn paused() -> Arc<Paused> {
    let patience = Patience { calls: 1, time: Duration::from_secs(5) };
    Arc::new(Paused::new(Rule { longest: LATER * 100, spread: Spread::Over(Duration::ZERO), patience }))
}

fn admit(paused: &Paused, now: Duration) -> Option<Admit<Note>> {
    paused.admit(&Arrival::new("", now))
}

fn waiting(paused: &Paused) -> Note {
    match admit(paused, NOW) {
        Some(Admit::Waiting(note)) => note,
        _ => panic!("it does not wait"),
    }
}

/// Records a response that asks for this wait.
fn asks(paused: &Paused, wait: Duration) {
    let end = End::judged(Health::Overloaded, Duration::ZERO).with_hint(ServerHint::After(wait));
    paused.record_end(&Note::Sent, &end, NOW);
}

/// The only place in the queue goes to one of two calls, and to a third one once that has left or been sent.
#[test]
fn one_place_holds_one_call() {
    loom::model(|| {
        let paused = paused();
        asks(&paused, SECOND);
        let other = Arc::clone(&paused);
        let other = thread::spawn(move || match admit(&other, NOW) {
            Some(Admit::Waiting(note)) => {
                assert_eq!(other.until_and_waiting().1, 1);
                other.record_end(&note, &End::Unsent, NOW);
                1
            }
            _ => 0,
        });
        let mut own = 0;
        if let Some(Admit::Waiting(mut note)) = admit(&paused, NOW) {
            own = 1;
            assert!(matches!(paused.resume(&mut note, &Arrival::new("", LATER)), Resume::Admitted));
            // A call that was sent leaves no place a second time.
            paused.record_end(&note, &End::Unsent, LATER);
        }
        assert!(own + other.join().unwrap() >= 1);
        assert_eq!(paused.until_and_waiting().1, 0);
        waiting(&paused);
    });
}

/// Of two waits that are asked for at the same time, the longer one counts, and no waiting call is sent before it.
#[test]
fn the_longer_of_two_waits_counts() {
    loom::model(|| {
        let paused = paused();
        asks(&paused, SECOND);
        let mut note = waiting(&paused);
        let other = Arc::clone(&paused);
        let other = thread::spawn(move || asks(&other, SECOND * 2));
        asks(&paused, SECOND * 3);
        let early = paused.resume(&mut note, &Arrival::new("", LATER));
        assert!(matches!(early, Resume::Waiting { until: Some(until) } if until == NOW + SECOND * 3), "{early:?}");
        other.join().unwrap();
        assert_eq!(paused.until_and_waiting(), (NOW + SECOND * 3, 1));
    });
}

/// A call that waits while the pause becomes too long for it is refused, and its place is free.
#[test]
fn extended_pause_refuses_and_frees() {
    loom::model(|| {
        let paused = paused();
        asks(&paused, SECOND);
        let mut note = waiting(&paused);
        let other = Arc::clone(&paused);
        let other = thread::spawn(move || asks(&other, SECOND * 60));
        let resumed = paused.resume(&mut note, &Arrival::new("", NOW + SECOND));
        assert!(matches!(resumed, Resume::Admitted | Resume::Refused(_)), "{resumed:?}");
        other.join().unwrap();
        assert_eq!(paused.until_and_waiting(), (NOW + SECOND * 60, 0));
    });
}

/// A destination is not retired while it has a call that waits: the call finds it retired, or stays.
#[test]
fn a_call_waits_or_finds_it_retired() {
    loom::model(|| {
        let paused = paused();
        asks(&paused, SECOND);
        let other = Arc::clone(&paused);
        let other = thread::spawn(move || other.retire(NOW, true, &|| true));
        let waits = admit(&paused, NOW).is_some();
        assert_ne!(waits, other.join().unwrap());
    });
}
