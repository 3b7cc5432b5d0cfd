//! Tests of other libraries' defects, and of bad input.

use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Wake, Waker};
use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Reason};

use super::ten;
use crate::guards::{HOST, NOW, SECOND, admit, at, reason, wait};

/// A time before the latest one seen adds nothing.

// G-12, trap 21
#[test]
fn time_that_goes_back_mints_nothing() {
    let limit = ten(1);
    assert!(limit.allow_at(HOST, NOW));
    for _ in 0..3 {
        assert!(!limit.allow_at(HOST, Duration::ZERO));
        assert!(!limit.allow_at(HOST, NOW));
        assert!(!limit.allow_at(HOST, at(99)));
    }
    assert!(limit.allow_at(HOST, at(100)));
    assert!(!limit.allow_at(HOST, at(100)), "time stands still");
    assert_eq!(limit.reserve_at(HOST, Duration::ZERO).delay_at(at(100)), SECOND / 10);
}

/// No window of one second admits more than the burst plus the tokens of a second.
// G-13
#[test]
fn no_double_burst_at_a_windows_edge() {
    let limit = ten(10);
    let mut allowed = Vec::new();
    // An idle start, then as many calls as possible around the edge of each second.
    for millis in 900..5000 {
        while limit.allow_at(HOST, at(millis)) {
            allowed.push(millis);
        }
    }
    let most =
        allowed.iter().map(|from| allowed.iter().filter(|millis| (*from..from + 1000).contains(*millis)).count());
    assert_eq!(most.max(), Some(10 + 9));
    let half_a_second = allowed.iter().filter(|millis| (900..1100).contains(*millis)).count();
    assert_eq!(half_a_second, 10 + 1);
}

/// Clones share the limit, but setters and other destinations do not.
// G-9
#[test]
fn clones_share_and_destinations_do_not() {
    let limit = ten(1);
    assert!(limit.clone().allow_at(HOST, NOW));
    assert!(!limit.clone().allow_at(HOST, NOW));
    assert!(limit.allow_at("https://other.example", NOW));
    let shared = ten(1).shared(true);
    assert!(shared.allow_at(HOST, NOW));
    assert!(!shared.allow_at("https://other.example", NOW), "by choice");
}

/// New settings keep the tokens.
// G-19
#[test]
fn state_survives_replaced_settings() {
    let limit = ten(3);
    assert!(limit.allow_n_at(HOST, 2, NOW) && limit.allow_at("b", NOW));
    limit.set_limit_at("b", Limit::per_second(7), NOW);
    limit.replace_settings(&RateLimit::new(Limit::per_second(1), 2).no_queue());
    assert_eq!(limit.tokens_at(HOST, NOW), 1.0);
    assert_eq!(limit.tokens_at(HOST, NOW + SECOND / 2), 1.5);
    assert_eq!(limit.limit("b"), Limit::per_second(7), "its own");
    assert_eq!(limit.tokens_at("newcomer", NOW), 2.0);
    admit(&limit, NOW).unwrap();
    let arrival = Arrival::new(HOST, NOW);
    assert_eq!(reason(limit.would_admit(&arrival)), Reason::RateExceeded, "no queue");
}

/// A rate that is set for one destination stays its own, even if all others have the same rate at the time.
// G-19
#[test]
fn rate_set_to_the_common_one_is_its_own() {
    let limit = ten(1);
    limit.set_limit_at(HOST, Limit::per_second(10), NOW);
    limit.follow_at("b", 0, SECOND, NOW);
    limit.replace_settings(&RateLimit::new(Limit::per_second(20), 1));
    assert_eq!(limit.limit(HOST), Limit::per_second(10));
    assert_eq!(limit.limit("b"), Limit::per_second(20), "following sets no rate");
}

/// Destinations beyond the bound use no memory (even a million), and one that is not full stays.
// G-20
#[test]
fn destinations_stay_within_the_bound() {
    let limit = ten(1).max_destinations(8);
    assert!(limit.allow_at(HOST, NOW));
    let allowed = (0..100_000_u32)
        .filter(|number| limit.allow_at(&format!("host-{number}"), NOW + Duration::from_nanos(u64::from(*number))))
        .count();
    assert_eq!(allowed, 7 + 1, "the others share one");
    assert!(format!("{limit:?}").contains("destinations: 8"));
    assert!(!limit.allow_at(HOST, at(99)));
    assert!(limit.allow_at("newcomer", at(2000)), "full ones have left");
}

/// A waker may use the limit at once.
// G-5
#[test]
fn a_waker_may_use_the_limit() {
    struct Asking(OnceLock<RateLimit>, Mutex<Vec<f64>>);
    impl Wake for Asking {
        fn wake(self: Arc<Self>) {
            let limit = self.0.get().unwrap();
            self.1.lock().unwrap().push(limit.tokens_at(HOST, NOW));
            assert!(!limit.allow_at(HOST, NOW));
            assert!(limit.allow_at("https://newcomer.example", NOW));
        }
    }
    let limit = ten(9);
    limit.set_burst_at(HOST, 1, NOW);
    let asking = Arc::new(Asking(OnceLock::from(limit.clone()), Mutex::default()));
    admit(&limit, NOW).unwrap();
    let first = wait(&limit, NOW);
    let Admit::Waiting(mut ticket) = limit.admit(&Arrival::new(HOST, NOW)) else { panic!("not in the queue") };
    let waker = Waker::from(Arc::clone(&asking));
    limit.resume(&mut ticket, &Arrival::new(HOST, NOW), &waker);
    first.cancel(NOW);
    assert_eq!(*asking.1.lock().unwrap(), [-1.0]);
    limit.resume(&mut ticket, &Arrival::new(HOST, NOW), &waker);
    limit.set_burst_at(HOST, 2, NOW);
    limit.resume(&mut ticket, &Arrival::new(HOST, NOW), &waker);
    limit.replace_settings(&ten(9));
    assert_eq!(asking.1.lock().unwrap().len(), 3);
    assert!(limit.end_ticket(ticket, &End::Unsent, NOW).is_none());
}

#[test]
fn rates_outside_their_range() {
    for rate in [f64::NAN, -0.1, f64::NEG_INFINITY] {
        assert_eq!(Limit::of(rate), Limit::ZERO);
    }
    for rate in [1e-7, f64::MIN_POSITIVE] {
        assert_eq!(Limit::of(rate), Limit::of(1e-6));
    }
    assert_eq!(Limit::of(1e10), Limit::of(1e9));
    assert!(Limit::of(f64::INFINITY).is_infinite());
    assert_eq!(Limit::of(0.0), Limit::ZERO);
    assert_eq!(Limit::of(1e-6), Limit::every(SECOND * 1_000_000));
    assert_eq!(reason(admit(&ten(0), NOW)), Reason::TooLarge);
}

#[test]
fn extreme_rates_and_times() {
    let ages = RateLimit::new(Limit::every(Duration::MAX), u32::MAX);
    assert!(ages.allow_n_at(HOST, u32::MAX, NOW));
    assert!(!ages.allow_at(HOST, Duration::MAX));
    let fast = RateLimit::new(Limit::per_second(u32::MAX), u32::MAX);
    assert!(fast.allow_n_at(HOST, u32::MAX, NOW));
    assert!(fast.allow_n_at(HOST, u32::MAX, Duration::MAX));
    let slow = RateLimit::new(Limit::per_second(1), u32::MAX);
    assert!(slow.allow_n_at(HOST, u32::MAX, NOW));
    let granted = (0..10_000).filter(|_| slow.reserve_n_at(HOST, u32::MAX, NOW).ok()).count();
    assert_eq!(granted, 4, "then the moment is beyond 584 years");
    let patient = ten(1).queue(usize::MAX, Duration::MAX);
    admit(&patient, NOW).unwrap();
    wait(&patient, NOW).admitted(Duration::MAX);
}
