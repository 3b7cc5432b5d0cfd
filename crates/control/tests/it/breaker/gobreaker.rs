//! Tests of a counting breaker against the semantics of sony/gobreaker v2.4.0 (commit fed8e9e, v2/gobreaker.go and
//! v2/counter.go), one per rule. If we differ on purpose, the test explains why.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reattempt_control::BreakerState::{Closed, HalfOpen, Open};
use reattempt_control::{CircuitBreaker, Counts};
use reattempt_core::guard::Health::{Failed, Ignored, Served};
use reattempt_core::guard::{End, Guard, Reason};

use super::{HOST, NOW, SECOND, admit, call, calls, end_ticket, noting};

/// Returns requests, successes, failures, exclusions, consecutive successes and consecutive failures.
fn numbers(counts: Counts) -> [u32; 6] {
    [
        counts.requests,
        counts.total_successes,
        counts.total_failures,
        counts.total_exclusions,
        counts.consecutive_successes,
        counts.consecutive_failures,
    ]
}

fn counted(breaker: &CircuitBreaker) -> [u32; 6] {
    numbers(breaker.counts_at(HOST, Duration::ZERO))
}

/// Returns a breaker that opens at 60 % failures of at least 3 calls, for 90 s, and has three probes.
fn custom() -> CircuitBreaker {
    CircuitBreaker::counting().probes(3).interval(SECOND * 30).open_time(SECOND * 90).ready_to_trip(|counts| {
        let calls = counts.valid_requests();
        calls >= 3 && counts.total_failures * 10 >= calls * 6
    })
}

#[test]
fn defaults_trip_after_six_in_a_row() {
    let breaker = CircuitBreaker::counting();
    calls(&breaker, 5, Failed, NOW);
    assert_eq!((breaker.state_at(HOST, NOW), counted(&breaker)), (Closed, [5, 0, 5, 0, 0, 5]));
    calls(&breaker, 1, Served, NOW);
    assert_eq!(counted(&breaker), [6, 1, 5, 0, 1, 0]);
    calls(&breaker, 5, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!((breaker.state_at(HOST, NOW), counted(&breaker)), (Open, [0; 6]));
}

// gobreaker is still open at the exact end of its timeout. Here a call is admitted then, so that a retry that waits
// exactly as long as its refusal stated is not refused again.
#[test]
fn open_ends_after_sixty_seconds_by_default() {
    let breaker = CircuitBreaker::counting();
    calls(&breaker, 6, Failed, NOW);
    let refused = call(&breaker, Served, NOW + SECOND).unwrap_err();
    assert_eq!((refused.reason(), refused.wait()), (Reason::Open, Some(SECOND * 59)));
    assert_eq!(counted(&breaker), [0; 6], "a refused call is not counted");
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 60 - Duration::from_millis(1)), Open);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 60), HalfOpen);
}

#[test]
fn one_failed_probe_opens_it_again() {
    let breaker = CircuitBreaker::counting();
    calls(&breaker, 6, Failed, NOW);
    calls(&breaker, 1, Failed, NOW + SECOND * 60);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 119), Open, "60 s again: it does not grow");
    calls(&breaker, 1, Served, NOW + SECOND * 120);
    assert_eq!((breaker.state_at(HOST, NOW + SECOND * 120), counted(&breaker)), (Closed, [0; 6]));
}

#[test]
fn max_requests_successes_close_it() {
    let (breaker, noted) = noting(custom());
    calls(&breaker, 3, Failed, NOW);
    let later = NOW + SECOND * 90;
    calls(&breaker, 2, Served, later);
    assert_eq!((breaker.state_at(HOST, later), counted(&breaker)), (HalfOpen, [2, 2, 0, 0, 2, 0]));
    let probe = admit(&breaker, later).unwrap();
    assert_eq!(counted(&breaker), [3, 2, 0, 0, 2, 0]);
    assert_eq!(call(&breaker, Served, later).unwrap_err().reason(), Reason::TooManyRequests);
    end_ticket(&breaker, probe, Served, later);
    assert_eq!((breaker.state_at(HOST, later), counted(&breaker)), (Closed, [0; 6]));
    assert_eq!(*noted.lock().unwrap(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
}

#[test]
fn max_requests_of_zero_is_one() {
    let breaker = CircuitBreaker::counting().probes(0).open_time(Duration::ZERO);
    calls(&breaker, 6, Failed, NOW);
    let probe = admit(&breaker, NOW + SECOND * 60).unwrap();
    assert!(admit(&breaker, NOW + SECOND * 60).is_err());
    end_ticket(&breaker, probe, Served, NOW + SECOND * 60);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 60), Closed);
}

#[test]
fn excluded_calls_are_neutral_in_each_state() {
    let breaker = custom();
    calls(&breaker, 9, Ignored, NOW);
    assert_eq!((breaker.state_at(HOST, NOW), counted(&breaker)), (Closed, [9, 0, 0, 9, 0, 0]));
    calls(&breaker, 3, Failed, NOW);
    let later = NOW + SECOND * 90;
    calls(&breaker, 4, Ignored, later);
    assert_eq!((breaker.state_at(HOST, later), counted(&breaker)), (HalfOpen, [4, 0, 0, 4, 0, 0]));
    calls(&breaker, 3, Served, later);
    assert_eq!(breaker.state_at(HOST, later), Closed);
}

#[test]
fn exclusions_keep_the_runs() {
    let breaker = CircuitBreaker::counting();
    calls(&breaker, 2, Failed, NOW);
    calls(&breaker, 1, Ignored, NOW);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(counted(&breaker), [4, 0, 3, 1, 0, 3]);
}

#[test]
fn fixed_interval_clears_the_counts() {
    let breaker = custom();
    calls(&breaker, 1, Served, NOW);
    calls(&breaker, 1, Failed, NOW);
    calls(&breaker, 1, Served, NOW + SECOND * 29);
    assert_eq!(counted(&breaker), [3, 2, 1, 0, 1, 0]);
    calls(&breaker, 1, Failed, NOW + SECOND * 30);
    assert_eq!(counted(&breaker), [1, 0, 1, 0, 0, 1]);
}

#[test]
fn earlier_interval_result_is_discarded() {
    let breaker = custom();
    calls(&breaker, 1, Served, NOW);
    let late = admit(&breaker, NOW + SECOND * 29).unwrap();
    assert_eq!(counted(&breaker), [2, 1, 0, 0, 1, 0]);
    end_ticket(&breaker, late, Served, NOW + SECOND * 31);
    assert_eq!(counted(&breaker), [0; 6]);
}

#[test]
fn predicates_decide_what_counts() {
    let all = CircuitBreaker::counting().is_successful(|_| true);
    calls(&all, 6, Failed, NOW);
    assert_eq!(counted(&all), [6, 6, 0, 0, 6, 0]);
    let none = CircuitBreaker::counting().is_successful(|_| true).is_excluded(|health| health == Failed);
    calls(&none, 3, Failed, NOW);
    calls(&none, 1, Served, NOW);
    assert_eq!(counted(&none), [4, 1, 0, 3, 1, 0], "exclusion is asked first");
}

/// Returns a breaker with a window of 30 s in buckets of 3 s.
fn rolling() -> CircuitBreaker {
    custom().bucket_period(SECOND * 3)
}

#[test]
fn rolling_window_forgets_bucket_by_bucket() {
    let breaker = rolling();
    calls(&breaker, 2, Served, NOW);
    calls(&breaker, 1, Failed, NOW);
    calls(&breaker, 1, Served, NOW + SECOND * 3);
    calls(&breaker, 1, Served, NOW + SECOND * 27);
    assert_eq!(counted(&breaker), [5, 4, 1, 0, 2, 0]);
    calls(&breaker, 1, Served, NOW + SECOND * 30);
    assert_eq!(counted(&breaker), [3, 3, 0, 0, 3, 0]);
    calls(&breaker, 1, Served, NOW + SECOND * 60);
    assert_eq!(counted(&breaker), [1, 1, 0, 0, 1, 0]);
}

#[test]
fn rolling_window_shortens_leaving_runs() {
    let breaker = rolling();
    calls(&breaker, 4, Served, NOW);
    calls(&breaker, 2, Served, NOW + SECOND * 3);
    assert_eq!(counted(&breaker), [6, 6, 0, 0, 6, 0]);
    calls(&breaker, 1, Served, NOW + SECOND * 30);
    assert_eq!(counted(&breaker), [3, 3, 0, 0, 3, 0]);
}

#[test]
fn rolling_results_count_at_their_admission() {
    let breaker = rolling();
    let (early, lost) = (admit(&breaker, NOW).unwrap(), admit(&breaker, NOW).unwrap());
    calls(&breaker, 1, Served, NOW + SECOND * 15);
    end_ticket(&breaker, early, Served, NOW + SECOND * 15);
    assert_eq!(counted(&breaker), [3, 2, 0, 0, 2, 0]);
    end_ticket(&breaker, lost, Failed, NOW + SECOND * 31);
    assert_eq!(counted(&breaker), [1, 1, 0, 0, 1, 0]);
}

#[test]
fn rolling_interval_is_whole_buckets() {
    let breaker = custom().interval(SECOND * 7).bucket_period(SECOND * 3);
    calls(&breaker, 1, Served, NOW - SECOND * (1000 % 3));
    calls(&breaker, 1, Served, NOW - SECOND * (1000 % 3) + SECOND * 8);
    assert_eq!(counted(&breaker), [2, 2, 0, 0, 2, 0], "three buckets: 9 s");
}

/// A window has at most a thousand buckets, each with the length that was set.
#[test]
fn thousand_buckets_are_as_long_as_set() {
    let breaker = CircuitBreaker::counting().interval(SECOND).bucket_period(SECOND / 1000);
    let breaker = breaker.ready_to_trip(|counts| counts.total_failures > 1);
    calls(&breaker, 1, Failed, NOW);
    calls(&breaker, 1, Failed, NOW + SECOND);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND), Closed, "the first has gone");
}

#[test]
fn success_of_an_earlier_interval_is_gone() {
    let breaker = custom();
    calls(&breaker, 1, Served, NOW);
    let late = admit(&breaker, NOW).unwrap();
    calls(&breaker, 1, Served, NOW + SECOND * 30);
    end_ticket(&breaker, late, Served, NOW + SECOND * 31);
    assert_eq!(counted(&breaker), [1, 1, 0, 0, 1, 0]);
}

/// A success from before the buckets changed belongs to none of the new ones.
#[test]
fn success_of_former_buckets_is_gone() {
    let breaker = rolling();
    calls(&breaker, 1, Served, NOW);
    let late = admit(&breaker, NOW).unwrap();
    breaker.replace_settings(&custom().bucket_period(SECOND * 5));
    calls(&breaker, 1, Served, NOW);
    end_ticket(&breaker, late, Served, NOW);
    assert_eq!(counted(&breaker), [1, 1, 0, 0, 1, 0]);
}

#[test]
fn window_slides_after_a_closing() {
    let breaker = rolling();
    breaker.close_at(HOST, NOW);
    calls(&breaker, 1, Served, NOW);
    calls(&breaker, 1, Served, NOW + SECOND * 60);
    assert_eq!(counted(&breaker), [1, 1, 0, 0, 1, 0]);
}

/// A trip rule that closes the breaker does not open the state that follows.
#[test]
fn rule_that_closes_the_breaker_opens_none() {
    let slot: Arc<OnceLock<CircuitBreaker>> = Arc::default();
    let own = Arc::clone(&slot);
    let breaker = CircuitBreaker::counting().ready_to_trip(move |_| {
        own.get().unwrap().close_at(HOST, NOW);
        true
    });
    slot.set(breaker.clone()).unwrap();
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
}

/// Abandoned calls do not trigger the trip rule, because callers hang up for their own reasons.
#[test]
fn rule_is_not_asked_about_abandoned_calls() {
    let breaker = CircuitBreaker::counting().ready_to_trip(|_| true);
    for _ in 0..100 {
        let abandoned = End::Abandoned { after: SECOND };
        breaker.end_ticket(admit(&breaker, NOW).unwrap(), &abandoned, NOW);
    }
    assert_eq!((breaker.state_at(HOST, NOW), counted(&breaker)), (Closed, [100, 0, 0, 100, 0, 0]));
}

#[test]
fn success_at_its_intervals_end_is_gone() {
    let breaker = custom();
    let late = admit(&breaker, NOW).unwrap();
    end_ticket(&breaker, late, Served, NOW + SECOND * 30);
    assert_eq!(counted(&breaker), [0; 6]);
}
