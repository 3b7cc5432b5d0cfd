//! Two schedules with shared state in their shortest form, based on the contract alone. One paces all calls of a
//! client, and the other waits differently for each kind of failure.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{
    Delays, Failure, FailureKind, Jitter, NextRetry, Random, Schedule, ScheduleExt, SentAt, SharedSchedule,
};
use reattempt_schedule_exponential::{Exponential, ExponentialDelays};
use reattempt_schedule_fixed::Linear;
use reattempt_testing::{Always, Seeded, ms, secs};

/// One interval for all calls, which grows with throttled failures and shrinks with runs of successes.
#[derive(Debug, Clone)]
struct Responsive {
    pace: Arc<Mutex<Pace>>,
    up: f64,
    down: f64,
    jitter: Jitter,
    initial: Duration,
    longest: Duration,
    threshold: u32,
}

/// `moves` counts the moves in either direction. As a `SentAt`, it shows which moves an attempt has seen.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    run: u32,
    moves: u64,
    last_up: u64,
    last_down: u64,
}

impl Responsive {
    fn new(jitter: Jitter) -> Self {
        let pace = Pace { interval: Duration::ZERO, run: 0, moves: 0, last_up: 0, last_down: 0 };
        Self {
            pace: Arc::new(Mutex::new(pace)),
            up: 1.5,
            down: 0.6,
            jitter,
            initial: ms(1),
            longest: secs(900),
            threshold: 5,
        }
    }

    fn interval(&self) -> Duration {
        self.pace.lock().unwrap().interval
    }
}

impl Schedule for Responsive {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        SentAt(self.pace.lock().unwrap().moves)
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        let pace = &mut *self.pace.lock().unwrap();
        if pace.interval.is_zero() || sent_at.0 < pace.last_down {
            return;
        }
        pace.run += 1;
        if pace.run < self.threshold {
            return;
        }
        pace.run = 0;
        pace.moves += 1;
        pace.last_down = pace.moves;
        let next = self.jitter.draw(pace.interval.mul_f64(self.down), random);
        pace.interval = if next < self.initial { Duration::ZERO } else { next };
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        let pace = &mut *self.pace.lock().unwrap();
        if failure.kind() != FailureKind::Throttled || sent_at.0 < pace.last_up {
            return;
        }
        pace.run = 0;
        pace.moves += 1;
        pace.last_up = pace.moves;
        pace.interval = if pace.interval.is_zero() {
            self.initial
        } else {
            self.jitter.draw(pace.interval.mul_f64(self.up), random).clamp(self.initial, self.longest)
        };
    }
}

impl Delays for Responsive {
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        Some(self.interval())
    }
}

const THROTTLED: Failure = Failure::new(FailureKind::Throttled);

/// Reports a throttled attempt to the schedule, in the order that its contract requires.
fn throttled<S: Schedule>(
    schedule: &S,
    delays: &mut S::Delays,
    number: u32,
    sent_at: SentAt,
    random: &mut dyn Random,
) -> Option<Duration> {
    schedule.on_failure(sent_at, &THROTTLED, random);
    delays.next_delay(&NextRetry::new(number, THROTTLED).sent_at(sent_at), random)
}

/// Reports a call that succeeds at once.
fn succeed(schedule: &impl Schedule, random: &mut dyn Random) {
    schedule.on_success(schedule.on_send(), random);
}

#[test]
fn responsive_reaches_reference_and_returns() {
    let schedule = Responsive::new(Jitter::none());
    let mut delays = schedule.delays();
    let random = &mut Always(0);
    let waited = (0..15).map(|n| throttled(&schedule, &mut delays, n, schedule.on_send(), &mut Always(0)));
    // 1.5¹⁴ ms
    let last = waited.last().unwrap().unwrap();
    let reference = Duration::from_micros(291_929);
    assert!(last.abs_diff(reference) < Duration::from_micros(1), "{last:?}");

    for _ in 0..4 {
        succeed(&schedule, random);
    }
    assert_eq!(schedule.interval(), last, "four of five successes");
    succeed(&schedule, random);
    assert_eq!(schedule.interval(), last.mul_f64(0.6));
    for _ in 0..100 {
        succeed(&schedule, random);
    }
    assert_eq!(schedule.interval(), Duration::ZERO);
}

#[test]
fn responsive_takes_twenty_refusals_as_one() {
    let schedule = Responsive::new(Jitter::none());
    let random = &mut Always(0);
    let mut refused = |number, sent_at| throttled(&schedule, &mut schedule.delays(), number, sent_at, random);
    let admissions: Vec<_> = (0..20).map(|_| schedule.on_send()).collect();
    for sent_at in admissions {
        assert_eq!(refused(0, sent_at), Some(ms(1)));
    }
    assert_eq!(refused(1, schedule.on_send()), Some(Duration::from_micros(1500)));

    // Old successes: after a move down, those of calls sent before it do not count.
    let old: Vec<_> = (0..20).map(|_| schedule.on_send()).collect();
    for sent_at in old {
        schedule.on_success(sent_at, random);
    }
    assert_eq!(schedule.interval(), Duration::ZERO, "1.5 ms · 0.6 is below the initial interval");
    assert_eq!(schedule.pace.lock().unwrap().moves, 3, "up, up and down once");

    // The same from an interval that could shrink more than once.
    for number in 0..10 {
        throttled(&schedule, &mut schedule.delays(), number, schedule.on_send(), random);
    }
    let high = schedule.interval();
    let old: Vec<_> = (0..20).map(|_| schedule.on_send()).collect();
    for sent_at in old {
        schedule.on_success(sent_at, random);
    }
    assert_eq!(schedule.interval(), high.mul_f64(0.6));
}

#[test]
fn responsive_moves_with_throttled_only() {
    let schedule = Responsive::new(Jitter::none());
    let random = &mut Always(0);
    schedule.on_failure(schedule.on_send(), &THROTTLED, random);
    schedule.on_failure(schedule.on_send(), &THROTTLED, random);
    assert_eq!(schedule.interval(), Duration::from_micros(1500));
    schedule.on_failure(schedule.on_send(), &Failure::new(FailureKind::Network), random);
    assert_eq!(schedule.interval(), Duration::from_micros(1500));
}

#[test]
fn responsive_draws_from_the_calls_random() {
    let moved = |draw| {
        let mut schedule = Responsive::new(Jitter::symmetric(0.2));
        schedule.initial = ms(100);
        let random = &mut Always(draw);
        schedule.on_failure(schedule.on_send(), &THROTTLED, random);
        schedule.on_failure(schedule.on_send(), &THROTTLED, random);
        let up = schedule.interval();
        schedule.pace.lock().unwrap().interval = secs(1);
        for _ in 0..5 {
            succeed(&schedule, random);
        }
        (up, schedule.interval())
    };
    // 150 ms and 600 ms, each up to a fifth less or more.
    assert_eq!(moved(0), (ms(120), ms(480)));
    assert_eq!(moved(u64::MAX), (ms(180), ms(720)));
}

#[test]
fn responsive_works_adapted_and_erased() {
    let schedule = Responsive::new(Jitter::symmetric(0.3));
    let adapted = SharedSchedule::new(schedule.clone().immediate_first().take(9).capped(secs(1)));
    let mut delays = adapted.delays();
    let random = &mut Seeded::new(1);
    let mut refused = |number| throttled(&adapted, &mut delays, number, adapted.on_send(), random);
    assert_eq!(refused(0), Some(Duration::ZERO));
    assert_eq!(schedule.interval(), ms(1), "told of the failure, though not asked for a delay");
    for number in 1..9 {
        assert_eq!(refused(number), Some(schedule.interval()));
    }
    assert_eq!(refused(9), None);
    assert!(schedule.interval() > ms(3));
    for _ in 0..500 {
        succeed(&adapted, random);
    }
    assert_eq!(schedule.interval(), Duration::ZERO);
}

/// The rules for reconnecting streams. The counts are in a handle, because a stream outlives its calls.
#[derive(Debug, Clone)]
struct Reconnect(Arc<Mutex<Kinds>>);

#[derive(Debug)]
struct Kinds {
    reconnected: bool,
    network: Counted<Linear>,
    http: Counted<ExponentialDelays>,
    throttled: Counted<ExponentialDelays>,
}

/// A schedule's state and its own count of retries.
#[derive(Debug)]
struct Counted<D> {
    delays: D,
    number: u32,
}

impl<D: Delays> Counted<D> {
    fn new<S: Schedule<Delays = D>>(schedule: &S) -> Self {
        Self { delays: schedule.delays(), number: 0 }
    }

    fn next(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let own = NextRetry::new(self.number, retry.failure).after(retry.previous);
        self.number = self.number.saturating_add(1);
        self.delays.next_delay(&own, random)
    }
}

impl Kinds {
    fn new() -> Self {
        Self {
            reconnected: false,
            network: Counted::new(&Linear::new(ms(250)).max_delay(secs(16))),
            http: Counted::new(&Exponential::no_jitter(secs(5)).max_delay(secs(320))),
            throttled: Counted::new(&Exponential::no_jitter(secs(60)).no_max_delay()),
        }
    }
}

impl Schedule for Reconnect {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_success(&self, _: SentAt, _: &mut dyn Random) {
        *self.0.lock().unwrap() = Kinds::new();
    }
}

impl Delays for Reconnect {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let kinds = &mut *self.0.lock().unwrap();
        if !std::mem::replace(&mut kinds.reconnected, true) {
            return Some(Duration::ZERO);
        }
        match (retry.failure.kind(), retry.failure.code()) {
            (_, Some(420)) => kinds.throttled.next(retry, random),
            (_, Some(_)) => kinds.http.next(retry, random),
            (_, None) => kinds.network.next(retry, random),
        }
    }
}

#[test]
fn each_failure_counts_until_success() {
    let network = Failure::new(FailureKind::Network);
    let http = Failure::new(FailureKind::Server).with_code(503);
    let throttled = Failure::new(FailureKind::Throttled).with_code(420);
    let stream = Reconnect(Arc::new(Mutex::new(Kinds::new())));
    // Each failure belongs to a new call, whose own numbering begins at 0.
    let wait = |failure| {
        let delay = stream.delays().next_delay(&NextRetry::new(0, failure), &mut Always(0));
        delay.unwrap().as_millis()
    };

    assert_eq!(wait(http), 0, "the first reconnect is at once");
    assert_eq!([wait(network), wait(network)], [250, 500]);
    assert_eq!([wait(http), wait(http), wait(http)], [5_000, 10_000, 20_000]);
    assert_eq!([wait(throttled), wait(throttled)], [60_000, 120_000]);
    assert_eq!([wait(network), wait(http)], [750, 40_000], "none has moved another");
    for _ in 0..70 {
        wait(network);
        wait(http);
        wait(throttled);
    }
    assert_eq!([wait(network), wait(http)], [16_000, 320_000]);
    assert!(wait(throttled) > 1 << 60, "no cap");

    stream.on_success(SentAt::default(), &mut Always(0));
    assert_eq!([wait(network), wait(http)], [0, 5_000], "a success resets all");
    assert_eq!(wait(network), 250);
}
