//! Named profiles of other libraries and services, built from the existing schedules.

use core::time::Duration;

use reattempt_core::{Jitter, Schedule, ScheduleExt, SharedSchedule};
use reattempt_schedule_exponential::{Exponential, TruncatedExponential};
use reattempt_schedule_fixed::Linear;
use reattempt_testing::{bounds, ms, secs};

fn minutes(minutes: u64) -> Duration {
    secs(60 * minutes)
}

/// Returns the minimum and the maximum of the first delays, in milliseconds.
fn in_ms(count: usize, schedule: &impl Schedule) -> Vec<(u128, u128)> {
    let pairs = bounds(count, schedule).into_iter();
    pairs.map(|(low, high)| (low.as_millis(), high.as_millis())).collect()
}

#[test]
fn cenkalti_for_quick_medium_and_slow_calls() {
    let quick = Exponential::symmetric(ms(50), 0.5).max_delay(ms(150));
    assert_eq!(in_ms(4, &quick), [(25, 75), (50, 150), (75, 225), (75, 225)]);
    let medium = Exponential::symmetric(ms(100), 0.5).factor(1.5).max_delay(ms(500));
    assert_eq!(in_ms(5, &medium)[3..], [(168, 506), (250, 750)]);
    let slow = Exponential::symmetric(ms(100), 0.5).max_delay(secs(3));
    assert_eq!(in_ms(6, &slow)[4..], [(800, 2400), (1500, 4500)]);
}

#[test]
fn go_backoff() {
    let linear = Linear::new(ms(250)).max_delay(secs(16));
    assert_eq!(in_ms(65, &linear)[62..], [(15_750, 15_750), (16_000, 16_000), (16_000, 16_000)]);
    let exponential = Exponential::no_jitter(secs(5)).max_delay(secs(320));
    assert_eq!(in_ms(8, &exponential)[5..], [(160_000, 160_000), (320_000, 320_000), (320_000, 320_000)]);
    let endless = Exponential::no_jitter(minutes(1)).no_max_delay();
    assert_eq!(bounds(11, &endless)[10].0, minutes(1024));
    let full = Exponential::full_jitter(secs(30)).max_delay(minutes(10));
    assert_eq!(in_ms(6, &full)[4..], [(0, 480_000), (0, 600_000)]);
}

#[test]
fn retryablehttp() {
    let exponential = Exponential::no_jitter(secs(1)).max_delay(secs(30));
    assert_eq!(in_ms(6, &exponential)[4..], [(16_000, 16_000), (30_000, 30_000)]);
    // Linear with jitter: `n + 1` times a draw from 1 s to 30 s, that is 15.5 s ± 14.5 s.
    let linear = Linear::new(ms(15_500)).jittered(Jitter::symmetric(14.5 / 15.5));
    assert_eq!(in_ms(3, &linear), [(1_000, 30_000), (2_000, 60_000), (3_000, 90_000)]);
}

#[test]
fn aws_stripe_and_google() {
    let aws = Exponential::full_jitter(secs(1)).max_delay(secs(20));
    assert_eq!(in_ms(6, &aws)[4..], [(0, 16_000), (0, 20_000)]);
    let stripe = Exponential::full_jitter(ms(500)).max_delay(secs(4));
    assert_eq!(in_ms(4, &stripe), [(0, 500), (0, 1000), (0, 2000), (0, 4000)]);
    let google = in_ms(9, &TruncatedExponential::default());
    assert_eq!(google.len(), 5);
    assert_eq!(google[4], (16_000, 17_000));
}

/// Type-erased profiles have one type, so they can be chosen at run time.
#[test]
fn all_of_them_fit_one_type() {
    let profiles = [
        SharedSchedule::new(Exponential::symmetric(ms(500), 0.5).factor(1.5).max_delay(secs(60))),
        SharedSchedule::new(Exponential::decorrelated(ms(100))),
        SharedSchedule::new(TruncatedExponential::default()),
        SharedSchedule::new(Linear::new(ms(250)).max_delay(secs(16)).immediate_first()),
    ];
    let lowest = profiles.map(|profile| bounds(1, &profile)[0].0);
    assert_eq!(lowest, [ms(250), ms(100), secs(1), Duration::ZERO]);
}
