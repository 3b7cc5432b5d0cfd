//! Tests of the operations of Go's x/time/rate.

use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_core::guard::{End, Guard};

use super::ten;
use crate::guards::{HOST, NOW, SECOND, admit, at};

fn allowed(limit: &RateLimit, n: u32, millis: u64) -> bool {
    limit.allow_n_at(HOST, n, at(millis))
}

#[test]
fn burst_first_then_the_rate() {
    let limit = ten(2);
    let answers = [0, 0, 0, 100, 100, 199, 200, 1200].map(|millis| allowed(&limit, 1, millis));
    assert_eq!(answers, [true, true, false, true, false, false, true, true]);
    assert_eq!(limit.tokens_at(HOST, at(1200)), 1.0, "never more than the burst");
}

#[test]
fn several_tokens_or_none() {
    let limit = ten(5);
    assert!(!allowed(&limit, 6, 0), "more than the burst");
    assert!(allowed(&limit, 3, 0));
    assert!(!allowed(&limit, 3, 0));
    assert!(allowed(&limit, 2, 0), "a refusal takes nothing");
    assert!(allowed(&limit, 0, 0), "nothing can always be taken");
}

#[test]
fn every_interval_is_a_rate() {
    for (interval, rate) in [(2 * SECOND, 0.5), (SECOND / 4, 4.0), (Duration::from_nanos(1), 1e9)] {
        assert_eq!(Limit::every(interval).tokens_per_second(), rate);
    }
    let daily = RateLimit::new(Limit::every(SECOND * 86_400), 1);
    assert!(daily.allow_at(HOST, NOW));
    assert!(!daily.allow_at(HOST, NOW + SECOND * 86_400 - Duration::from_nanos(1)));
    assert!(daily.allow_at(HOST, NOW + SECOND * 86_400), "to the nanosecond");
    assert_eq!(Limit::every(Duration::ZERO), Limit::INFINITE);
    assert_eq!(Limit::of(2.5), Limit::every(Duration::from_millis(400)));
}

#[test]
fn reservations_queue_up() {
    let limit = ten(2);
    let delays = [0; 5].map(|_| limit.reserve_at(HOST, NOW).delay_at(NOW).as_millis());
    assert_eq!(delays, [0, 0, 100, 200, 300]);
    assert_eq!(limit.tokens_at(HOST, NOW), -3.0);
    let three = limit.reserve_n_at(HOST, 2, at(100));
    assert_eq!(three.delay_at(at(100)), SECOND * 4 / 10);
    assert_eq!(three.delay_at(at(500)), Duration::ZERO);
    let too_many = limit.reserve_n_at(HOST, 3, at(100));
    assert!(!too_many.ok());
    assert_eq!(too_many.delay_at(at(100)), Duration::MAX);
}

#[test]
fn cancel_returns_what_nothing_builds_upon() {
    let limit = ten(10);
    assert!(allowed(&limit, 10, 0));
    let mut first = limit.reserve_n_at(HOST, 7, NOW);
    let mut second = limit.reserve_n_at(HOST, 3, NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -10.0);
    first.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -6.0, "3 of 7 are built upon");
    second.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -3.0);
    second.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -3.0, "once");
}

#[test]
fn cancel_after_its_moment_returns_nothing() {
    let limit = ten(1);
    let mut used = limit.reserve_at(HOST, NOW);
    used.cancel_at(at(1));
    assert!(!allowed(&limit, 1, 1));
    let mut unused = limit.reserve_at(HOST, at(1));
    unused.cancel_at(at(1));
    assert!(allowed(&limit, 1, 100));
}

#[test]
fn cancel_at_once_returns_a_free_token() {
    let limit = ten(2);
    let (mut first, _second) = (limit.reserve_at(HOST, NOW), limit.reserve_at(HOST, NOW));
    first.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), 1.0);
}

// GUARDS G3: a reservation keeps its time; later calls follow the new rate.
#[test]
fn reservations_keep_their_moment() {
    let limit = ten(1);
    let reservations = [0; 3].map(|_| limit.reserve_at(HOST, NOW));
    limit.set_limit_at(HOST, Limit::per_second(1), NOW);
    let delays = reservations.each_ref().map(|one| one.delay_at(NOW).as_millis());
    assert_eq!(delays, [0, 100, 200]);
    assert_eq!(limit.reserve_at(HOST, NOW).delay_at(NOW), SECOND * 3);
    assert_eq!(limit.limit(HOST), Limit::per_second(1));
}

#[test]
fn burst_and_rate_change_from_now_on() {
    let limit = ten(4);
    limit.set_burst_at(HOST, 2, NOW);
    assert_eq!((limit.burst(HOST), limit.tokens_at(HOST, NOW)), (2, 2.0));
    limit.set_burst_at(HOST, 8, NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), 2.0, "a larger bucket is not fuller");
    assert_eq!(limit.tokens_at(HOST, at(100)), 3.0);
    limit.set_limit_at(HOST, Limit::per_second(100), at(100));
    assert_eq!(limit.tokens_at(HOST, at(110)), 4.0);
    assert_eq!(limit.burst("https://other.example"), 4, "one destination alone");
}

#[test]
fn reserving_until_a_deadline() {
    let limit = ten(1);
    assert!(limit.reserve_until_at(HOST, 1, NOW, NOW).ok());
    assert!(!limit.reserve_until_at(HOST, 1, NOW, at(99)).ok());
    assert!(limit.reserve_until_at(HOST, 1, NOW, at(100)).ok());
    assert_eq!(limit.tokens_at(HOST, NOW), -1.0, "what was not granted took nothing");
}

#[test]
fn infinite_rate_allows_all() {
    for burst in [0, 1] {
        let limit = RateLimit::new(Limit::INFINITE, burst);
        assert!((0..1000).all(|_| limit.allow_n_at(HOST, u32::MAX, NOW)));
        let mut reservation = limit.reserve_n_at(HOST, 10, NOW);
        assert!(reservation.ok() && reservation.delay_at(NOW).is_zero());
        reservation.cancel_at(NOW);
        limit.set_limit_at(HOST, Limit::per_second(10), NOW);
        assert_eq!(limit.allow_at(HOST, NOW), burst == 1);
    }
}

#[test]
fn zero_rate_allows_the_burst_alone() {
    let limit = RateLimit::new(Limit::ZERO, 2);
    assert!(limit.allow_n_at(HOST, 2, NOW));
    assert!(!limit.allow_at(HOST, Duration::MAX));
    assert!(!limit.reserve_at(HOST, Duration::MAX).ok(), "no time adds it");
    let nothing = ten(0);
    assert!(!nothing.allow_at(HOST, at(10_000)) && !nothing.reserve_at(HOST, at(10_000)).ok());
}

// Rates whose period does not divide a second lose nothing: not a millionth in a million steps.
#[test]
fn no_fraction_is_lost() {
    let limit = RateLimit::new(Limit::of(0.3), 1_000_000);
    assert!(limit.allow_n_at(HOST, 1_000_000, NOW));
    for step in 1..=1_000_000 {
        limit.allow_n_at(HOST, 0, NOW + Duration::from_nanos(10_007) * step);
    }
    let elapsed = 10.007;
    assert_eq!(limit.tokens_at(HOST, NOW + Duration::from_nanos(10_007_000_000)), 3.0021);
    assert!((elapsed * 0.3 - 3.0021_f64).abs() < 1e-9);
}

/// The remainder of a division is kept, over any period.
#[test]
fn no_nanosecond_is_lost() {
    let limit = RateLimit::new(Limit::per_second(3), 100_000);
    assert!(allowed(&limit, 100_000, 0));
    let soon = NOW + Duration::from_nanos(1);
    assert!(limit.allow_n_at(HOST, 0, soon));
    let late = NOW + SECOND * 7200 + Duration::from_nanos(1000);
    assert_eq!(limit.tokens_at(HOST, late), 21_600.000_003);
    assert_eq!(limit.reserve_at(HOST, soon).delay_at(NOW), Duration::from_nanos(333_333_334));
}

#[test]
fn infinite_rate_takes_nothing_ahead() {
    let limit = RateLimit::new(Limit::INFINITE, 1);
    assert!((0..5).all(|_| limit.reserve_at(HOST, NOW).ok()));
    limit.set_limit_at(HOST, Limit::per_second(1), NOW);
    assert!(limit.allow_at(HOST, NOW));
}

/// An available token needs no time.
#[test]
fn token_at_hand_is_taken_past_the_deadline() {
    let limit = ten(1);
    assert!(limit.reserve_until_at(HOST, 1, NOW, NOW - SECOND).ok());
    assert!(!limit.reserve_until_at(HOST, 1, NOW, NOW - SECOND).ok());
}

/// Cancelling a reservation takes all later tokens into account, including those of cancelled reservations.
// G-13
#[test]
fn cancelling_two_refills_once() {
    let limit = ten(5);
    assert!(limit.allow_n_at(HOST, 5, NOW));
    let [mut first, _second, mut third, _fourth] = [5, 1, 5, 1].map(|n| limit.reserve_n_at(HOST, n, NOW));
    third.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -8.0);
    first.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -8.0, "seven were taken after its five");
}

#[test]
fn cancelling_backwards_returns_all() {
    let limit = ten(5);
    let mut reserved = [5, 1, 5, 1].map(|n| limit.reserve_n_at(HOST, n, NOW));
    reserved.iter_mut().rev().for_each(|one| one.cancel_at(NOW));
    assert_eq!(limit.tokens_at(HOST, NOW), 5.0);
}

/// If the burst has shrunk since, the returned tokens leave room for the reservation that was made later.
#[test]
fn cancel_returns_no_more_than_the_burst() {
    let limit = ten(10);
    assert!(limit.allow_n_at(HOST, 10, NOW));
    let mut large = limit.reserve_n_at(HOST, 10, NOW);
    limit.set_burst_at(HOST, 1, NOW);
    let small = limit.reserve_at(HOST, NOW);
    large.cancel_at(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), -11.0);
    assert_eq!(small.delay_at(NOW), SECOND * 11 / 10);
}

/// If a reservation is cancelled twice, tokens that another reservation at the same time depends on are not released.
// G-13
#[test]
fn cancelling_twice_breaks_no_promise() {
    let limit = ten(1);
    let unsent = admit(&limit, NOW).unwrap();
    let mut cancelled = limit.reserve_at(HOST, NOW);
    cancelled.cancel_at(NOW);
    let kept = limit.reserve_at(HOST, NOW);
    cancelled.cancel_at(NOW);
    assert!(limit.end_ticket(unsent, &End::Unsent, NOW).is_none());
    assert_eq!(kept.delay_at(NOW), SECOND / 10);
    assert!(!limit.allow_at(HOST, at(100)), "the token of that moment is the reservation's");
}
