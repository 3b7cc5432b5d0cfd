//! Tests of intervals and ranges that are too long for 64 bits of nanoseconds.

use core::time::Duration;

use reattempt_core::{Jitter, Random};

/// A random source that always draws the same number.
struct Always(u64);

impl Random for Always {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 3600)
}

#[test]
fn symmetric_range_of_a_long_interval() {
    let half = Jitter::symmetric(0.5);
    assert_eq!(half.range(days(100)), (days(50), days(150)));
    assert_eq!(half.range(days(400_000)), (days(200_000), days(600_000)));
    // Both sides of the longest interval that a float represents in nanoseconds.
    for nanos in [(1_u64 << 52) - 2, 1 << 52, (1 << 52) + 2] {
        let (shortest, longest) = half.range(Duration::from_nanos(nanos));
        let error = shortest.abs_diff(Duration::from_nanos(nanos / 2));
        assert!(error <= Duration::from_micros(1), "{nanos}: {error:?}");
        assert_eq!(shortest + longest, Duration::from_nanos(nanos) * 2);
    }
}

/// With seconds as a float, the range would be off by a nanosecond.
#[test]
fn symmetric_range_is_exact_below_52_days() {
    let half = Jitter::symmetric(0.5);
    for (nanos, part) in [(1_000_000_001, 500_000_000), (4_000_000_123_456_789, 2_000_000_061_728_394)] {
        let shortest = Duration::from_nanos(nanos - part);
        assert_eq!(half.range(Duration::from_nanos(nanos)).0, shortest);
    }
}

#[test]
fn symmetric_range_of_the_longest_interval() {
    let whole = Jitter::symmetric(1.0);
    assert_eq!(whole.range(Duration::MAX), (Duration::ZERO, Duration::MAX));
    let none = Jitter::symmetric(0.0);
    assert_eq!(none.range(Duration::MAX), (Duration::MAX, Duration::MAX));
}

/// The range is 2⁶⁴ seconds, so each of the upper 34 bits of the number counts for 2³⁰ seconds.
#[test]
fn draw_from_the_widest_range() {
    let draw = |number| Always(number).between(Duration::ZERO, Duration::MAX);
    assert_eq!(draw(0), Duration::ZERO);
    assert_eq!(draw((1 << 30) - 1), Duration::ZERO);
    assert_eq!(draw(1 << 30), Duration::from_secs(1 << 30));
    assert_eq!(draw(5 << 40), Duration::from_secs(5 << 40));
    assert_eq!(draw(u64::MAX), Duration::from_secs(u64::MAX - (1 << 30) + 1));
    let low = Duration::from_secs(9);
    assert_eq!(Always(1 << 63).between(low, Duration::MAX).as_secs(), 9 + (1 << 63) - 5);
}

/// The ends of the range need more than 64 bits of nanoseconds, but its length does not.
#[test]
fn draw_from_a_late_range() {
    let low = Duration::from_secs(1 << 40);
    let high = low + Duration::from_nanos(3);
    for (quarter, number) in (0..4_u64).map(|quarter| (quarter, quarter << 62)) {
        assert_eq!(Always(number).between(low, high), low + Duration::from_nanos(quarter));
    }
    let long = low + Duration::from_millis(2500) - Duration::from_nanos(1);
    assert_eq!(Always(1 << 63).between(low, long), low + Duration::from_millis(1250));
}
