//! A breadth-first search over the machine's states, which tries every sequence of events up to a given depth.
//!
//! The search takes 150 lines, whereas the usual model checker would pull in a web server.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use reattempt_core::guard::Reason;

use super::BreakerState::{self, Closed, ForcedOpen, HalfOpen, Open};
use super::CircuitBreaker;
use super::counts::Outcome::{self, Abandoned, Excluded, Failure, Lost, Overload, Success, Unsent};
use super::machine::{Ending, Machine};
use super::rules::{Rules, Trip};
use super::tally::BreakerNote;

const SECOND: Duration = Duration::from_secs(1);
const MOST_PASSES: usize = 3;
/// A time that is longer than any setting that it is compared with.
const LONG: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
enum Event {
    Tick,
    Admit,
    End(usize, Outcome),
    Isolate,
    Close,
}

#[derive(Clone)]
struct Node {
    machine: Machine,
    /// The calls in flight, with the times at which they were sent.
    notes: Vec<(BreakerNote, Duration)>,
    path: Vec<Event>,
    latest: Latest,
}

/// The latest failures, recorded without the machine.
#[derive(Clone, Default)]
struct Latest {
    /// The time at which the latest event was seen, and its generation.
    event: Option<(Duration, u64)>,
    /// The start of the first failure. No path here is long enough for its end.
    began: Option<Duration>,
}

/// The lease is only one second, so that a probe in flight may outlive it.
fn rules(breaker: &CircuitBreaker) -> Rules {
    Rules { lease: SECOND, ..Rules::clone(&breaker.0.settings()) }
}

fn events(node: &Node) -> Vec<Event> {
    let mut events = vec![Event::Tick, Event::Isolate, Event::Close];
    if node.notes.len() < MOST_PASSES {
        events.push(Event::Admit);
    }
    for place in 0..node.notes.len() {
        let outcomes = [Success, Failure, Lost, Overload, Excluded, Abandoned, Unsent];
        events.extend(outcomes.map(|outcome| Event::End(place, outcome)));
    }
    events
}

/// Returns the state without irrelevant details: the generation number, absolute times, and the order of notes.
fn fingerprint(node: &Node) -> String {
    let machine = &node.machine;
    let now = machine.now;
    let mut notes: Vec<_> = node
        .notes
        .iter()
        .map(|(note, sent)| {
            let current = note.generation == machine.generation;
            let counted = machine.failing.clone().lose(*sent, now);
            current.then(|| (note.age, machine.next_probe - note.probe, counted, (now - *sent).min(LONG)))
        })
        .collect();
    notes.sort_unstable();
    let probes = machine.probes.iter();
    let mut probes: Vec<_> = probes.map(|(probe, lease)| (machine.next_probe - probe, *lease - now)).collect();
    probes.sort_unstable();
    let expiry = machine.expiry.map(|expiry| expiry.saturating_sub(now));
    let idle = machine.state == Closed && machine.window.counts().requests == 0;
    let since = if idle { Duration::ZERO } else { now - machine.start };
    let window = if idle { String::new() } else { format!("{:?}", machine.window) };
    format!(
        "{:?} {notes:?} {probes:?} {expiry:?} {since:?} {window} {} {:?} {} {}",
        machine.state,
        machine.failing.run,
        machine.failing.time(now).min(LONG),
        // A call that is sent now belongs to an event that was seen now.
        machine.failing.clone().lose(now, now),
        machine.failing.openings.min(3)
    )
}

fn end_note(machine: &mut Machine, rules: &Rules, (note, sent): (BreakerNote, Duration), outcome: Outcome) {
    let ending = Ending { outcome, asked: Duration::ZERO, sent, now: machine.now };
    let counts = machine.end_call(rules, note, ending);
    if let (Some(counts), Trip::Counts(ready_to_trip)) = (counts, &rules.trip)
        && ready_to_trip(&counts)
    {
        machine.trip(rules, note.generation, Duration::ZERO);
    }
}

fn step(node: &Node, event: Event, rules: &Rules) -> Node {
    let mut next = node.clone();
    next.path.push(event);
    let (machine, now) = (&mut next.machine, node.machine.now);
    machine.changed.clear();
    match event {
        Event::Tick => machine.advance(rules, now + SECOND),
        Event::Admit => next.notes.extend(machine.admit(rules, now, None).map(|note| (note, now))),
        Event::End(place, outcome) => end_note(machine, rules, next.notes.remove(place), outcome),
        Event::Isolate => machine.force(rules, ForcedOpen, now),
        Event::Close => machine.force(rules, Closed, now),
    }
    record(node, &mut next, event);
    next
}

/// Records a failure of the current generation, and verifies that it counted, unless its event had.
// C-6
fn record(before: &Node, after: &mut Node, event: Event) {
    let generation = before.machine.generation;
    if let Event::Isolate | Event::Close = event {
        after.latest = Latest::default();
    }
    let Event::End(place, outcome @ (Failure | Overload | Lost)) = event else { return };
    let (note, sent) = before.notes[place];
    if note.generation != generation {
        return;
    }
    let (latest, now) = (&mut after.latest, before.machine.now);
    let closed = before.machine.state == Closed;
    let member = closed && outcome == Lost && latest.event.is_some_and(|(seen, own)| own == generation && sent <= seen);
    if !member {
        let began = if outcome == Lost { now } else { sent };
        latest.began = latest.began.or(Some(began));
        latest.event = if outcome == Lost { Some((now, generation)) } else { latest.event };
    }
    if after.machine.generation == generation && note.age == after.machine.window.age() {
        let [before, after] = [before, after].map(|node| node.machine.window.counts().total_failures);
        assert_eq!(after == before, member, "{event:?}");
    }
}

fn is_legal(event: Event, from: BreakerState, to: BreakerState, rules: &Rules) -> bool {
    let failed = matches!(event, Event::End(_, Failure | Overload | Lost));
    match (from, to) {
        (_, ForcedOpen) => matches!(event, Event::Isolate),
        (Closed | HalfOpen, Open) => failed,
        (Open, HalfOpen) => true,
        (HalfOpen, Closed) if failed => rules.probe_ratio > 0,
        (HalfOpen, Closed) => matches!(event, Event::End(_, Success) | Event::Close),
        (_, Closed) => matches!(event, Event::Close),
        _ => false,
    }
}

fn verify(before: &Node, after: &Node, event: Event, rules: &Rules) {
    let (machine, path) = (&after.machine, &after.path);
    for (from, to) in &machine.changed {
        assert!(is_legal(event, *from, *to, rules), "{from} to {to}: {path:?}");
    }
    let counts = machine.window.counts();
    let ended = counts.total_successes + counts.total_failures + counts.total_exclusions;
    assert!(ended <= counts.requests, "{counts:?}: {path:?}");
    assert!(counts.consecutive_successes <= counts.total_successes, "{counts:?}: {path:?}");
    assert!(counts.consecutive_failures <= counts.total_failures, "{counts:?}: {path:?}");
    if machine.state == HalfOpen {
        assert!(machine.probes.len() <= rules.probes as usize, "G-2: {path:?}");
    }
    if let Event::End(place, _) = event {
        let (note, _) = before.notes[place];
        if note.generation != before.machine.generation {
            let same = Node { notes: after.notes.clone(), ..before.clone() };
            assert_eq!(fingerprint(&same), fingerprint(after), "G-4: {path:?}");
        }
    }
    // C-14: calls must have failed for some time.
    if let Trip::Rate(rate) = &rules.trip
        && machine.changed.contains(&(Closed, Open))
    {
        let failed_for = after.latest.began.map(|began| machine.now - began);
        assert!(failed_for.is_some_and(|time| time >= rate.time), "{failed_for:?}: {path:?}");
    }
    // G-1: even if some calls never end, a call is admitted once the open time and the leases are over.
    let mut later = machine.clone();
    let wait = rules.max_open_time.max(rules.open_time);
    later.advance(rules, machine.now + wait);
    let admitted = later.admit(rules, machine.now + wait * 2, None);
    match machine.state {
        ForcedOpen => assert_eq!(admitted.unwrap_err().reason(), Reason::Isolated),
        _ => assert!(admitted.is_ok(), "wedged: {path:?}"),
    }
    if machine.state == Open {
        verify_wait(machine, rules, path);
    }
}

/// Verifies that a call is admitted after the wait in its refusal, and not just before.
fn verify_wait(machine: &Machine, rules: &Rules, path: &[Event]) {
    let refused = machine.clone().admit(rules, machine.now, None).unwrap_err();
    let wait = refused.wait().unwrap();
    assert!(!wait.is_zero(), "{path:?}");
    let just_before = machine.now + wait - Duration::from_nanos(1);
    assert!(machine.clone().admit(rules, just_before, None).is_err(), "{path:?}");
    assert!(machine.clone().admit(rules, machine.now + wait, None).is_ok(), "{path:?}");
}

/// Verifies that the breaker closes if the server serves every call from now on, even more slowly than the lease.
fn verify_recovery(node: &Node, rules: &Rules) {
    let mut machine = node.machine.clone();
    let mut under_way = VecDeque::new();
    for _ in 0..12 {
        let now = machine.now + SECOND;
        while let Some((note, _)) = under_way.pop_front_if(|(_, due)| *due <= now) {
            machine.end_call(rules, note, Ending { outcome: Success, asked: Duration::ZERO, sent: now, now });
        }
        let admitted = machine.admit(rules, now, None);
        under_way.extend(admitted.map(|note| (note, now + SECOND * 3)));
    }
    assert_eq!(machine.state, Closed, "trap 51: {:?}", node.path);
}

/// Returns the number of distinct states, and the breaker states that were reached.
fn explore(breaker: &CircuitBreaker, depth: usize) -> (usize, HashSet<BreakerState>) {
    let rules = rules(breaker);
    let machine = Machine::new(&rules);
    let mut level = vec![Node { machine, notes: vec![], path: vec![], latest: Latest::default() }];
    let (mut seen, mut states) = (HashSet::new(), HashSet::new());
    for _ in 0..depth {
        let mut next = Vec::new();
        for node in &level {
            for event in events(node) {
                let after = step(node, event, &rules);
                verify(node, &after, event, &rules);
                states.insert(after.machine.state);
                if seen.insert(fingerprint(&after)) {
                    if after.machine.state != ForcedOpen {
                        verify_recovery(&after, &rules);
                    }
                    next.push(after);
                }
            }
        }
        level = next;
    }
    (seen.len(), states)
}

/// The rate form obeys its rules with leases, generations, abandoned calls, concurrent probes, and a server slower than
/// a lease.
// G-1, G-2, G-4, trap 51
#[test]
fn rate_form_keeps_its_rules() {
    let breaker = CircuitBreaker::rate().interval(SECOND * 4).bucket_period(SECOND * 2);
    let breaker = breaker.first_open_time(SECOND).open_time(SECOND * 2).spread(0).probes(2);
    let (seen, states) = explore(&breaker.min_calls(2).consecutive_failures(2).min_failing_time(SECOND), 11);
    assert_eq!(states.len(), 4);
    assert!(seen > 3_000, "{seen} states");
}

/// A window of the last calls obeys the rules, even if the breaker closes after one of two probes failed.
// G-1, G-2, G-4, trap 51
#[test]
fn last_calls_keep_the_rules() {
    let breaker = CircuitBreaker::rate().last_calls(3).open_time(SECOND).max_open_time(SECOND * 2);
    let breaker = breaker.spread(0).probes(2).probe_failure_ratio(0.6);
    let (seen, states) = explore(&breaker.min_calls(2).min_failing_time(Duration::ZERO), 11);
    assert_eq!(states.len(), 4);
    assert!(seen > 1_000, "{seen} states");
}

#[test]
fn counting_form_keeps_its_rules() {
    let breaker = CircuitBreaker::counting().interval(SECOND * 2).open_time(SECOND).probes(2);
    let breaker = breaker.ready_to_trip(|counts| counts.consecutive_failures >= 2);
    let (seen, states) = explore(&breaker, 11);
    assert_eq!(states.len(), 4);
    assert!(seen > 2_000, "{seen} states");
}
