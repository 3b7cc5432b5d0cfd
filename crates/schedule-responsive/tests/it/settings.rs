//! Tests of refused settings with their error texts, and of the effect of settings on the bounds.

use core::time::Duration;

use crate::support::{accept, refuse};
use reattempt_core::ConfigError;
use reattempt_schedule_responsive::{Responsive, ResponsiveMetrics};
use reattempt_testing::{Always, Never, ms, secs};

fn refused(result: Result<Responsive, ConfigError>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn a_refused_setting_is_named() {
    let pace = Responsive::new;
    let rows = [
        (pace().initial(Duration::ZERO), "`initial` must be above 0 and at most `max`, but it is 0ns"),
        (pace().initial(secs(901)), "`initial` must be above 0 and at most `max`, but it is 901s"),
        (pace().max(ms(499)), "`max` must be from `initial` to 584 years, but it is 499ms"),
        (
            pace().max(Duration::from_secs(20_000_000_000)),
            "`max` must be from `initial` to 584 years, but it is 20000000000s",
        ),
        (pace().up(0.99), "`up` must be a finite number, 1 or above, but it is 0.99"),
        (pace().up(f64::NAN), "`up` must be a finite number, 1 or above, but it is NaN"),
        (pace().up(f64::INFINITY), "`up` must be a finite number, 1 or above, but it is inf"),
        (pace().up(-2.0), "`up` must be a finite number, 1 or above, but it is -2"),
        (pace().down(0.0), "`down` must be a number above 0 and below 1, but it is 0"),
        (pace().down(1.0), "`down` must be a number above 0 and below 1, but it is 1"),
        (pace().down(f64::NAN), "`down` must be a number above 0 and below 1, but it is NaN"),
        (pace().randomisation(-0.1), "`randomisation` must be a number from 0 to 1, but it is -0.1"),
        (pace().randomisation(1.1), "`randomisation` must be a number from 0 to 1, but it is 1.1"),
        (pace().randomisation(f64::NAN), "`randomisation` must be a number from 0 to 1, but it is NaN"),
        (pace().threshold(0), "`threshold` must be a number from 1 to 8388607, but it is 0"),
        (pace().threshold(8_388_608), "`threshold` must be a number from 1 to 8388607, but it is 8388608"),
    ];
    for (result, text) in rows {
        assert_eq!(refused(result), text);
    }
}

#[test]
fn the_ends_of_what_is_allowed_are_allowed() {
    let pace = Responsive::new().max(Duration::from_nanos(u64::MAX)).unwrap();
    let pace = pace.initial(Duration::from_nanos(u64::MAX)).unwrap().up(f64::MAX).unwrap();
    let pace = pace.randomisation(1.0).unwrap().max_randomisation(Duration::MAX);
    let pace = pace.down(f64::MIN_POSITIVE).unwrap().threshold(1).unwrap();
    for draw in [0, u64::MAX] {
        for _ in 0..3 {
            assert_eq!(refuse(&pace, &mut Always(draw)), Duration::from_nanos(u64::MAX));
        }
    }
    assert_eq!(accept(&pace, &mut Always(0)), Duration::ZERO);
}

#[test]
fn longest_run_is_counted() {
    let pace = Responsive::new().randomisation(0.0).unwrap().threshold(8_388_607).unwrap();
    refuse(&pace, &mut Never);
    refuse(&pace, &mut Never);
    for _ in 0..8_388_606 {
        accept(&pace, &mut Never);
    }
    assert_eq!(pace.interval(), ms(750));
    assert_eq!(accept(&pace, &mut Never), ms(675));
    assert_eq!(pace.metrics().times_down, 1);
}

// trap 10
#[test]
fn clones_share_interval_builds_do_not() {
    let pace = Responsive::new();
    let clone = pace.clone();
    refuse(&clone, &mut Never);
    assert_eq!(pace.interval(), ms(500));
    assert_eq!(pace.metrics(), clone.metrics());

    let other = Responsive::new();
    let rebuilt = clone.up(2.0).unwrap();
    for separate in [other, rebuilt] {
        assert_eq!(separate.interval(), Duration::ZERO);
        assert_eq!(separate.metrics(), ResponsiveMetrics::default());
    }
    assert_eq!(pace.interval(), ms(500), "a setter leaves what was shared as it was");
}

#[test]
fn what_users_hold_can_be_sent_and_shared() {
    fn send_sync_unpin<T: Send + Sync + Unpin + 'static>() {}
    send_sync_unpin::<Responsive>();
    send_sync_unpin::<ResponsiveMetrics>();
}
