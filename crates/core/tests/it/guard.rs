//! Tests of the guard contract: pairs, absent guards, and the order in which a pair decides.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Guard, GuardKind, Health, Reason, Refused, Resume, erase};

const NOW: Duration = Duration::from_secs(1);
const FULL: Refused = Refused::new(GuardKind::BULKHEAD, Reason::Full);
const OPEN: Refused = Refused::new(GuardKind::CIRCUIT_BREAKER, Reason::Open);

type Log = Arc<Mutex<Vec<String>>>;

/// A guard that follows a script and records each call. Its tickets are numbered.
struct Scripted {
    name: &'static str,
    admits: Mutex<VecDeque<Admit<u32>>>,
    resumes: Mutex<VecDeque<Resume>>,
    holds: bool,
    log: Log,
}

impl Scripted {
    fn new<const N: usize>(name: &'static str, admits: [Admit<u32>; N], log: &Log) -> Self {
        let (admits, resumes) = (Mutex::new(admits.into()), Mutex::default());
        Self { name, admits, resumes, holds: false, log: Arc::clone(log) }
    }

    fn resumes<const N: usize>(mut self, answers: [Resume; N]) -> Self {
        self.resumes = Mutex::new(answers.into());
        self
    }

    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl Guard for Scripted {
    type Ticket = u32;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<u32> {
        self.note(if arrival.patient { "admit" } else { "admit impatient" });
        self.admits.lock().unwrap().pop_front().unwrap()
    }

    fn end_ticket(&self, ticket: u32, end: &End, _: Duration) -> Option<u32> {
        let end_name = match end {
            End::Judged { .. } => "judged",
            End::Unsent => "unsent",
            End::Over(_) => "over",
            _ => "other",
        };
        self.note(&format!("{end_name} {ticket}"));
        (self.holds && matches!(end, End::Judged { .. })).then_some(ticket)
    }

    fn resume(&self, _: &mut u32, _: &Arrival<'_>, _: &Waker) -> Resume {
        self.note("resume");
        self.resumes.lock().unwrap().pop_front().unwrap()
    }
}

fn arrival() -> Arrival<'static> {
    Arrival::new("a", NOW)
}

fn resume<G: Guard>(guard: &G, ticket: &mut G::Ticket) -> Resume {
    guard.resume(ticket, &arrival(), Waker::noop())
}

fn waiting<T>(admit: Admit<T>) -> T {
    match admit {
        Admit::Waiting(ticket) => ticket,
        _ => panic!("not queued"),
    }
}

fn noted(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

const WAIT: Resume = Resume::Waiting { until: None };

// GUARDS G1: for the guards before it, a refusal further in is "unsent".
#[test]
fn second_refuses_first_ends_unsent() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Admitted(1)], &log);
    let second = Scripted::new("second", [Admit::Refused(FULL)], &log);
    assert!(matches!((first, second).admit(&arrival()), Admit::Refused(FULL)));
    assert_eq!(noted(&log), ["first admit", "second admit", "first unsent 1"]);
}

#[test]
fn first_refuses_second_is_not_asked() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Refused(OPEN)], &log);
    let second = Scripted::new("second", [], &log);
    assert!(matches!((first, second).admit(&arrival()), Admit::Refused(OPEN)));
    assert_eq!(noted(&log), ["first admit"]);
}

/// A queued call is not sent after the breaker in front of the queue has opened.
// G-26
#[test]
fn first_decides_again_after_the_wait() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Admitted(1), Admit::Refused(OPEN)], &log);
    let second = Scripted::new("second", [Admit::Waiting(7)], &log).resumes([WAIT, Resume::Admitted]);
    let pair = (first, second);
    let mut ticket = waiting(pair.admit(&arrival()));
    assert_eq!(resume(&pair, &mut ticket), WAIT);
    assert_eq!(resume(&pair, &mut ticket), Resume::Refused(OPEN));
    assert_eq!(noted(&log)[3..], ["second resume", "first unsent 1", "first admit impatient", "second unsent 7"]);
    assert!(pair.end_ticket(ticket, &End::Unsent, NOW).is_none());
    assert!(noted(&log).is_empty(), "a void ticket ends nothing twice");
}

#[test]
fn second_is_asked_after_the_first_waited() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Waiting(1)], &log).resumes([Resume::Admitted]);
    let second = Scripted::new("second", [Admit::Refused(FULL)], &log);
    let pair = (first, second);
    let mut ticket = waiting(pair.admit(&arrival()));
    assert_eq!(resume(&pair, &mut ticket), Resume::Refused(FULL));
    assert_eq!(noted(&log), ["first admit", "first resume", "second admit", "first unsent 1"]);
}

#[test]
fn a_dropped_waiter_ends_both_tickets() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Admitted(1)], &log);
    let second = Scripted::new("second", [Admit::Waiting(7)], &log);
    let pair = (first, second);
    let ticket = waiting(pair.admit(&arrival()));
    assert!(pair.end_ticket(ticket, &End::Unsent, NOW).is_none());
    assert_eq!(noted(&log)[2..], ["first unsent 1", "second unsent 7"]);
}

// GUARDS G1, Body: only a guard that holds its ticket is called once more, when the body has ended.
#[test]
fn only_the_holder_is_ended_at_the_body_end() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Admitted(1)], &log);
    let mut second = Scripted::new("second", [Admit::Admitted(7)], &log);
    second.holds = true;
    let pair = Arc::new((Some(first), second));
    let Admit::Admitted(ticket) = pair.admit(&arrival()) else { panic!("not admitted") };
    let held = pair.end_ticket(ticket, &End::judged(Health::Served, NOW), NOW).unwrap();
    assert!(pair.end_ticket(held, &End::Over(BodyEnd::Complete), NOW).is_none());
    assert_eq!(noted(&log)[2..], ["first judged 1", "second judged 7", "second over 7"]);
}

#[test]
fn renewing_a_pair_releases_all_of_it() {
    let log = Log::default();
    let first = Scripted::new("first", [Admit::Admitted(1), Admit::Admitted(2)], &log);
    let second = Scripted::new("second", [Admit::Admitted(3), Admit::Waiting(4)], &log);
    let pair = (first, second);
    let Admit::Admitted(ticket) = pair.admit(&arrival()) else { panic!("not admitted") };
    let refused = pair.renew(ticket, &arrival()).unwrap_err();
    assert_eq!(refused, Refused::new(GuardKind::UNNAMED, Reason::Full));
    assert_eq!(
        noted(&log)[2..],
        [
            "first unsent 1",
            "first admit impatient",
            "second unsent 3",
            "second admit impatient",
            "second unsent 4",
            "first unsent 2"
        ]
    );
}

#[test]
fn absent_guard_admits_everything() {
    let none: Option<Scripted> = None;
    assert!(none.would_admit(&arrival()).is_ok());
    let Admit::Admitted(ticket) = none.admit(&arrival()) else { panic!("not admitted") };
    assert!(none.end_ticket(ticket, &End::Unsent, NOW).is_none());
}

#[test]
fn refusal_is_small_and_has_a_text() {
    assert_eq!(size_of::<Refused>(), 16);
    assert_eq!(OPEN.to_string(), "not sent: the circuit breaker is open");
    let wait = OPEN.after(Duration::from_millis(1500));
    assert_eq!(wait.to_string(), "not sent: the circuit breaker is open (try again in 1.5s)");
    assert_eq!(wait.wait(), Some(Duration::from_millis(1500)));
    let exact = OPEN.after(Duration::from_nanos(1_234_567_891)).to_string();
    assert_eq!(exact, "not sent: the circuit breaker is open (try again in 1.23s)");
    assert_eq!(OPEN.after(Duration::MAX).wait(), None);
    assert_eq!(format!("{OPEN:?}"), "Refused { guard: circuit breaker, reason: Open, wait: None }");
    let shed = Refused::new(GuardKind::THROTTLE, Reason::Shed);
    assert_eq!(shed.to_string(), "not sent: the throttle sheds part of the calls");
}

#[test]
fn shared_guard_is_asked_in_advance() {
    struct Shut;
    impl Guard for Shut {
        type Ticket = ();
        fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
            Admit::Refused(OPEN)
        }
        fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
            None
        }
        fn would_admit(&self, _: &Arrival<'_>) -> Result<(), Refused> {
            Err(OPEN)
        }
    }
    assert_eq!(Arc::new(Shut).would_admit(&arrival()), Err(OPEN));
    assert_eq!(Some(Shut).would_admit(&arrival()), Err(OPEN));
}

#[test]
fn pair_refuses_in_advance_as_either_does() {
    struct Says(Result<(), Refused>);
    impl Guard for Says {
        type Ticket = ();
        fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
            self.0.map_or_else(Admit::Refused, Admit::Admitted)
        }
        fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
            None
        }
        fn would_admit(&self, _: &Arrival<'_>) -> Result<(), Refused> {
            self.0
        }
    }
    let check = |first, second| (Says(first), Says(second)).would_admit(&arrival());
    assert_eq!(check(Ok(()), Ok(())), Ok(()));
    assert_eq!(check(Err(OPEN), Err(FULL)), Err(OPEN));
    assert_eq!(check(Ok(()), Err(FULL)), Err(FULL));
    assert_eq!(Some(Says(Err(FULL))).renew(Some(()), &arrival()), Err(FULL));
}

#[test]
fn arrival_has_what_it_was_given() {
    let arrival = Arrival::new("x", NOW).latest(NOW * 2).impatient();
    assert_eq!((arrival.destination, arrival.now), ("x", NOW));
    assert_eq!((arrival.latest, arrival.patient), (Some(NOW * 2), false));
}

#[test]
fn erased_guard_is_the_guard_inside() {
    let log = Log::default();
    let admits = [Admit::Waiting(1), Admit::Admitted(2), Admit::Refused(FULL)];
    let scripted = Scripted::new("a", admits, &log).resumes([Resume::Admitted]);
    let guard = erase(Scripted { holds: true, ..scripted });
    let mut first = waiting(guard.admit(&arrival()));
    assert_eq!(resume(&guard, &mut first), Resume::Admitted);
    let held = guard.end_ticket(first, &End::judged(Health::Served, NOW), NOW).unwrap();
    assert!(guard.end_ticket(held, &End::Over(BodyEnd::Dropped), NOW).is_none());
    let Admit::Admitted(second) = guard.admit(&arrival()) else { panic!("not admitted") };
    assert_eq!(guard.renew(second, &arrival()).unwrap_err(), FULL);
    let calls = ["admit", "resume", "judged 1", "over 1", "admit", "unsent 2", "admit impatient"];
    assert_eq!(*log.lock().unwrap(), calls.map(|call| format!("a {call}")));
}

/// A guard that differs from the contract's defaults.
struct Closed;

impl Guard for Closed {
    type Ticket = ();

    fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
        Admit::Admitted(())
    }

    fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
        Some(())
    }

    fn times_success(&self, (): &()) -> bool {
        false
    }

    fn is_probe(&self, (): &()) -> bool {
        true
    }

    fn would_admit(&self, _: &Arrival<'_>) -> Result<(), Refused> {
        Err(OPEN)
    }
}

#[test]
fn erased_guard_keeps_what_it_overrides() {
    let (guard, other) = (erase(Closed), erase((Closed, Closed)));
    let Admit::Admitted(ticket) = guard.admit(&arrival()) else { panic!("not admitted") };
    assert!(!guard.times_success(&ticket));
    assert!(guard.is_probe(&ticket) && !other.is_probe(&ticket));
    assert_eq!(guard.would_admit(&arrival()), Err(OPEN));
    // The ticket does not belong to the other guard, so it ends nothing there.
    assert!(other.times_success(&ticket));
    assert!(other.end_ticket(ticket, &End::judged(Health::Served, NOW), NOW).is_none());
}

/// If any guard in a list admits a probe, the attempt is a probe.
#[test]
fn probe_is_seen_through_every_wrapper() {
    let none = None::<Closed>;
    let probes = (erase(std::sync::Arc::new((Some(Closed), none))), erase((None::<Closed>, Closed)));
    for guard in [probes.0, probes.1] {
        let Admit::Admitted(ticket) = guard.admit(&arrival()) else { panic!("not admitted") };
        assert!(guard.is_probe(&ticket));
    }
    let guard = (None::<Closed>, None::<Closed>);
    let Admit::Admitted(ticket) = guard.admit(&arrival()) else { panic!("not admitted") };
    assert!(!guard.is_probe(&ticket));
}
