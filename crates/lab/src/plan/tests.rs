//! The figures compared with closed forms, where there are any.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    plan: Plan,
}

/// Returns the course of the only policy of a command line.
fn course(arguments: &[&str]) -> Course {
    let line = Line::try_parse_from([&["plan"], arguments].concat()).unwrap();
    line.plan.course(&line.plan.policies().unwrap()[0], 1)
}

fn near(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other.abs()
}

/// The sum of k uncapped delays that double is `base · (2ᵏ − 1)`.
#[test]
fn the_sum_of_doubling_delays() {
    let word = "exponential:base=10ms,jitter=none,cap=none,max_attempts=21,max_elapsed=none";
    let course = course(&[word, "-n", "20", "--calls", "3"]);
    assert_eq!(course.retries.len(), 20);
    for band in &course.retries {
        let sum = 0.010 * (2f64.powi(band.retry as i32) - 1.0);
        for waited in [band.waited_from, band.waited_to, band.waited_mean] {
            assert!(near(waited, sum, 1e-12), "{band:?} {sum}");
        }
        assert_eq!(band.reached, 1.0);
    }
    assert!(near(course.ending.seconds.mean, 0.010 * (2f64.powi(20) - 1.0), 1e-12));
}

/// Delays equal the cap from `n ≥ log_F(C/B)`, and are below it before.
#[test]
fn flat_from_the_logarithm_of_cap_and_base() {
    for (base, factor, cap) in [(0.1, 2.0, 5.0), (0.5, 1.5, 60.0), (0.05, 3.0, 4.05)] {
        let word = format!(
            "exponential:base={}ms,factor={factor},cap={}ms,jitter=none,max_attempts=40,max_elapsed=none",
            base * 1e3,
            cap * 1e3
        );
        let first_flat = f64::log(cap / base, factor);
        for band in &course(&[&word, "-n", "30", "--calls", "1"]).retries {
            let number = f64::from(band.retry) - 1.0;
            assert_eq!(band.to == cap, number >= first_flat - 1e-9, "{word} {band:?}");
        }
    }
}

/// The mean is half of the interval t with full jitter, three quarters with equal, all with
/// symmetric. The bounds are 0 to t, t/2 to t, and t(1−r) to t(1+r).
#[test]
fn the_means_and_bounds_of_the_jitters() {
    for (jitter, from, mean, to) in
        [("full", 0.0, 0.5, 1.0), ("equal", 0.5, 0.75, 1.0), ("symmetric,randomisation=0.3", 0.7, 1.0, 1.3)]
    {
        let word = format!("exponential:jitter={jitter},max_attempts=11,max_elapsed=none");
        let course = course(&[&word, "--calls", "20000"]);
        for band in &course.retries {
            let interval = (0.1 * 2f64.powi(band.retry as i32 - 1)).min(5.0);
            assert!((band.from - from * interval).abs() < 1e-8, "{jitter} {band:?}");
            assert!((band.to - to * interval).abs() < 1e-8, "{jitter} {band:?}");
            // Six standard deviations of the mean of 20,000 draws, each of at most interval · 0.29.
            assert!((band.mean - mean * interval).abs() < 0.0125 * interval, "{jitter} {band:?}");
        }
    }
}

/// The delays are `min(C, B + n·S)`; below the cap their sum has a closed form.
#[test]
fn the_delays_that_grow_by_a_step() {
    let word = "linear:base=100ms,step=50ms,cap=450ms,max_attempts=11,max_elapsed=none";
    let course = course(&[word, "--calls", "1"]);
    assert_eq!(course.retries.len(), 10);
    for band in &course.retries {
        let n = f64::from(band.retry) - 1.0;
        assert!(near(band.from, (0.1 + n * 0.05).min(0.45), 1e-9), "{band:?}");
        if n <= 7.0 {
            let sum = (n + 1.0) * 0.1 + 0.05 * n * (n + 1.0) / 2.0;
            assert!(near(band.waited_mean, sum, 1e-9), "{band:?} {sum}");
        }
    }
}

/// Each delay is between the base and three times the delay before, at most the cap.
#[test]
fn the_bounds_of_decorrelated_jitter() {
    let course = course(&["decorrelated:base=10ms,cap=500ms,max_attempts=9,max_elapsed=none"]);
    for band in &course.retries {
        assert!(near(band.from, 0.010, 1e-9), "{band:?}");
        assert!(near(band.to, (0.010 * 3f64.powi(band.retry as i32)).min(0.5), 1e-6), "{band:?}");
    }
    // The first is uniform from 10 to 30 ms. The next is from 10 ms to three times that, 60 ms in
    // the mean.
    assert!(near(course.retries[0].mean, 0.020, 0.01));
    assert!(near(course.retries[1].mean, 0.035, 0.02));
}

/// The profile `cenkalti` has the delays of its reference table.
#[test]
fn the_table_of_cenkalti() {
    let table = [
        (0.25, 0.75),
        (0.375, 1.125),
        (0.5625, 1.6875),
        (0.84375, 2.53125),
        (1.265625, 3.796875),
        (1.8984375, 5.6953125),
        (2.84765625, 8.54296875),
        (4.271484375, 12.814453125),
        (6.4072265625, 19.2216796875),
    ];
    let course = course(&["cenkalti", "-n", "9", "--calls", "100"]);
    for (band, (from, to)) in course.retries.iter().zip(table) {
        assert!(near(band.from, from, 1e-8) && near(band.to, to, 1e-8), "{band:?}");
    }
    assert_eq!(course.retries.len(), 9);
}

/// Google's delays are powers of two plus up to a second; five of them sum to 31 s and the random
/// parts.
#[test]
fn truncated_delays_end_by_themselves() {
    let course = course(&["truncated:max_attempts=none,max_elapsed=none"]);
    assert_eq!(course.retries.len(), 5);
    let last = &course.retries[4];
    assert_eq!((last.waited_from, last.waited_to), (31.0, 36.0));
    assert!(near(last.waited_mean, 33.5, 0.01));
    assert_eq!(course.ending.reasons.keys().collect::<Vec<_>>(), ["the schedule has ended"]);
}

/// A delay that would pass the limit is not waited for, and no later retry is shown.
#[test]
fn the_limit_on_elapsed_time() {
    let word = "constant:base=100ms,max_attempts=none,max_elapsed=350ms";
    let found = course(&[word, "--calls", "10"]);
    assert_eq!(found.retries.len(), 3);
    assert_eq!(found.ending.seconds.most, 0.3);
    let found = course(&[word, "--calls", "10", "--attempt-time", "30ms"]);
    assert_eq!((found.retries.len(), found.ending.retries.mean), (2, 2.0));
    assert!(near(found.ending.seconds.mean, 0.29, 1e-9), "three attempts and two delays");
    let reason = "the next delay would pass the limit on elapsed time";
    assert_eq!(found.ending.reasons.keys().collect::<Vec<_>>(), [reason]);
}

#[test]
fn delays_by_the_kind_of_failure() {
    let first = |failure: &str| {
        let course = course(&["twitter_streaming", "--failure", failure, "--calls", "1", "-n", "3"]);
        course.retries.iter().map(|band| band.to).collect::<Vec<_>>()
    };
    assert_eq!(first("503"), [0.0, 5.0, 10.0]);
    assert_eq!(first("network"), [0.0, 0.25, 0.5]);
    assert_eq!(first("420"), [0.0, 60.0, 120.0]);
    assert!(parse_failure("200").is_err() && parse_failure("often").is_err());
}
