//! Models of a circuit: its gate beside its lock, the trip rule between two steps, and the order of changes.

#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/breaker/changes.rs"]
mod changes;
#[allow(clippy::module_inception, dead_code, reason = "only what the models use")]
#[path = "../../src/guard/breaker/circuit.rs"]
mod circuit;
#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/breaker/counts.rs"]
mod counts;
#[path = "../../src/guard/breaker/failing.rs"]
mod failing;
#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/breaker/machine.rs"]
mod machine;
#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/breaker/rules.rs"]
mod rules;
#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/breaker/tally.rs"]
mod tally;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use changes::BreakerState::{Closed, HalfOpen, Open};
use changes::{BreakerState, Changes, StateChange};
use circuit::Circuit;
use counts::Outcome;
use loom::thread;
use machine::Ending;
use rules::{Rules, Trip};
use tally::BreakerNote;

use crate::sync::use_stripe;

const NOW: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(3);

struct Scene {
    circuit: Circuit,
    rules: Arc<Rules>,
    told: Arc<Mutex<Vec<(BreakerState, BreakerState)>>>,
}

/// Returns a breaker that opens for a second after one failure.
fn scene() -> Arc<Scene> {
    scene_of(Duration::ZERO)
}

/// Returns a breaker that opens after one failure, and clears its counts after each interval.
fn scene_of(interval: Duration) -> Arc<Scene> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let rules = Rules {
        name: "".into(),
        probes: 1,
        interval,
        bucket_period: Duration::ZERO,
        last_calls: 0,
        probe_ratio: 0,
        lease: NOW,
        open_time: NOW,
        first_open_time: NOW,
        max_open_time: NOW,
        spread: 0,
        seed: 0,
        trip: Trip::Counts(Arc::new(|counts| counts.total_failures > 0)),
        slow: None,
        is_successful: None,
        is_excluded: None,
        on_state_change: Some(Arc::new(move |change| {
            notes.lock().unwrap().push((change.from, change.to));
        })),
        changes: Arc::default(),
    };
    let rules = Arc::new(rules);
    let circuit = Circuit::new("a".into(), Arc::clone(&rules));
    Arc::new(Scene { circuit, rules, told })
}

impl Scene {
    fn admit(&self, now: Duration) -> Option<BreakerNote> {
        let admitted = self.circuit.admit(now, None);
        self.notify();
        admitted.and_then(Result::ok)
    }

    fn end_call(&self, note: BreakerNote, outcome: Outcome, now: Duration) {
        let ending = Ending { outcome, asked: Duration::ZERO, sent: NOW, now };
        let trip = |counts: &counts::Counts| counts.total_failures > 0;
        self.circuit.end_call(note, ending, trip);
        self.notify();
    }

    fn notify(&self) {
        self.rules.on_state_change.iter().for_each(|callback| self.circuit.changes().deliver(callback));
    }

    fn open(&self) {
        let note = self.admit(NOW).unwrap();
        self.end_call(note, Outcome::Failure, NOW);
        assert!(self.admit(NOW).is_none());
    }
}

/// Of two calls that find the open time over, exactly one is the probe.
// G-2
#[test]
fn one_of_two_callers_is_the_probe() {
    loom::model(|| {
        let scene = scene();
        scene.open();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || u32::from(other.admit(LATER).is_some()));
        let own = u32::from(scene.admit(LATER).is_some());
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(*scene.told.lock().unwrap(), [(Closed, Open), (Open, HalfOpen)]);
    });
}

// Two concurrent failures open the breaker once, and every call after either of them is refused.
#[test]
fn two_failures_open_it_once() {
    loom::model(|| {
        let scene = scene();
        let (one, two) = (scene.admit(NOW).unwrap(), scene.admit(NOW).unwrap());
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || {
            other.end_call(two, Outcome::Failure, NOW);
            assert!(other.admit(NOW).is_none());
        });
        scene.end_call(one, Outcome::Failure, NOW);
        assert!(scene.admit(NOW).is_none());
        other.join().unwrap();
        assert_eq!(*scene.told.lock().unwrap(), [(Closed, Open)]);
    });
}

/// Of two calls that fail with one connection, exactly one is a failure, and a success beside them counts too.
// C-6
#[test]
fn calls_of_an_event_fail_once() {
    loom::model(|| {
        let ending = |outcome| Ending { outcome, asked: Duration::ZERO, sent: NOW, now: NOW };
        let scene = scene();
        let [one, two, served] = [(); 3].map(|()| scene.admit(NOW).unwrap());
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || {
            use_stripe(1);
            other.circuit.end_call(two, ending(Outcome::Lost), |_| false);
        });
        scene.circuit.end_call(served, ending(Outcome::Success), |_| false);
        scene.circuit.end_call(one, ending(Outcome::Lost), |_| false);
        other.join().unwrap();
        let counts = scene.circuit.with(|_, machine| *machine.window.counts());
        assert_eq!((counts.total_failures, counts.total_exclusions, counts.total_successes), (1, 1, 1));
    });
}

/// The trip rule does not apply if the operator has since ended the generation in which it was called.
// G-4
#[test]
fn closing_beside_a_failure_has_one_order() {
    loom::model(|| {
        let scene = scene();
        let note = scene.admit(NOW).unwrap();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || other.end_call(note, Outcome::Failure, NOW));
        scene.circuit.with(|rules, machine| machine.force(rules, Closed, NOW));
        scene.notify();
        other.join().unwrap();
        assert!(scene.admit(NOW).is_some(), "either the failure came first, or it is too old");
        let told = scene.told.lock().unwrap();
        assert!(told.is_empty() || *told == [(Closed, Open), (Open, Closed)], "{told:?}");
    });
}

// A call and its success count once, whether a step takes the tally before, between or after them.
#[test]
fn a_step_loses_no_call() {
    loom::model(|| {
        let scene = scene();
        let first = scene.admit(NOW).unwrap();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || {
            use_stripe(1);
            let note = other.admit(NOW).unwrap();
            other.end_call(note, Outcome::Success, NOW);
        });
        scene.end_call(first, Outcome::Excluded, NOW);
        other.join().unwrap();
        let counts = scene.circuit.with(|_, machine| *machine.window.counts());
        let judged = (counts.total_successes, counts.total_exclusions);
        assert_eq!((counts.requests, judged), (2, (1, 1)));
    });
}

/// A success at the end of its window counts in that window or not at all.
// G-4
#[test]
fn a_success_counts_in_its_own_window() {
    loom::model(|| {
        let scene = scene_of(NOW);
        let late = scene.admit(NOW).unwrap();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || {
            use_stripe(1);
            other.end_call(late, Outcome::Success, NOW);
        });
        let next = scene.admit(LATER).unwrap();
        other.join().unwrap();
        scene.end_call(next, Outcome::Success, LATER);
        let counts = scene.circuit.with(|_, machine| *machine.window.counts());
        assert_eq!((counts.requests, counts.total_successes), (1, 1));
    });
}

// Every call after the operator has isolated the server is refused.
#[test]
fn no_call_passes_an_isolated_breaker() {
    loom::model(|| {
        let scene = scene();
        let first = scene.admit(NOW).unwrap();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || {
            use_stripe(1);
            other.admit(NOW).is_some()
        });
        scene.circuit.with(|rules, machine| {
            machine.force(rules, BreakerState::ForcedOpen, NOW);
        });
        assert!(scene.admit(NOW).is_none());
        other.join().unwrap();
        scene.end_call(first, Outcome::Success, NOW);
        let counts = scene.circuit.with(|_, machine| *machine.window.counts());
        assert_eq!((counts.requests, counts.total_successes), (0, 0));
    });
}

// A new destination's circuit is not retired while it has an admitted call.
#[test]
fn a_call_is_admitted_or_finds_it_retired() {
    loom::model(|| {
        let scene = scene();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || other.circuit.retire(NOW, false, &|| true));
        let admitted = scene.circuit.admit(NOW, None).is_some();
        assert_ne!(admitted, other.join().unwrap());
    });
}

/// A state is not forgotten while a call finds the circuit before it is retired: the circuit is open or retired.
#[test]
fn a_forgotten_state_is_retired() {
    loom::model(|| {
        let scene = scene();
        let failed = scene.admit(NOW).unwrap();
        scene.end_call(failed, Outcome::Failure, NOW);
        // The call arrives right after the first check of the references.
        let looks = std::cell::Cell::new(0);
        let is_idle = || looks.replace(looks.get() + 1) == 0;
        let retired = scene.circuit.retire(NOW, true, &is_idle);
        let state = scene.circuit.with(|_, machine| machine.state);
        assert_eq!((retired, state), (true, Closed));
    });
}

/// A call that is counted in a new tally has that tally's generation, not the previous one.
// G-4
#[test]
fn a_pass_belongs_to_its_tally() {
    loom::model(|| {
        let scene = scene();
        let first = scene.admit(NOW).unwrap();
        let other = Arc::clone(&scene);
        let other = thread::spawn(move || {
            other.circuit.with(|rules, machine| machine.force(rules, Closed, NOW));
        });
        let note = scene.admit(NOW).unwrap();
        other.join().unwrap();
        let now = |_: &Rules, machine: &mut machine::Machine| (machine.epoch, machine.generation);
        let (epoch, generation) = scene.circuit.with(now);
        // The machine may have admitted the call as the sample of its epoch. Then no tally has counted it.
        let is_sample = note.tag == tally::SAMPLE_TAG;
        assert!(is_sample || (note.generation == generation) == (note.tag == tally::tag_of(epoch)));
        scene.end_call(first, Outcome::Success, NOW);
    });
}

/// Each change is delivered in order, although two threads push and deliver.
// G-5
#[test]
fn changes_arrive_once_in_order() {
    loom::model(|| {
        let told = Arc::new(loom::sync::Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        let callback: changes::Callback = Arc::new(move |change| notes.lock().unwrap().push(change.to));
        let changes = Arc::new(Changes::default());
        let push = |to| {
            changes.push(StateChange { name: "".into(), destination: "".into(), from: Closed, to });
        };
        push(Open);
        let (other, delivering) = (Arc::clone(&changes), Arc::clone(&callback));
        let other = thread::spawn(move || {
            if other.any() {
                other.deliver(&delivering);
            }
        });
        push(HalfOpen);
        if changes.any() {
            changes.deliver(&callback);
        }
        other.join().unwrap();
        assert_eq!(*told.lock().unwrap(), [Open, HalfOpen]);
    });
}
