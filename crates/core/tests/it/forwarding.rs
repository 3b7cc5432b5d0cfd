//! Tests that adapters and pointers forward every method and its result.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{
    Budget, Classifier, Delays, Evidence, Failure, FailureKind, Jitter, NextRetry, Permit, Random, Schedule,
    ScheduleExt, SentAt, ServerHint, SharedSchedule, SpendOnly, Unlimited, Verdict,
};

const FAILURE: Failure = Failure::new(FailureKind::Server);
const SECOND: Duration = Duration::from_secs(1);

struct Zero;

impl Random for Zero {
    fn next_u64(&mut self) -> u64 {
        0
    }
}

/// A schedule that records its inputs.
#[derive(Clone, Default)]
struct Recorder {
    stateless: bool,
    shared: bool,
    log: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn of(stateless: bool, shared: bool) -> Self {
        Self { stateless, shared, ..Self::default() }
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn write(&self, event: String) {
        self.log.lock().unwrap().push(event);
    }
}

impl Schedule for Recorder {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        SentAt(7)
    }

    fn on_success(&self, sent_at: SentAt, _: &mut dyn Random) {
        self.write(format!("success {}", sent_at.0));
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, _: &mut dyn Random) {
        self.write(format!("failure {} {failure}", sent_at.0));
    }

    fn is_stateless(&self) -> bool {
        self.stateless
    }
}

impl Delays for Recorder {
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        Some(SECOND)
    }

    fn is_shared(&self) -> bool {
        self.shared
    }
}

/// Checks that `wrap` forwards each method of a schedule to the inner one. `number` is a retry whose delay comes from
/// the inner schedule.
fn assert_forwards<S: Schedule>(number: u32, wrap: impl Fn(Recorder) -> S) {
    for flag in [true, false] {
        let inner = Recorder::of(flag, flag);
        let outer = wrap(inner.clone());
        assert_eq!(outer.is_stateless(), flag);
        assert_eq!(outer.on_send(), SentAt(7));
        outer.on_success(SentAt(3), &mut Zero);
        assert_eq!(inner.log(), ["success 3"]);
        outer.on_failure(SentAt(4), &FAILURE, &mut Zero);
        assert_eq!(inner.log(), ["failure 4 server"]);
        let mut delays = outer.delays();
        assert_eq!(delays.next_delay(&NextRetry::new(number, FAILURE), &mut Zero), Some(SECOND));
        assert_eq!(delays.is_shared(), flag);
    }
}

#[test]
fn adapters_forward_to_their_schedule() {
    assert_forwards(0, |inner| inner.take(1));
    assert_forwards(0, |inner| inner.capped(SECOND));
    assert_forwards(0, |inner| inner.floor(SECOND));
    assert_forwards(0, |inner| inner.jittered(Jitter::none()));
    assert_forwards(1, |inner| inner.immediate_first());
}

#[test]
fn pointers_forward_to_their_schedule() {
    assert_forwards(0, Arc::new);
    assert_forwards(0, SharedSchedule::new);
}

#[test]
fn pair_is_stateless_only_if_both_are() {
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let [a, b] = [first, second].map(|stateless| Recorder::of(stateless, false));
        assert_eq!(a.clone().then(b.clone()).is_stateless(), first && second);
        assert_eq!(a.for_failures(|_: &Failure| true, b).is_stateless(), first && second);
    }
}

#[test]
fn pair_is_shared_as_the_schedule_in_use() {
    let [shared, own] = [true, false].map(|shared| Recorder::of(false, shared));
    let retry = |number| NextRetry::new(number, FAILURE);
    let mut delays = shared.clone().take(1).then(own.clone()).delays();
    assert!(delays.next_delay(&retry(0), &mut Zero).is_some() && delays.is_shared());
    assert!(delays.next_delay(&retry(1), &mut Zero).is_some() && !delays.is_shared());
    for matches in [true, false] {
        let schedule = own.clone().for_failures(move |_: &Failure| matches, shared.clone());
        let mut delays = schedule.delays();
        assert!(delays.next_delay(&retry(0), &mut Zero).is_some());
        assert_eq!(delays.is_shared(), matches);
    }
}

#[test]
fn reference_draws_from_its_generator() {
    struct Next(u64);
    impl Random for Next {
        fn next_u64(&mut self) -> u64 {
            self.0 += 5;
            self.0
        }
    }
    fn draw<R: Random>(mut random: R) -> u64 {
        random.next_u64()
    }
    let mut next = Next(1);
    assert_eq!((draw(&mut next), draw(&mut next)), (6, 11));
}

/// A budget whose methods all return `flag`, and which records its inputs.
#[derive(Clone, Default)]
struct Flags {
    flag: bool,
    log: Arc<Mutex<Vec<String>>>,
}

impl Flags {
    fn permit(&self, event: String) -> Option<Permit> {
        self.log.lock().unwrap().push(event);
        self.flag.then(Permit::free)
    }
}

impl Budget for Flags {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        self.permit(format!("acquire {destination} {failure} {now:?}"))
    }

    fn acquire_after_failure(&self, to: &str, failure: &Evidence, now: Duration) -> Option<Permit> {
        self.permit(format!("both {to} {failure} {now:?}"))
    }

    fn on_failure(&self, destination: &str, failure: &Evidence, now: Duration) {
        self.permit(format!("failure {destination} {failure} {now:?}"));
    }

    fn on_success(&self, destination: &str, retries: u32) {
        self.permit(format!("success {destination} {retries}"));
    }

    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        self.permit(format!("permanent {destination} {hint:?} {retries}"));
    }

    fn is_full(&self) -> bool {
        self.flag
    }

    fn is_noop(&self) -> bool {
        self.flag
    }

    fn is_keyed(&self) -> bool {
        self.flag
    }
}

#[test]
fn shared_budget_forwards_every_method() {
    for flag in [true, false] {
        let inner = Flags { flag, ..Flags::default() };
        let budget = Arc::new(inner.clone());
        assert_eq!(budget.acquire("a", &FAILURE, SECOND).is_some(), flag);
        assert_eq!(budget.acquire_after_failure("a", &FAILURE.into(), SECOND).is_some(), flag);
        budget.on_failure("a", &FAILURE.into(), SECOND);
        budget.on_success("a", 2);
        budget.on_permanent_failure("a", ServerHint::Stop, 3);
        let expected =
            ["acquire a server 1s", "both a server 1s", "failure a server 1s", "success a 2", "permanent a Stop 3"];
        assert_eq!(*inner.log.lock().unwrap(), expected);
        assert_eq!([budget.is_full(), budget.is_noop()], [flag; 2]);
    }
}

#[test]
fn pair_is_full_and_idle_only_if_both_are() {
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let pair = [first, second].map(|flag| Flags { flag, ..Flags::default() });
        let pair = <(Flags, Flags)>::from(pair);
        assert_eq!([pair.is_full(), pair.is_noop()], [first && second; 2]);
    }
}

/// A budget that overrides only the required methods.
struct Least;

impl Budget for Least {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        None
    }
}

#[test]
fn budget_is_keyed_if_a_part_of_it_is() {
    assert!(Least.is_keyed() && SpendOnly(Least).is_keyed() && !Unlimited.is_keyed());
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let [first, second] = [first, second].map(|flag| Flags { flag, ..Flags::default() });
        assert_eq!(Arc::new(first.clone()).is_keyed(), first.flag);
        let keyed = first.flag || second.flag;
        assert_eq!((first, second).is_keyed(), keyed);
    }
}

#[test]
fn defaults_are_never_wrong() {
    assert!(Least.acquire_after_failure("a", &FAILURE.into(), SECOND).is_none());
    assert_eq!([Least.is_full(), Least.is_noop()], [false; 2]);
    assert!([Unlimited.is_full(), Unlimited.is_noop()] == [true; 2]);
    let spends = SpendOnly(Least);
    assert!([spends.is_full(), spends.is_noop()] == [true; 2]);
    assert!(spends.acquire("a", &FAILURE, SECOND).is_none());
}

#[test]
fn erased_schedule_prints_its_name() {
    let erased = SharedSchedule::new(Recorder::default());
    assert_eq!(format!("{erased:?}"), "SharedSchedule { .. }");
}

#[test]
fn closure_classifies_what_it_knows() {
    let conflict = |status: u16| (status == 409).then_some(Verdict::Transient(FAILURE));
    assert_eq!(conflict.classify(409), Some(Verdict::Transient(FAILURE).into()));
    assert_eq!(conflict.classify(503), None);
}
