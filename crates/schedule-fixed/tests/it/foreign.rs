//! Tests of unchanged schedules from other crates, through the adapter.

use core::time::Duration;

use crate::support::{first, next};
use backon::{BackoffBuilder, ConstantBuilder, ExponentialBuilder, FibonacciBuilder};
use reattempt_core::{Schedule, ScheduleExt, SharedSchedule};
use reattempt_schedule_fixed::Iterated;
use reattempt_testing::{ms, secs};
use tokio_retry::strategy::{ExponentialBackoff, FibonacciBackoff, FixedInterval};

#[test]
fn backon() {
    let exponential = ExponentialBuilder::new().with_min_delay(secs(1)).with_max_times(4);
    let schedule = Iterated::new(move || exponential.build());
    assert_eq!(first(9, &schedule), [1, 2, 4, 8].map(secs));
    // Every call gets its own iterator.
    assert_eq!(first(9, &schedule), [1, 2, 4, 8].map(secs));

    let constant = ConstantBuilder::new().with_delay(ms(30)).with_max_times(2);
    assert_eq!(first(9, &Iterated::new(move || constant.build())), [ms(30); 2]);
    let fibonacci = FibonacciBuilder::new().with_min_delay(ms(10)).with_max_times(5);
    assert_eq!(first(9, &Iterated::new(move || fibonacci.build())), [10, 10, 20, 30, 50].map(ms));
}

#[test]
fn tokio_retry() {
    let strategy = ExponentialBackoff::from_millis(10).max_delay(secs(2));
    let schedule = Iterated::new(move || strategy.clone());
    assert_eq!(first(4, &schedule), [10, 100, 1000, 2000].map(ms));
    let fibonacci = Iterated::new(|| FibonacciBackoff::from_millis(10).take(4));
    assert_eq!(first(9, &fibonacci), [10, 10, 20, 30].map(ms));
    let fixed = Iterated::new(|| FixedInterval::from_millis(5));
    assert_eq!(first(3, &fixed), [ms(5); 3]);
}

#[test]
fn foreign_schedules_combine_and_erase() {
    let backon = ExponentialBuilder::new().with_min_delay(secs(1)).with_max_times(2);
    let schedule = Iterated::new(move || backon.build()).then(Iterated::new(|| FixedInterval::from_millis(7))).take(4);
    assert_eq!(first(9, &SharedSchedule::new(schedule)), [1000, 2000, 7, 7].map(ms));
}

#[test]
fn any_iterator_will_do() {
    let squares = Iterated::new(|| (1..=3).map(|n| Duration::from_secs(n * n)));
    assert_eq!(first(9, &squares), [1, 4, 9].map(secs));
    assert_eq!(format!("{squares:?}"), "Iterated { .. }");
}

// trap 10
#[test]
fn calls_of_one_schedule_share_no_iterator() {
    let backon = ExponentialBuilder::new().with_min_delay(secs(1)).with_max_times(3);
    let schedule = Iterated::new(move || backon.build());
    let mut calls = [schedule.delays(), schedule.delays()];
    for expected in [Some(secs(1)), Some(secs(2)), Some(secs(4)), None] {
        for call in &mut calls {
            assert_eq!(next(call, 0), expected);
        }
    }
}
