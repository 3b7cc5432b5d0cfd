//! Tests of the means and bounds of every jitter, over a hundred thousand seeded draws each.

use core::time::Duration;

use reattempt_core::Schedule;
use reattempt_schedule_exponential::{Exponential, TruncatedExponential};
use reattempt_testing::{FailingCall, Seeded, first, ms};

const DRAWS: usize = 100_000;

/// Draws retry `number` of many fresh calls.
fn draws<S: Schedule>(schedule: &S, number: usize) -> Vec<f64> {
    let mut random = Seeded::new(7);
    let drawn = (0..DRAWS).map(|_| first(number + 1, schedule, &mut random)[number]);
    drawn.map(|delay| delay.as_secs_f64()).collect()
}

/// Checks that a sample is uniform over `low..=high`: its bounds, its mean and its tenths, each within five standard
/// deviations.
fn assert_uniform(sample: &[f64], low: f64, high: f64) {
    let count = sample.len() as f64;
    let width = high - low;
    let outside = sample.iter().find(|delay| !(low - 1e-9..=high + 1e-9).contains(*delay));
    assert_eq!(outside, None, "not within {low}..={high}");

    let mean = sample.iter().sum::<f64>() / count;
    let deviation = width / (12.0 * count).sqrt();
    let expected = low + width / 2.0;
    assert!((mean - expected).abs() < 5.0 * deviation, "mean {mean}, not {expected}");

    for tenth in 0..10 {
        let from = low + width * f64::from(tenth) / 10.0;
        let within = sample.iter().filter(|d| (from..from + width / 10.0).contains(*d)).count();
        let surplus = within as f64 - count / 10.0;
        assert!(surplus.abs() < 5.0 * (count * 0.09).sqrt(), "{within} in tenth {tenth}");
    }
}

/// Below the cap (1st and 3rd retry) and at it (8th), for a schedule from 100 ms to 1 s.
fn for_each_interval(check: impl Fn(usize, f64)) {
    for (number, interval) in [(0, 0.1), (2, 0.4), (7, 1.0)] {
        check(number, interval);
    }
}

#[test]
fn full_jitter_mean_is_half_the_interval() {
    let fast = Exponential::full_jitter(ms(100)).max_delay(ms(1000));
    // The same delays on another path: there is no fast path for so long a cap, or for a fractional factor.
    let slow = Exponential::full_jitter(ms(100)).max_delay(Duration::MAX);
    let fraction = Exponential::full_jitter(ms(100)).factor(1.5);
    for_each_interval(|number, t| assert_uniform(&draws(&fast, number), 0.0, t));
    assert_uniform(&draws(&slow, 2), 0.0, 0.4);
    assert_uniform(&draws(&fraction, 2), 0.0, 0.225);
}

#[test]
fn equal_jitter_mean_is_three_quarters() {
    let schedule = Exponential::equal_jitter(ms(100)).max_delay(ms(1000));
    for_each_interval(|number, t| assert_uniform(&draws(&schedule, number), t / 2.0, t));
}

#[test]
fn symmetric_jitter_mean_is_the_interval() {
    let schedule = Exponential::symmetric(ms(100), 0.3).max_delay(ms(1000));
    for_each_interval(|number, t| assert_uniform(&draws(&schedule, number), 0.7 * t, 1.3 * t));
}

#[test]
fn capped_symmetric_is_cut_before_draw() {
    let schedule = Exponential::symmetric(ms(100), 0.3).max_delay(ms(1000)).clamp_jitter();
    for_each_interval(|number, t| {
        assert_uniform(&draws(&schedule, number), 0.7 * t, (1.3 * t).min(1.0));
    });
}

#[test]
fn truncated_adds_half_a_second_on_average() {
    let schedule = TruncatedExponential::default();
    for (number, seconds) in [(0, 1.0), (4, 16.0)] {
        assert_uniform(&draws(&schedule, number), seconds, seconds + 1.0);
    }
}

/// The draws are uniform within their ranges, which depend on the previous delay.
#[test]
fn decorrelated_is_even_up_to_three_times() {
    let schedule = Exponential::decorrelated(ms(100)).max_delay(ms(2000));
    let mut random = Seeded::new(7);
    let mut call = FailingCall::new(&schedule);
    let mut previous = 0.1;
    let mut places = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let delay = call.next(&mut random).unwrap().as_secs_f64();
        let longest = f64::min(2.0, 3.0 * previous);
        places.push((delay - 0.1) / (longest - 0.1));
        previous = delay;
    }
    assert_uniform(&places, 0.0, 1.0);
}

#[test]
fn one_seed_gives_one_sequence() {
    let forms = [Exponential::full_jitter(ms(100)), Exponential::equal_jitter(ms(100))];
    for schedule in forms {
        let drawn = |seed| first(20, &schedule, &mut Seeded::new(seed));
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
