//! Tests of defects that published schedules had.

use core::time::Duration;
use std::collections::HashSet;

use reattempt_core::Schedule;
use reattempt_schedule_exponential::Exponential;
use reattempt_testing::{Always, FailingCall, Seeded, first, ms, secs};

fn every_jitter(base: Duration) -> [Exponential; 3] {
    [Exponential::full_jitter(base), Exponential::equal_jitter(base), Exponential::symmetric(base, 0.5)]
}

// trap 10
#[test]
fn calls_of_one_schedule_share_no_state() {
    for schedule in [
        Exponential::no_jitter(ms(100)),
        Exponential::full_jitter(ms(100)),
        Exponential::no_jitter(ms(100)).factor(1.5),
    ] {
        let alone = first(4, &schedule, &mut Always(u64::MAX));
        let mut calls = [(); 3].map(|()| FailingCall::new(&schedule));
        for expected in alone {
            for call in &mut calls {
                assert_eq!(call.next(&mut Always(u64::MAX)), Some(expected));
            }
        }
        let late = FailingCall::new(&schedule).next(&mut Always(u64::MAX));
        assert_eq!(late, Some(ms(100)), "a call begins at the base, whatever others have done");
    }
}

// trap 10
#[test]
fn interleaved_calls_keep_own_last_delay() {
    let schedule = Exponential::decorrelated(ms(100)).max_delay(secs(60));
    let mut long = FailingCall::new(&schedule);
    for _ in 0..5 {
        long.next(&mut Always(u64::MAX));
    }
    assert_eq!(FailingCall::new(&schedule).next(&mut Always(u64::MAX)), Some(ms(300)));
    assert_eq!(long.next(&mut Always(u64::MAX)), Some(secs(60)));
}

// trap 17
#[test]
fn jitter_does_not_vanish_at_the_cap() {
    for schedule in every_jitter(ms(100)) {
        let delays = first(10_000, &schedule.max_delay(secs(5)), &mut Seeded::new(3));
        let at_the_cap: HashSet<_> = delays[6..].iter().collect();
        assert!(at_the_cap.len() > 9_900, "{schedule:?}: {} different delays", at_the_cap.len());
        let below = delays[6..].iter().filter(|delay| **delay < secs(4)).count();
        assert!(below > 2_000, "{schedule:?}: {below} of them below 4 s");
    }
}

// trap 17
#[test]
fn no_form_heaps_its_delays_on_the_cap() {
    let cap = secs(5);
    let symmetric = Exponential::symmetric(ms(100), 0.5).clamp_jitter();
    for schedule in every_jitter(ms(100)).into_iter().chain([symmetric]) {
        let delays = first(10_000, &schedule.max_delay(cap), &mut Seeded::new(4));
        assert!(on(cap, &delays) < 3, "{schedule:?}");
    }
    let decorrelated = Exponential::decorrelated(ms(100)).max_delay(cap);
    let delays = first(10_000, &decorrelated, &mut Seeded::new(4));
    assert!(on(cap, &delays) < 3, "a clamp after the draw puts most of them there");
}

fn on(cap: Duration, delays: &[Duration]) -> usize {
    delays.iter().filter(|delay| **delay == cap).count()
}

// trap 17
#[test]
fn jittered_delay_is_not_base_of_next() {
    for schedule in every_jitter(ms(100)) {
        let mut call = FailingCall::new(&schedule);
        for _ in 0..3 {
            call.next(&mut Always(0));
        }
        let untouched = first(4, &schedule, &mut Always(u64::MAX))[3];
        assert_eq!(call.next(&mut Always(u64::MAX)), Some(untouched));
        assert!(untouched >= ms(800), "{schedule:?}");
    }
}

// trap 22
#[test]
fn doubling_never_wraps() {
    // Beyond retries 63 and 64, and far beyond a float's exponent.
    for base in [Duration::from_nanos(1), ms(100), secs(5)] {
        for schedule in [Exponential::no_jitter(base), Exponential::full_jitter(base)] {
            let delays = first(3000, &schedule, &mut Always(u64::MAX));
            assert!(delays[33..].iter().all(|delay| *delay == secs(5)), "{schedule:?}");
        }
        let endless = first(3000, &Exponential::no_jitter(base).no_max_delay(), &mut Always(0));
        assert!(endless.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(endless[62], base.saturating_mul(1 << 31).saturating_mul(1 << 31));
        assert_eq!(endless[63], endless[62].saturating_mul(2));
        assert_eq!(endless[64], endless[63].saturating_mul(2));
        assert_eq!(endless[2999], Duration::MAX);
    }
}

// trap 22
#[test]
fn longest_durations_are_as_good_as_any() {
    let edges = [
        Duration::from_nanos(u64::MAX / 2),
        Duration::from_nanos(u64::MAX / 2 + 1),
        Duration::from_nanos(u64::MAX),
        Duration::from_secs(u64::MAX / 2 + 1),
        Duration::MAX - Duration::from_nanos(1),
        Duration::MAX,
    ];
    for base in edges {
        for schedule in every_jitter(base).into_iter().chain([Exponential::no_jitter(base)]) {
            for factor in [2.0, 1.5, f64::MAX, f64::MIN_POSITIVE] {
                let endless = schedule.no_max_delay().factor(factor);
                let capped = schedule.max_delay(base).factor(factor).clamp_jitter();
                for draw in [0, u64::MAX] {
                    assert_eq!(first(200, &endless, &mut Always(draw)).len(), 200);
                    let delays = first(200, &capped, &mut Always(draw));
                    assert!(delays.iter().all(|delay| *delay <= base), "{capped:?}");
                }
            }
        }
        let decorrelated = Exponential::decorrelated(base).no_max_delay();
        assert!(first(200, &decorrelated, &mut Always(u64::MAX)).iter().all(|d| *d >= base));
        assert_eq!(first(1, &decorrelated.max_delay(base), &mut Always(u64::MAX)), [base]);
    }
    let _ = Exponential::full_jitter(Duration::MAX).delays();
}
