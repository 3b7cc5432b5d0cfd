//! Tests of other libraries' defects, and of bad input.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use reattempt_control::BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
use reattempt_control::{BreakerTicket, CircuitBreaker};
use reattempt_core::guard::Health::{Failed, Served};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Reason};

use super::{HOST, NOW, SECOND, admit, admit_to, call, calls, end_ticket, noting, timeless};

/// A probe that never ends loses its place when its lease is over.
// G-1, trap 11
#[test]
fn a_lost_probe_does_not_wedge_it() {
    let breaker = timeless().consecutive_failures(5).spread(0);
    calls(&breaker, 5, Failed, NOW);
    let later = NOW + SECOND * 10;
    let _lost = admit(&breaker, later).unwrap();
    assert!(admit(&breaker, later + SECOND * 29).is_err());
    let probe = admit(&breaker, later + SECOND * 30).unwrap();
    end_ticket(&breaker, probe, Served, later + SECOND * 31);
    assert_eq!(breaker.state_at(HOST, later + SECOND * 31), Closed);
}

/// The lease limits how long a probe holds its place, but its result still counts.
// G-1, trap 51
#[test]
fn probe_past_its_lease_counts() {
    for (health, state) in [(Served, Closed), (Failed, Open)] {
        let breaker = timeless().consecutive_failures(5).spread(0);
        calls(&breaker, 5, Failed, NOW);
        let slow = admit(&breaker, NOW + SECOND * 10).unwrap();
        let _other = admit(&breaker, NOW + SECOND * 40).unwrap();
        end_ticket(&breaker, slow, health, NOW + SECOND * 50);
        assert_eq!(breaker.state_at(HOST, NOW + SECOND * 50), state);
    }
}

/// A server that takes 40 s per call closes the breaker with its first success, in either form.
// G-1, trap 51
#[test]
fn server_slower_than_a_lease_is_let_in() {
    for breaker in [timeless().consecutive_failures(6), CircuitBreaker::counting()] {
        let breaker = breaker.open_time(SECOND * 10);
        calls(&breaker, 6, Failed, NOW);
        let mut under_way = VecDeque::new();
        let mut refused = 0;
        for now in (0..3600).map(|second| NOW + SECOND * second) {
            while let Some((_, ticket)) = under_way.pop_front_if(|(due, _)| *due <= now) {
                end_ticket(&breaker, ticket, Served, now);
            }
            match admit(&breaker, now) {
                Ok(ticket) => under_way.push_back((now + SECOND * 40, ticket)),
                Err(_) => refused += 1,
            }
        }
        assert!(refused < 60, "{refused} of 3600 calls");
    }
}

/// If a layer allows an attempt more than 30 s, the probe keeps its place for that long.
// G-1, trap 51
#[test]
fn attempt_timeout_is_the_least_lease() {
    let breaker = timeless().consecutive_failures(5).spread(0);
    calls(&breaker, 5, Failed, NOW);
    let later = NOW + SECOND * 10;
    let mut arrival = Arrival::new(HOST, later);
    arrival.timeout = Some(SECOND * 100);
    assert!(matches!(breaker.admit(&arrival), Admit::Admitted(_)));
    assert!(admit(&breaker, later + SECOND * 99).is_err());
    assert!(admit(&breaker, later + SECOND * 100).is_ok());
}

/// If settings with fewer probes are adopted after as many have succeeded, one more probe is admitted and closes the
/// breaker.
// G-1, G-19
#[test]
fn fewer_probes_do_not_wedge_it() {
    let breaker = timeless().consecutive_failures(5).probes(3);
    calls(&breaker, 5, Failed, NOW);
    let later = NOW + SECOND * 20;
    calls(&breaker, 2, Served, later);
    breaker.replace_settings(&timeless());
    calls(&breaker, 1, Served, later);
    assert_eq!(breaker.state_at(HOST, later), Closed);
}

/// Successes from an hour ago do not hide an outage.
// G-3
#[test]
fn old_successes_do_not_hide_an_outage() {
    let breaker = timeless().consecutive_failures(0);
    calls(&breaker, 100_000, Served, NOW);
    let later = NOW + SECOND * 61;
    calls(&breaker, 20, Failed, later);
    assert_eq!(breaker.state_at(HOST, later), Open);
}

/// Results from before the breaker opened do not affect it afterwards.
// G-4
#[test]
fn a_late_result_decides_nothing() {
    let breaker = timeless().consecutive_failures(5).spread(0);
    let late: Vec<_> = (0..3).map(|_| admit(&breaker, NOW).unwrap()).collect();
    calls(&breaker, 5, Failed, NOW);
    let later = NOW + SECOND * 10;
    let probe = admit(&breaker, later).unwrap();
    for (ticket, health) in late.into_iter().zip([Served, Failed, Served]) {
        end_ticket(&breaker, ticket, health, later);
        assert_eq!(breaker.state_at(HOST, later), HalfOpen);
    }
    end_ticket(&breaker, probe, Served, later);
    assert_eq!(breaker.state_at(HOST, later), Closed);
}

/// Callbacks and predicates may use the breaker, and changes are delivered in order, once each.

// G-5, trap 12
#[test]
fn callbacks_may_use_the_breaker() {
    let slot: Arc<OnceLock<CircuitBreaker>> = Arc::default();
    let noted: Arc<Mutex<Vec<_>>> = Arc::default();
    let (inside, notes, within) = (Arc::clone(&slot), Arc::clone(&noted), Arc::clone(&slot));
    let breaker = CircuitBreaker::counting().with_name("callbacks").on_state_change(move |change| {
        notes.lock().unwrap().push((change.from, change.to));
        let breaker = inside.get().unwrap();
        assert_eq!((&*change.name, &*change.destination), ("callbacks", HOST));
        admit_to(breaker, "https://newcomer.example", NOW).unwrap();
        if change.to == Open {
            breaker.close_at(HOST, NOW);
        }
    });
    let breaker = breaker.ready_to_trip(move |counts| {
        within.get().unwrap().counts_at(HOST, Duration::ZERO).total_failures == counts.total_failures
    });
    slot.set(breaker.clone()).unwrap();
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(*noted.lock().unwrap(), [(Closed, Open), (Open, Closed)]);
}

#[test]
fn a_callback_that_unwinds_is_called_again() {
    let (breaker, noted) = noting(timeless().consecutive_failures(5));
    let notes = Arc::clone(&noted);
    let breaker = breaker.on_state_change(move |change| {
        notes.lock().unwrap().push((change.from, change.to));
        assert!(change.to == Closed, "unwinds");
    });
    calls(&breaker, 4, Failed, NOW);
    let opening = std::panic::AssertUnwindSafe(|| call(&breaker, Failed, NOW));
    std::panic::catch_unwind(opening).unwrap_err();
    breaker.close_at(HOST, NOW);
    assert_eq!(*noted.lock().unwrap(), [(Closed, Open), (Open, Closed)]);
}

/// Clones share a state, but destinations do not.
// G-9
#[test]
fn clones_share_and_destinations_do_not() {
    let breaker = timeless().consecutive_failures(5);
    (0..5).for_each(|_| calls(&breaker.clone(), 1, Failed, NOW));
    assert_eq!(breaker.state_at(HOST, NOW), Open);
    assert!(admit_to(&breaker, "https://innocent.example", NOW).is_ok());
    let shared = timeless().consecutive_failures(5).shared(true);
    calls(&shared, 5, Failed, NOW);
    assert!(admit_to(&shared, "https://innocent.example", NOW).is_err(), "by choice");
}

/// A time before the latest one seen changes nothing.
// G-12
#[test]
fn time_that_goes_back_or_stands_still() {
    let breaker = timeless().consecutive_failures(5).spread(0);
    calls(&breaker, 4, Failed, NOW);
    calls(&breaker, 1, Failed, Duration::ZERO);
    assert_eq!(breaker.state_at(HOST, Duration::ZERO), Open);
    assert_eq!(call(&breaker, Served, NOW + SECOND).unwrap_err().wait(), Some(SECOND * 9));
    assert_eq!(call(&breaker, Served, NOW).unwrap_err().reason(), Reason::Open);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), HalfOpen);
    assert_eq!(breaker.state_at(HOST, Duration::ZERO), HalfOpen);
    let far = Duration::from_secs(u64::MAX / 2);
    calls(&breaker, 1, Served, far);
    assert_eq!(breaker.state_at(HOST, far), Closed);
}

/// New settings keep the state.
// G-19
#[test]
fn state_survives_replaced_settings() {
    let breaker = timeless().consecutive_failures(5).spread(0);
    calls(&breaker, 5, Failed, NOW);
    breaker.replace_settings(&CircuitBreaker::counting().open_time(SECOND).with_name("new"));
    assert_eq!(&*breaker.name(), "new");
    assert_eq!(call(&breaker, Served, NOW).unwrap_err().wait(), Some(SECOND * 10));
    calls(&breaker, 1, Failed, NOW + SECOND * 10);
    assert_eq!(call(&breaker, Served, NOW + SECOND * 10).unwrap_err().wait(), Some(SECOND));
}

/// Destinations beyond the bound use no memory (even a million), and an open breaker stays while it is used.
// G-20, trap 52
#[test]
fn destinations_stay_within_the_bound() {
    let breaker = timeless().consecutive_failures(5).max_destinations(8);
    calls(&breaker, 5, Failed, NOW);
    for number in 0..50_000_u32 {
        let now = NOW + Duration::from_micros(u64::from(number));
        let ticket = admit_to(&breaker, &format!("host-{number}"), now).unwrap();
        end_ticket(&breaker, ticket, Served, now);
        if number % 4 == 0 {
            assert!(admit(&breaker, now).is_err());
        }
    }
    assert!(format!("{breaker:?}").contains("destinations: 8"));
    assert_eq!(breaker.state_at(HOST, NOW), Open);
    let later = NOW + SECOND * 120;
    for number in 0..5 {
        let ticket = admit_to(&breaker, "newcomer", later + SECOND * number).unwrap();
        end_ticket(&breaker, ticket, Failed, later + SECOND * number);
    }
    assert_eq!(breaker.state_at("newcomer", later + SECOND * 5), Open);
    assert!(admit_to(&breaker, "innocent", later + SECOND * 5).is_ok(), "idle ones have left");
}

// Successes are counted without the lock, failures behind it.
#[test]
fn no_call_is_lost_under_contention() {
    let breaker = CircuitBreaker::counting().ready_to_trip(|_| false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let breaker = &breaker;
            scope.spawn(move || {
                for number in 0..50_000 {
                    let health = if number % 100 == thread { Failed } else { Served };
                    call(breaker, health, NOW).unwrap();
                }
            });
        }
    });
    let counts = breaker.counts_at(HOST, Duration::ZERO);
    assert_eq!((counts.requests, counts.total_successes, counts.total_failures), (200_000, 198_000, 2_000));
}

// Even if more calls succeed than the word beside the lock can count.
#[test]
fn results_are_counted_past_the_word() {
    let breaker = CircuitBreaker::counting();
    let tickets: Vec<_> = (0..70_000).map(|_| admit(&breaker, NOW).unwrap()).collect();
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).requests, 70_000);
    tickets.into_iter().for_each(|ticket| end_ticket(&breaker, ticket, Served, NOW));
    let counts = breaker.counts_at(HOST, Duration::ZERO);
    assert_eq!((counts.total_successes, counts.consecutive_successes), (70_000, 70_000));
}

// A setting that affects successes applies to calls in flight.
#[test]
fn replaced_settings_judge_the_next_result() {
    let breaker = timeless().consecutive_failures(5);
    calls(&breaker, 3, Served, NOW);
    let ticket = admit(&breaker, NOW).unwrap();
    breaker.replace_settings(&timeless().consecutive_failures(5).slow_after(SECOND));
    breaker.end_ticket(ticket, &End::judged(Served, SECOND * 2), NOW);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).total_failures, 1);
}

/// Buckets of another length are counted afresh. Otherwise the window would not slide for as long as it has been open.
// G-3, G-19
#[test]
fn replaced_buckets_slide_on() {
    let breaker = timeless();
    calls(&breaker, 1, Failed, NOW);
    breaker.replace_settings(&timeless().interval(SECOND * 600).bucket_period(SECOND * 60));
    calls(&breaker, 9, Failed, NOW);
    calls(&breaker, 1, Failed, NOW + SECOND * 3600);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).requests, 1, "an hour later");
}

#[test]
fn ratios_and_numbers_outside_their_range() {
    let shown = |ratio| format!("{:?}", timeless().failure_ratio(ratio));
    for ratio in [f64::NAN, -0.1, 0.0] {
        assert_eq!(shown(ratio), shown(1e-6), "{ratio}");
    }
    assert!(shown(1.0).contains("ratio: 1.0"), "{}", shown(1.0));
    assert_eq!((shown(1.01), shown(f64::INFINITY)), (shown(1.0), shown(1.0)));
    let min_calls = |calls| format!("{:?}", timeless().min_calls(calls));
    assert_eq!(min_calls(0), min_calls(1));
}

#[test]
fn extreme_times_are_clamped() {
    // A window shorter than its bucket is one fixed window; a window of 10⁹ buckets has 1000.
    for (interval, bucket) in [
        (SECOND, SECOND * 60),
        (SECOND, Duration::from_nanos(1)),
        (Duration::MAX, Duration::from_nanos(1)),
        (Duration::from_nanos(1), Duration::from_nanos(1)),
        (Duration::MAX, Duration::MAX / 2),
    ] {
        let breaker = timeless().consecutive_failures(5).interval(interval).bucket_period(bucket);
        let breaker = breaker.open_time(Duration::MAX).max_open_time(Duration::MAX).spread(99);
        calls(&breaker, 5, Failed, NOW);
        assert_eq!(breaker.state_at(HOST, NOW), Open, "{interval:?} {bucket:?}");
        assert!(call(&breaker, Served, NOW + SECOND * 1_000_000).is_err());
    }
}

/// A probe's place is freed if a callback or a predicate on its outcome panics.
// G-1, G-11
#[test]
fn a_probe_that_unwinds_frees_its_place() {
    for function in ["on_state_change", "is_successful", "is_excluded"] {
        let armed = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&armed);
        let unwind = move || assert!(!own.swap(false, Relaxed), "unwinds");
        let breaker = timeless().consecutive_failures(5).spread(0);
        let breaker = match function {
            "on_state_change" => breaker.on_state_change(move |_| unwind()),
            "is_successful" => breaker.is_successful(move |health| {
                unwind();
                health == Served
            }),
            _ => breaker.is_excluded(move |_| {
                unwind();
                false
            }),
        };
        calls(&breaker, 5, Failed, NOW);
        armed.store(true, Relaxed);
        let later = NOW + SECOND * 10;
        let probe = std::panic::AssertUnwindSafe(|| call(&breaker, Served, later));
        std::panic::catch_unwind(probe).unwrap_err();
        assert_eq!(breaker.state_at(HOST, later), HalfOpen, "{function}");
        assert_eq!(call(&breaker, Served, later), Ok(()), "{function}");
        assert_eq!(breaker.state_at(HOST, later), Closed, "{function}");
    }
}

/// If one step makes two changes, the next call delivers the second.
#[test]
fn change_after_an_unwinding_one_arrives() {
    let (breaker, noted) = noting(timeless().consecutive_failures(1).spread(0));
    let notes = Arc::clone(&noted);
    let breaker = breaker.on_state_change(move |change| {
        notes.lock().unwrap().push((change.from, change.to));
        assert!(change.to != HalfOpen, "unwinds");
    });
    calls(&breaker, 1, Failed, NOW);
    let later = NOW + SECOND * 60;
    let isolating = std::panic::AssertUnwindSafe(|| breaker.isolate_at(HOST, later));
    std::panic::catch_unwind(isolating).unwrap_err();
    assert_eq!(breaker.state_at(HOST, later), ForcedOpen);
    let expected = [(Closed, Open), (Open, HalfOpen), (HalfOpen, ForcedOpen)];
    assert_eq!(*noted.lock().unwrap(), expected);
}

/// If a call ends because its thread unwinds, a panic in a callback or predicate would abort the process. So the next
/// call delivers the change.
#[test]
fn no_function_is_called_while_unwinding() {
    struct Ending<'a>(&'a CircuitBreaker, Option<BreakerTicket>);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            end_ticket(self.0, self.1.take().unwrap(), Failed, NOW + SECOND * 10);
        }
    }
    let unwind = |breaker: &CircuitBreaker, ticket| {
        let ending = Ending(breaker, Some(ticket));
        let unwinding = std::panic::AssertUnwindSafe(move || {
            let _ending = ending;
            panic!("the caller's own");
        });
        std::panic::catch_unwind(unwinding).unwrap_err();
    };
    let predicate = CircuitBreaker::counting().is_excluded(|_| panic!("unwinds"));
    unwind(&predicate, admit(&predicate, NOW).unwrap());
    let counts = predicate.counts_at(HOST, Duration::ZERO);
    assert_eq!((counts.total_failures, counts.total_exclusions), (0, 1));

    let (breaker, noted) = noting(timeless().consecutive_failures(1).spread(0));
    let notes = Arc::clone(&noted);
    let breaker = breaker.on_state_change(move |change| {
        notes.lock().unwrap().push((change.from, change.to));
        assert!(!std::thread::panicking(), "aborts");
    });
    let late = admit(&breaker, NOW).unwrap();
    calls(&breaker, 1, Failed, NOW);
    unwind(&breaker, late);
    assert_eq!(*noted.lock().unwrap(), [(Closed, Open)]);
    assert_eq!(breaker.state_at(HOST, NOW), HalfOpen);
    assert_eq!(*noted.lock().unwrap(), [(Closed, Open), (Open, HalfOpen)]);
}
