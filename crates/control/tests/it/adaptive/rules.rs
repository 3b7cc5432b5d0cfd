//! Tests of the rules against servers with known capacity.

use std::time::Duration;

use reattempt_control::{AdaptiveLimit, Aimd, Gradient2, LimitRule, LimitWindow, Vegas};

use super::{Server, limit_of};
use crate::guards::NOW;

fn window(served: u32, dropped: u32, millis: u64, in_flight: u32) -> LimitWindow {
    let mut window = LimitWindow::default();
    (window.served, window.dropped, window.in_flight) = (served, dropped, in_flight);
    window.latency = (served > 0).then(|| Duration::from_millis(millis));
    window
}

/// Returns the limits after each window, beginning at `limit`.
fn limits<R: LimitRule>(mut rule: R, mut limit: f64, windows: &[LimitWindow]) -> Vec<f64> {
    let moved = windows.iter().map(|window| {
        limit = rule.next_limit(limit, window);
        (limit * 100.0).round() / 100.0
    });
    moved.collect()
}

#[test]
fn aimd_moves_once_a_window() {
    let windows = [window(100, 0, 1, 20), window(99, 1, 1, 20), window(0, 50, 0, 20)];
    assert_eq!(limits(Aimd::new(), 20.0, &windows), [21.0, 18.9, 17.01]);
    let halving = Aimd::new().backoff(0.5);
    assert_eq!(limits(halving, 20.0, &windows), [21.0, 10.5, 5.25]);
    for (factor, clamped) in [(f64::NAN, 0.5), (0.4, 0.5), (1.0, 0.999), (f64::INFINITY, 0.999)] {
        let (beyond, end) = (Aimd::new().backoff(factor), Aimd::new().backoff(clamped));
        assert_eq!(format!("{beyond:?}"), format!("{end:?}"));
    }
}

#[test]
fn vegas_keeps_the_queue_short() {
    // At 100, s is 2. Queues of 0, 5, 10 and 50 calls, then a dropped call, then an empty window.
    let quiet = window(100, 0, 100, 100);
    let latencies = [(105, 102.0), (111, 100.0), (200, 98.0)];
    for (millis, expected) in latencies {
        let limits = limits(Vegas::new(), 88.0, &[quiet, window(100, 0, millis, 100)]);
        assert_eq!(limits[0].round(), 100.0, "a step of six");
        assert_eq!(limits[1].round(), expected, "{millis} ms");
    }
    let dropped = limits(Vegas::new(), 100.0, &[window(99, 1, 100, 100), window(0, 0, 0, 0)]);
    assert_eq!(dropped, [98.0, 98.0]);
}

#[test]
fn gradient2_follows_the_trend() {
    let steady = [window(100, 0, 10, 20); 2];
    assert_eq!(limits(Gradient2::new(), 20.0, &steady), [20.8, 21.6]);
    let slower = limits(Gradient2::new(), 100.0, &[window(100, 0, 10, 99), window(100, 0, 30, 99)]);
    // The average is 20 ms, which gives two thirds.
    assert_eq!(slower, [100.8, 94.88]);
}

// GUARDS G5: unlike the original, Gradient2 counts drops.
#[test]
fn gradient2_counts_drops() {
    let windows = [window(50, 50, 10, 100), window(99, 1, 10, 100), window(0, 9, 0, 100)];
    assert_eq!(limits(Gradient2::new(), 100.0, &windows), [90.0, 89.82, 80.84]);
}

/// Halves and then doubles the capacity of a server that drops excess calls.
fn after_capacity_steps<R: LimitRule>(limit: &AdaptiveLimit<R>) -> [u32; 3] {
    let with = |places: u32| Server { most: places as usize * 2, ..Server::new(places, 100) };
    let mut now = NOW;
    [(40, 120), (10, 120), (40, 300)].map(|(places, seconds)| {
        now = with(places).serve(limit, 200, now, seconds);
        limit_of(limit)
    })
}

#[test]
fn limits_follow_the_capacity() {
    for (name, found) in [
        ("aimd", after_capacity_steps(&AdaptiveLimit::aimd())),
        ("vegas", after_capacity_steps(&AdaptiveLimit::vegas())),
        ("gradient2", after_capacity_steps(&AdaptiveLimit::gradient2())),
    ] {
        let [before, less, again] = found;
        // The capacity is 40 and then 10 calls, and as many again may queue.
        assert!((30..=90).contains(&before), "{name}: {found:?}");
        assert!((5..=25).contains(&less), "{name}: {found:?}");
        assert!((30..=90).contains(&again), "{name}: {found:?}");
    }
}

/// A baseline that was measured under load is renewed, so that the queue does not stay.
// G-17
#[test]
fn vegas_renews_a_baseline_under_load() {
    let limit = AdaptiveLimit::vegas().initial(60);
    // From the first call on, 50 calls more than the places wait in the server.
    let now = Server::new(10, 50).serve(&limit, 200, NOW, 10);
    assert!(limit_of(&limit) > 40);
    Server::new(10, 50).serve(&limit, 200, now, 300);
    assert!((10..=25).contains(&limit_of(&limit)), "{}", limit_of(&limit));
}

/// A baseline from a faster past is renewed too.
// G-17
#[test]
fn vegas_forgets_a_faster_past() {
    let limit = AdaptiveLimit::vegas();
    let now = Server::new(50, 50).serve(&limit, 200, NOW, 60);
    assert!(limit_of(&limit) >= 40);
    Server::new(50, 150).serve(&limit, 200, now, 240);
    assert!(limit_of(&limit) >= 40, "{}", limit_of(&limit));
}

#[test]
fn gradient2_forgets_an_overload() {
    let limit = AdaptiveLimit::gradient2();
    let now = Server::new(40, 200).serve(&limit, 30, NOW, 60);
    Server::new(40, 50).serve(&limit, 60, now, 60);
    assert!(limit_of(&limit) >= 40, "{}", limit_of(&limit));
}

/// The long average covers 600 windows, but a time of overload only a few.
#[test]
fn gradient2_averages_in_exact_steps() {
    let seconds = |seconds: f64, count: usize| {
        vec![window(100, 0, Duration::from_secs_f64(seconds).as_millis().try_into().unwrap(), 99); count]
    };
    let slower = limits(Gradient2::new(), 100.0, &[seconds(1.0, 10), seconds(1.5, 300)].concat());
    assert_eq!(slower.last(), Some(&29.15));
    let overloaded = [seconds(1.0, 10), seconds(0.1, 5), seconds(1.0, 2)].concat();
    assert_eq!(limits(Gradient2::new(), 100.0, &overloaded)[14..], [112.0, 103.47, 95.67]);
}

/// Each step has its bounds, and one window runs at half of the limit.
#[test]
fn vegas_moves_in_exact_steps() {
    // Each case starts at 8 or 100; the first window sets the baseline for the second.
    for (limit, base, current, step) in [
        (2.0, 250, 1000, 0.0),
        (2.0, 625, 1000, 0.0),
        (2.0, 250, 1010, -1.0),
        (2.0, 630, 1000, 1.0),
        (2.0, 875, 1000, 6.0),
        (88.0, 945, 1000, 2.0),
    ] {
        let windows = [window(100, 0, base, 100), window(100, 0, current, 100)];
        let moved = limits(Vegas::new(), limit, &windows);
        let [first, second] = moved[..] else { unreachable!() };
        assert_eq!((second - first).round(), step, "{limit} {base} {current}");
    }
    let many = vec![window(100, 0, 10, 1000); 32];
    let moved = limits(Vegas::new(), 100.0, &many);
    assert!((moved[29] - moved[28] / 2.0).abs() < 0.01, "half for one window: {moved:?}");
    assert_eq!(moved[30], moved[28]);
}

/// A ratio of up to twice the latency is kept, and a higher one is shortened.
#[test]
fn gradient2_keeps_a_trend_of_twice() {
    let windows = [3000, 1000, 2000].map(|millis| window(100, 0, millis, 99));
    assert_eq!(limits(Gradient2::new(), 100.0, &windows), [100.8, 101.6, 102.4]);
}
