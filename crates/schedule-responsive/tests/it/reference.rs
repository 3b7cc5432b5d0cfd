//! Tests of the reference's figures, and of what follows from its rules for one caller.

use core::time::Duration;

use crate::support::{THROTTLED, accept, of_the_check, refuse};
use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Schedule, ScheduleExt, SharedSchedule};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::{Always, Never, Seeded, ms, secs};

#[test]
fn fifteenth_failure_gives_291_929_ms() {
    let pace = of_the_check();
    let intervals: Vec<_> = (0..15).map(|_| refuse(&pace, &mut Never)).collect();
    assert_eq!(intervals[0], ms(1));
    assert_eq!(intervals[1], Duration::from_micros(1_500));
    assert_eq!(intervals[14].as_micros(), 291_929);
    assert_eq!(pace.metrics().times_up, 15);
}

/// Sends calls one interval apart to a service that serves calls at least 60 ms apart. Returns the intervals.
fn against_60_ms(pace: &Responsive, calls: usize) -> Vec<Duration> {
    let mut waited = pace.interval();
    (0..calls)
        .map(|_| {
            waited = if waited > ms(60) { accept(pace, &mut Never) } else { refuse(pace, &mut Never) };
            waited
        })
        .collect()
}

#[test]
fn interval_settles_around_60_ms() {
    let from_below = of_the_check();
    let from_above = of_the_check();
    while refuse(&from_above, &mut Never) < secs(1) {}
    for pace in [from_below, from_above] {
        let way = against_60_ms(&pace, 30);
        assert!(way[0] < ms(2) || way[0] > ms(900), "it comes from far off: {:?}", way[0]);
        let before = pace.metrics();
        let settled = against_60_ms(&pace, 600);
        // One step down from just above 60 ms, and one step up from just below.
        for interval in &settled {
            assert!((ms(36)..=ms(90)).contains(interval), "{interval:?}");
        }
        let mean = settled.iter().sum::<Duration>() / 600;
        assert!((ms(60)..=ms(80)).contains(&mean), "{mean:?}");
        // Five successes per step down, and 1.26 refusals to make up for it (ln 0.6 / ln 1.5): of 600 calls 121 are
        // refused.
        let after = pace.metrics();
        let ups = after.times_up - before.times_up;
        let downs = after.times_down - before.times_down;
        assert!(ups.abs_diff(121) <= 3 && downs.abs_diff(96) <= 3, "{ups} up, {downs} down");
    }
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let pace = Responsive::new();
    assert_eq!(
        format!("{pace:?}"),
        "Responsive { interval: 0ns, metrics: ResponsiveMetrics { invocations: 0, times_up: 0, \
         times_down: 0, times_slept: 0, total_slept: 0ns }, initial: 500ms, max: 900s, up: 1.5, \
         down: 0.9, randomisation: 0.3, max_randomisation: 120s, threshold: 10 }"
    );
    assert_eq!(refuse(&pace, &mut Always(0)), ms(500), "the first is not randomised");
    assert_eq!(refuse(&pace, &mut Always(0)), ms(525));
    assert_eq!(refuse(&Responsive::default(), &mut Always(7)), ms(500));
}

#[test]
fn randomised_two_seconds_are_1_6_to_2_4() {
    let moved = |random: &mut dyn reattempt_core::Random| {
        let pace = Responsive::new().initial(secs(1)).up(2.0).randomisation(0.2);
        refuse(&pace, random);
        refuse(&pace, random)
    };
    assert_eq!(moved(&mut Always(0)), ms(1_600));
    assert_eq!(moved(&mut Always(u64::MAX)), ms(2_400));
    assert_eq!(moved(&mut Always(1 << 63)), secs(2));
    let random = &mut Seeded::new(1);
    let drawn = (0..10_000).map(|_| moved(random)).collect::<Vec<_>>();
    assert!(drawn.iter().all(|drawn| (ms(1_600)..=ms(2_400)).contains(drawn)));
    for (low, high) in [(1_600, 1_700), (1_950, 2_050), (2_300, 2_400)] {
        let within = drawn.iter().filter(|drawn| (ms(low)..ms(high)).contains(drawn)).count();
        assert!((1_150..=1_350).contains(&within), "an eighth from {low} to {high}: {within}");
    }
}

#[test]
fn the_scatter_is_bounded_both_ways() {
    let moved = |draw| {
        let pace = Responsive::new().initial(secs(100)).up(2.0).down(0.75).threshold(1);
        let pace = pace.randomisation(0.5).max_randomisation(secs(3));
        refuse(&pace, &mut Always(draw));
        let up = refuse(&pace, &mut Always(draw));
        (up, accept(&pace, &mut Always(draw)))
    };
    assert_eq!(moved(0), (secs(197), Duration::from_nanos(144_750_000_000)));
    assert_eq!(moved(u64::MAX), (secs(203), Duration::from_nanos(155_250_000_000)));
}

#[test]
fn without_randomisation_nothing_is_drawn() {
    let none = [Responsive::new().randomisation(0.0), Responsive::new().max_randomisation(Duration::ZERO)];
    for pace in none {
        let pace = pace.threshold(1);
        assert_eq!(refuse(&pace, &mut Never), ms(500));
        assert_eq!(refuse(&pace, &mut Never), ms(750));
        assert_eq!(accept(&pace, &mut Never), ms(675));
    }
}

#[test]
fn successes_shorten_interval_down_to_0() {
    let pace = of_the_check();
    for _ in 0..15 {
        refuse(&pace, &mut Never);
    }
    let high = pace.interval();
    for _ in 0..4 {
        assert_eq!(accept(&pace, &mut Never), high);
    }
    assert_eq!(accept(&pace, &mut Never).as_micros(), 175_157);
    for _ in 0..4 {
        accept(&pace, &mut Never);
    }
    let raised = refuse(&pace, &mut Never);
    for _ in 0..4 {
        assert_eq!(accept(&pace, &mut Never), raised, "a refusal begins the run anew");
    }
    assert!(accept(&pace, &mut Never) < raised);
    for _ in 0..200 {
        accept(&pace, &mut Never);
    }
    assert_eq!(pace.interval(), Duration::ZERO);
    let downs = pace.metrics().times_down;
    accept(&pace, &mut Never);
    assert_eq!(pace.metrics().times_down, downs, "at 0 a success changes nothing");

    // Successes at an interval of 0 are not part of a run.
    refuse(&pace, &mut Never);
    refuse(&pace, &mut Never);
    for _ in 0..4 {
        assert!(!accept(&pace, &mut Never).is_zero());
    }
    assert!(accept(&pace, &mut Never).is_zero(), "0.9 ms is below 1 ms");
}

#[test]
fn default_descent_from_15_min_takes_25_h() {
    let pace = Responsive::new().randomisation(0.0);
    while refuse(&pace, &mut Never) < secs(900) {}
    let mut slept = Duration::ZERO;
    while !pace.interval().is_zero() {
        slept += pace.interval();
        accept(&pace, &mut Never);
    }
    assert_eq!(slept.as_secs() / 3600, 24);
    assert!(slept > secs(24 * 3600 + 3500), "{slept:?}");
}

#[test]
fn only_throttled_failures_count() {
    let pace = of_the_check();
    let kinds =
        [FailureKind::Connect, FailureKind::Network, FailureKind::Timeout, FailureKind::Server, FailureKind::Other];
    for kind in kinds {
        for code in [429, 503, 14] {
            pace.on_failure(pace.on_send(), &Failure::new(kind).with_code(code), &mut Never);
        }
    }
    assert_eq!(pace.interval(), Duration::ZERO);
    pace.on_failure(pace.on_send(), &THROTTLED.with_code(200), &mut Never);
    assert_eq!(pace.interval(), ms(1));
}

#[test]
fn retry_waits_at_least_initial_interval() {
    let pace = of_the_check();
    let mut delays = pace.delays();
    let other = Failure::new(FailureKind::Network);
    assert_eq!(delays.next_delay(&NextRetry::new(0, other), &mut Never), Some(ms(1)));
    for number in 0..20 {
        let interval = refuse(&pace, &mut Never);
        let delay = delays.next_delay(&NextRetry::new(number, THROTTLED), &mut Never);
        assert_eq!(delay, Some(interval));
    }
    let last = NextRetry::new(u32::MAX, other).after(Some(Duration::MAX));
    assert_eq!(delays.next_delay(&last, &mut Never), Some(pace.interval()));
}

#[test]
fn a_snapshot_has_every_figure() {
    let pace = of_the_check();
    let mut delays = pace.delays();
    for number in 0..3 {
        refuse(&pace, &mut Never);
        delays.next_delay(&NextRetry::new(number, THROTTLED), &mut Never);
    }
    for _ in 0..5 {
        accept(&pace, &mut Never);
    }
    pace.slept(secs(1));
    let metrics = pace.metrics();
    assert_eq!(metrics.invocations, 8);
    assert_eq!((metrics.times_up, metrics.times_down), (3, 1));
    assert_eq!(metrics.times_slept, 4);
    // 1 ms, 1.5 ms, 2.25 ms, and 1 s
    assert_eq!(metrics.total_slept, Duration::from_micros(1_004_750));
    pace.slept(Duration::MAX);
    assert_eq!(pace.metrics().total_slept, Duration::from_nanos(u64::MAX));
}

#[test]
fn interval_works_adapted_and_erased() {
    let pace = of_the_check();
    let adapted = SharedSchedule::new(pace.clone().immediate_first().take(9).capped(secs(1)));
    assert!(!adapted.is_stateless());
    let mut delays = adapted.delays();
    for number in 0..10 {
        let sent_at = adapted.on_send();
        adapted.on_failure(sent_at, &THROTTLED, &mut Never);
        let retry = NextRetry::new(number, THROTTLED).sent_at(sent_at);
        let expected = match number {
            0 => Some(Duration::ZERO),
            9 => None,
            _ => Some(pace.interval()),
        };
        assert_eq!(delays.next_delay(&retry, &mut Never), expected);
    }
    assert_eq!(pace.metrics().times_up, 10);
    for _ in 0..100 {
        adapted.on_success(adapted.on_send(), &mut Never);
    }
    assert_eq!(pace.interval(), Duration::ZERO);
}
