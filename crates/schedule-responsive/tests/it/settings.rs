//! Tests of the ranges of settings, and of the effect of settings on the bounds.

use core::time::Duration;

use crate::support::{accept, refuse};
use reattempt_schedule_responsive::{Responsive, ResponsiveMetrics};
use reattempt_testing::{Always, Never, ms, secs};

fn shown(pace: &Responsive) -> String {
    format!("{pace:?}")
}

#[test]
fn settings_are_clamped_to_their_ranges() {
    let pace = Responsive::new;
    let rows = [
        (pace().initial(Duration::ZERO), pace().initial(Duration::from_nanos(1))),
        (pace().max(Duration::ZERO), pace().max(Duration::from_nanos(1))),
        (pace().max(Duration::from_secs(20_000_000_000)), pace().max(Duration::from_nanos(u64::MAX))),
        (pace().up(0.99), pace().up(1.0)),
        (pace().up(f64::NAN), pace().up(1.0)),
        (pace().up(f64::INFINITY), pace().up(1000.0)),
        (pace().down(0.0), pace().down(0.001)),
        (pace().down(1.0), pace().down(0.999)),
        (pace().down(f64::NAN), pace().down(0.999)),
        (pace().randomisation(-0.1), pace().randomisation(0.0)),
        (pace().randomisation(1.1), pace().randomisation(1.0)),
        (pace().randomisation(f64::NAN), pace().randomisation(0.0)),
        (pace().threshold(0), pace().threshold(1)),
        (pace().threshold(8_388_608), pace().threshold(8_388_607)),
    ];
    for (beyond, end) in rows {
        assert_eq!(shown(&beyond), shown(&end));
        assert_ne!(shown(&end), shown(&pace()), "the end is no default");
    }
}

/// Of `initial` and `max`, the setter that was called last wins.
#[test]
fn crossed_bounds_move_each_other() {
    let pace = Responsive::new;
    assert_eq!(shown(&pace().initial(secs(901))), shown(&pace().max(secs(901)).initial(secs(901))));
    assert_eq!(shown(&pace().max(ms(499))), shown(&pace().initial(ms(499)).max(ms(499))));
}

#[test]
fn the_ends_of_what_is_allowed_are_allowed() {
    let pace = Responsive::new().max(Duration::from_nanos(u64::MAX));
    let pace = pace.initial(Duration::from_nanos(u64::MAX)).up(f64::MAX);
    let pace = pace.randomisation(1.0).max_randomisation(Duration::MAX);
    let pace = pace.down(f64::MIN_POSITIVE).threshold(1);
    for draw in [0, u64::MAX] {
        for _ in 0..3 {
            assert_eq!(refuse(&pace, &mut Always(draw)), Duration::from_nanos(u64::MAX));
        }
    }
    assert_eq!(accept(&pace, &mut Always(0)), Duration::ZERO);
}

#[test]
fn longest_run_is_counted() {
    let pace = Responsive::new().randomisation(0.0).threshold(8_388_607);
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
    let rebuilt = clone.up(2.0);
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
