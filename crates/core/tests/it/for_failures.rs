//! Tests of schedules per kind of failure: which one is asked, with what input, and which events each records.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule, ScheduleExt, SentAt, SharedSchedule};
use reattempt_testing::secs;

const LOST: Failure = Failure::new(FailureKind::Network);
const BUSY: Failure = Failure::new(FailureKind::Throttled).with_code(429);
const BROKEN: Failure = Failure::new(FailureKind::Server).with_code(503);

/// A schedule whose delays are its unit times the retry number plus one, for a number of retries. It records its
/// inputs.
#[derive(Debug, Clone)]
struct Recorder {
    unit: Duration,
    retries: u32,
    sent_at: SentAt,
    told: Arc<Mutex<Vec<Told>>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    /// A request for a delay: the retry number, the previous delay, the failure, and the `SentAt`.
    Asked(u32, Option<Duration>, Failure, SentAt),
    Failed(SentAt, Failure),
    Succeeded(SentAt),
}

impl Recorder {
    fn new(unit: Duration) -> Self {
        Self { unit, retries: u32::MAX, sent_at: SentAt(0), told: Arc::default() }
    }

    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().drain(..).collect()
    }

    fn note(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Schedule for Recorder {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        self.sent_at
    }

    fn on_success(&self, sent_at: SentAt, _: &mut dyn Random) {
        self.note(Told::Succeeded(sent_at));
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, _: &mut dyn Random) {
        self.note(Told::Failed(sent_at, *failure));
    }
}

impl Delays for Recorder {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        self.note(Told::Asked(retry.number, retry.previous, retry.failure, retry.sent_at));
        (retry.number < self.retries).then(|| self.unit.saturating_mul(retry.number + 1))
    }
}

struct Never;

impl Random for Never {
    fn next_u64(&mut self) -> u64 {
        panic!("nothing is drawn here")
    }
}

/// A call as driven by the engine: the previous delay, and the number of the next retry.
struct Call<D> {
    delays: D,
    number: u32,
    previous: Option<Duration>,
}

impl<D: Delays> Call<D> {
    fn of(schedule: &impl Schedule<Delays = D>) -> Self {
        Self { delays: schedule.delays(), number: 0, previous: None }
    }

    fn next(&mut self, failure: Failure) -> Option<u64> {
        let retry = NextRetry::new(self.number, failure).after(self.previous);
        let delay = self.delays.next_delay(&retry.sent_at(SentAt(7)), &mut Never)?;
        self.number += 1;
        self.previous = Some(delay);
        Some(delay.as_secs())
    }
}

#[test]
fn each_kind_counts_for_itself() {
    let schedule = Recorder::new(secs(1))
        .for_failures(|failure: &Failure| failure.kind() == FailureKind::Network, Recorder::new(secs(10)))
        .for_failures(|failure: &Failure| failure.code() == Some(429), Recorder::new(secs(100)));
    let mut call = Call::of(&schedule);
    let failures = [BROKEN, LOST, LOST, BUSY, BROKEN, BUSY, LOST, BROKEN];
    let delays = failures.map(|failure| call.next(failure).unwrap());
    assert_eq!(delays, [1, 10, 20, 100, 2, 200, 30, 3]);

    // Calls share nothing: the next one starts afresh.
    assert_eq!(Call::of(&schedule).next(LOST), Some(10));
}

#[test]
fn the_last_one_added_is_asked_first() {
    let all = |_: &Failure| true;
    let schedule = Recorder::new(secs(1)).for_failures(all, Recorder::new(secs(10)));
    assert_eq!(Call::of(&schedule).next(LOST), Some(10));
    let schedule = schedule.for_failures(all, Recorder::new(secs(100)));
    assert_eq!(Call::of(&schedule).next(LOST), Some(100));
}

#[test]
fn each_sees_delay_after_its_last_failure() {
    let (network, rest) = (Recorder::new(secs(10)), Recorder::new(secs(1)));
    let schedule = rest.clone().for_failures(|failure: &Failure| failure.code().is_none(), network.clone());
    let mut call = Call::of(&schedule);
    call.next(LOST);
    // The server requested a longer delay than the schedule's.
    call.previous = Some(secs(33));
    for failure in [BROKEN, BROKEN, LOST, BROKEN] {
        call.next(failure);
    }
    let sent_at = SentAt(7);
    let asked = |number, previous: Option<u64>, failure| Told::Asked(number, previous.map(secs), failure, sent_at);
    assert_eq!(network.told(), [asked(0, None, LOST), asked(1, Some(33), LOST)]);
    let rest = rest.told();
    assert_eq!(rest[..2], [asked(0, None, BROKEN), asked(1, Some(1), BROKEN)]);
    assert_eq!(rest[2..], [asked(2, Some(2), BROKEN)]);
}

#[test]
fn end_of_one_is_end_for_its_failures_only() {
    let network = Recorder { retries: 1, ..Recorder::new(secs(10)) };
    let schedule = Recorder::new(secs(1)).for_failures(|f: &Failure| f.code().is_none(), network);
    let mut call = Call::of(&schedule);
    let delays = [LOST, BROKEN, LOST, BROKEN].map(|failure| call.next(failure));
    assert_eq!(delays, [Some(10), Some(1), None, Some(2)]);
}

#[test]
fn failure_goes_to_its_own_success_to_both() {
    let (network, rest) = (Recorder::new(secs(10)), Recorder::new(secs(1)));
    let network = Recorder { sent_at: SentAt(5), ..network };
    let schedule = rest.clone().for_failures(|f: &Failure| f.code().is_none(), network.clone());
    let sent_at = schedule.on_send();
    assert_eq!(sent_at, SentAt(5), "that of the one that uses it");
    assert!(!schedule.is_stateless());

    schedule.on_failure(sent_at, &LOST, &mut Never);
    schedule.on_failure(sent_at, &BUSY, &mut Never);
    schedule.on_success(sent_at, &mut Never);
    let succeeded = Told::Succeeded(sent_at);
    assert_eq!(network.told(), [Told::Failed(sent_at, LOST), succeeded]);
    assert_eq!(rest.told(), [Told::Failed(sent_at, BUSY), succeeded]);
}

#[test]
fn retry_at_once_is_not_counted_by_any_kind() {
    let schedule = Recorder::new(secs(1))
        .for_failures(|failure: &Failure| failure.code().is_none(), Recorder::new(secs(10)))
        .immediate_first();
    let mut call = Call::of(&SharedSchedule::new(schedule));
    let delays = [LOST, LOST, BROKEN, LOST].map(|failure| call.next(failure).unwrap());
    assert_eq!(delays, [0, 10, 1, 20]);
}

#[test]
fn the_furthest_retry_does_not_overflow() {
    let schedule = Recorder::new(Duration::MAX).for_failures(|f: &Failure| f.code().is_none(), Recorder::new(secs(1)));
    let mut delays = schedule.delays();
    for failure in [BROKEN, LOST, BROKEN] {
        let retry = NextRetry::new(u32::MAX, failure).after(Some(Duration::MAX));
        assert!(delays.next_delay(&retry, &mut Never).is_some());
    }
}

#[test]
fn debug_leaves_closure_out() {
    #[derive(Debug, Clone, Copy)]
    struct Named;
    impl Schedule for Named {
        type Delays = Self;
        fn delays(&self) -> Self {
            Named
        }
    }
    impl Delays for Named {
        fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
            None
        }
    }
    let schedule = Named.for_failures(|failure: &Failure| failure.code().is_none(), Named);
    assert_eq!(format!("{schedule:?}"), "ForFailures { matching: Named, rest: Named, .. }");
    assert!(format!("{:?}", schedule.delays()).starts_with("OnFailureDelays { matching: Counted"));
}
