//! Tests of combined schedules: their results, and the inputs of their inner schedules.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{
    Delays, Failure, FailureKind, Jitter, NextRetry, Random, Schedule, ScheduleExt, SentAt, SharedSchedule,
};
use reattempt_testing::secs;

/// A retry number and the delay before it, as passed to an inner schedule.
type Seen = (u32, Option<Duration>);

/// A schedule that waits 1 s, 2 s, 3 s, … and records its inputs.
#[derive(Debug, Clone, Default)]
struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
    told: Arc<Mutex<Vec<Told>>>,
    sent_at: SentAt,
}

/// An outcome as passed to an inner schedule, with the number that it drew.
#[derive(Debug, PartialEq)]
enum Told {
    Succeeded(SentAt, u64),
    Failed(SentAt, Failure, u64),
}

impl Schedule for Recorder {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        self.sent_at
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        self.told.lock().unwrap().push(Told::Succeeded(sent_at, random.next_u64()));
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        self.told.lock().unwrap().push(Told::Failed(sent_at, *failure, random.next_u64()));
    }
}

impl Delays for Recorder {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        self.seen.lock().unwrap().push((retry.number, retry.previous));
        Some(secs(u64::from(retry.number) + 1))
    }
}

/// A random source that always draws the same number.
struct Always(u64);

impl Random for Always {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// A random source that steps evenly through all numbers, in scattered order.
struct Weyl(u64);

impl Random for Weyl {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

fn retry(number: u32) -> NextRetry {
    NextRetry::new(number, Failure::new(FailureKind::Server))
}

/// Returns the first delays of a call that is driven as by the engine; fewer if the schedule ends.
fn first(count: u32, schedule: &impl Schedule, random: &mut dyn Random) -> Vec<Duration> {
    let mut delays = schedule.delays();
    let mut previous = None;
    let next = |number| {
        previous = Some(delays.next_delay(&retry(number).after(previous), random)?);
        previous
    };
    (0..count).map_while(next).collect()
}

fn in_secs(count: u32, schedule: &impl Schedule) -> Vec<u64> {
    first(count, schedule, &mut Always(0)).iter().map(Duration::as_secs).collect()
}

#[test]
fn take_ends_after_so_many_retries() {
    let schedule = Recorder::default().take(3);
    assert_eq!(in_secs(9, &schedule), [1, 2, 3]);
    assert_eq!(in_secs(9, &Recorder::default().take(0)), []);
    assert_eq!(schedule.delays().next_delay(&retry(u32::MAX), &mut Always(0)), None);
    let endless = Recorder::default().take(u32::MAX);
    assert!(endless.delays().next_delay(&retry(u32::MAX - 1), &mut Always(0)).is_some());
}

#[test]
fn capped_and_floor_bound_the_result() {
    assert_eq!(in_secs(5, &Recorder::default().capped(secs(3))), [1, 2, 3, 3, 3]);
    assert_eq!(in_secs(5, &Recorder::default().floor(secs(3))), [3, 3, 3, 4, 5]);
}

#[test]
fn immediate_first_puts_one_retry_before() {
    let inner = Recorder::default();
    let schedule = inner.clone().immediate_first();
    assert_eq!(in_secs(4, &schedule), [0, 1, 2, 3]);
    assert_eq!(*inner.seen.lock().unwrap(), [(0, None), (1, Some(secs(1))), (2, Some(secs(2)))]);
    let last = schedule.delays().next_delay(&retry(u32::MAX), &mut Always(0));
    assert_eq!(last, Some(secs(u64::from(u32::MAX))));
    assert_eq!(in_secs(9, &Recorder::default().take(2).immediate_first()), [0, 1, 2]);
}

#[test]
fn then_restarts_numbering_for_second() {
    let second = Recorder::default();
    let schedule = Recorder::default().take(2).then(second.clone().take(3));
    assert_eq!(in_secs(9, &schedule), [1, 2, 1, 2, 3]);
    assert_eq!(second.seen.lock().unwrap()[..2], [(0, None), (1, Some(secs(1)))]);

    let three = Recorder::default().take(1).then(Recorder::default().take(2)).then(second.take(1));
    assert_eq!(in_secs(9, &three), [1, 1, 2, 1]);
    assert_eq!(in_secs(3, &Recorder::default().take(0).then(Recorder::default())), [1, 2, 3]);
}

#[test]
fn ended_first_schedule_is_not_asked_again() {
    #[derive(Clone)]
    struct Stuttering(u32);
    impl Schedule for Stuttering {
        type Delays = Self;
        fn delays(&self) -> Self {
            self.clone()
        }
    }
    impl Delays for Stuttering {
        fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
            self.0 += 1;
            (self.0 != 2).then_some(secs(9))
        }
    }
    let schedule = Stuttering(0).then(Recorder::default().take(2));
    assert_eq!(in_secs(9, &schedule), [9, 1, 2]);
}

#[test]
fn jittered_draws_from_range_of_its_form() {
    let symmetric = Jitter::symmetric(0.25);
    for (jitter, low, high) in [
        (Jitter::none(), 4000, 4000),
        (Jitter::full(), 0, 4000),
        (Jitter::equal(), 2000, 4000),
        (symmetric, 3000, 5000),
    ] {
        let schedule = Recorder::default().jittered(jitter);
        let fourth = |draw| first(4, &schedule, &mut Always(draw))[3].as_millis();
        assert_eq!((fourth(0), fourth(u64::MAX)), (low, high), "{jitter:?}");
    }
}

#[test]
fn jittered_means_of_many_draws() {
    let interval = secs(1);
    for (jitter, mean) in [(Jitter::full(), 0.5), (Jitter::equal(), 0.75), (Jitter::symmetric(0.3), 1.0)] {
        let mut random = Weyl(1);
        let sum: f64 = (0..100_000).map(|_| jitter.draw(interval, &mut random).as_secs_f64()).sum();
        assert!((sum / 100_000.0 - mean).abs() < 0.001, "{jitter:?}: {}", sum / 100_000.0);
    }
}

// trap 17
#[test]
fn cap_before_jitter_does_not_bunch() {
    let on_cap = |delays: Vec<Duration>| delays.iter().filter(|delay| **delay == secs(5)).count();
    let before = Recorder::default().capped(secs(5)).jittered(Jitter::full());
    assert_eq!(on_cap(first(10_000, &before, &mut Weyl(1))), 0);
    let after = Recorder::default().jittered(Jitter::full()).capped(secs(5));
    assert!(on_cap(first(10_000, &after, &mut Weyl(1))) > 9_900, "as its documentation says");
}

// trap 22
#[test]
fn jitter_of_longest_durations_is_in_range() {
    for interval in [Duration::ZERO, Duration::from_nanos(1), Duration::from_nanos(u64::MAX)]
        .into_iter()
        .chain([Duration::MAX - Duration::from_nanos(1), Duration::MAX])
    {
        for randomisation in [-0.0, 0.0, f64::MIN_POSITIVE, 0.5, 1.0 - f64::EPSILON, 1.0] {
            let (low, high) = Jitter::symmetric(randomisation).range(interval);
            assert!(low <= interval && interval <= high, "{randomisation} of {interval:?}");
        }
        for jitter in [Jitter::full(), Jitter::equal(), Jitter::symmetric(1.0)] {
            let (low, high) = jitter.range(interval);
            for draw in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!((low..=high).contains(&jitter.draw(interval, &mut Always(draw))));
            }
        }
    }
}

#[test]
fn randomisation_is_clamped_to_0_to_1() {
    for (randomisation, clamped) in [(-0.1, 0.0), (1.5, 1.0), (f64::INFINITY, 1.0), (f64::NAN, 0.0)] {
        assert_eq!(Jitter::symmetric(randomisation), Jitter::symmetric(clamped));
    }
}

/// Shared state works through every adapter, the erased type and the pointer.
// trap 10
#[test]
fn adapters_pass_admissions_and_outcomes() {
    let inner = Recorder { sent_at: SentAt(42), ..Recorder::default() };
    let other = Recorder::default();
    let failure = Failure::new(FailureKind::Throttled).with_code(429);
    let heard = [Told::Failed(SentAt(42), failure, 7), Told::Succeeded(SentAt(42), 7)];
    let pass = |schedule: SharedSchedule| {
        schedule.on_failure(schedule.on_send(), &failure, &mut Always(7));
        schedule.on_success(schedule.on_send(), &mut Always(7));
        assert_eq!(*inner.told.lock().unwrap(), heard);
        inner.told.lock().unwrap().clear();
    };
    pass(SharedSchedule::new(inner.clone()));
    pass(SharedSchedule::new(Arc::new(inner.clone())));
    pass(SharedSchedule::new(inner.clone().take(1)));
    pass(SharedSchedule::new(inner.clone().capped(secs(1))));
    pass(SharedSchedule::new(inner.clone().floor(secs(1))));
    pass(SharedSchedule::new(inner.clone().immediate_first()));
    pass(SharedSchedule::new(inner.clone().jittered(Jitter::full())));
    pass(SharedSchedule::new(inner.clone().then(other.clone())));
    pass(SharedSchedule::new(other.clone().then(inner.clone())));
    assert_eq!(other.told.lock().unwrap()[..2], heard);
    assert_eq!(other.told.lock().unwrap()[2..], heard);
}

/// A shared delay remains shared through every combinator.
#[test]
fn combinators_forward_that_delay_is_shared() {
    struct Shared;

    impl Schedule for Shared {
        type Delays = Shared;

        fn delays(&self) -> Shared {
            Shared
        }
    }

    impl Delays for Shared {
        fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
            Some(secs(1))
        }

        fn is_shared(&self) -> bool {
            true
        }
    }

    fn shared(schedule: impl Schedule, retry: u32) -> bool {
        let mut delays = schedule.delays();
        let retry = NextRetry::new(retry, Failure::new(FailureKind::Throttled));
        let _ = delays.next_delay(&retry, &mut Always(0));
        delays.is_shared()
    }

    let own = || Recorder::default().take(1);
    assert!(!shared(own(), 0));
    assert!(shared(Shared.take(2).capped(secs(9)).floor(secs(1)), 0));
    assert!(shared(Shared.jittered(Jitter::none()).immediate_first(), 1));
    assert!(shared(SharedSchedule::new(std::sync::Arc::new(Shared)), 0));
    assert!(!shared(own().then(Shared), 0));
    assert!(shared(own().then(Shared), 1));
    let throttled = |failure: &Failure| failure.kind() == FailureKind::Throttled;
    assert!(shared(own().for_failures(throttled, Shared), 0));
    assert!(!shared(Shared.for_failures(throttled, own()), 0));
}
