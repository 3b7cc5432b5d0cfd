//! Tests of bad input for every guard: more destinations than fit, user code that calls back, a clock that goes back.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use reattempt_control::{Bulkhead, CircuitBreaker, Limit, RateLimit};
use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Guard, Health, Reason, Resume};

use super::guards::{HOST, NOW, SECOND, admit, at, reason, wait};

/// Each new destination is admitted, and the table stays within its bound.
// G-20
#[test]
fn many_destinations_stay_bounded() {
    let breaker = CircuitBreaker::rate().consecutive_failures(5).max_destinations(64);
    let limit = RateLimit::new(Limit::per_second(1), u32::MAX).max_destinations(64);
    let both = (breaker.clone(), limit.clone());
    let mut host = String::new();
    for number in 0..100_000_u64 {
        host.clear();
        write!(host, "host-{number}").unwrap();
        let now = NOW + SECOND * u32::try_from(number / 100).unwrap();
        let Admit::Admitted(ticket) = both.admit(&Arrival::new(&host, now)) else {
            panic!("{host} is refused");
        };
        assert!(both.end_ticket(ticket, &End::judged(Health::Served, SECOND), now).is_none());
    }
    for text in [format!("{breaker:?}"), format!("{limit:?}")] {
        assert!(text.contains("destinations: 64"), "{text}");
    }
}

/// Each destination has its own state, in a permanent slot or in the table, and a ticket ends in the state in which it
/// began.
// G-9
#[test]
fn many_destinations_have_own_states() {
    let bulkhead = Bulkhead::new(1);
    let hosts: Vec<_> = (0..200).map(|number| format!("{}{number}", "h".repeat(number % 40))).collect();
    let tickets: Vec<_> = hosts
        .iter()
        .map(|host| match bulkhead.admit(&Arrival::new(host, NOW)) {
            Admit::Admitted(ticket) => (host, ticket),
            _ => panic!("{host} has no place"),
        })
        .collect();
    for (number, (host, ticket)) in tickets.into_iter().enumerate() {
        let next = hosts.get(number + 1).map(|next| bulkhead.usage_at(next, NOW).in_flight);
        assert!(matches!(bulkhead.admit(&Arrival::new(host, NOW)), Admit::Refused(_)));
        bulkhead.end_ticket(ticket, &End::Unsent, NOW);
        assert_eq!(bulkhead.usage_at(host, NOW).in_flight, 0, "{host}");
        assert!(next.is_none_or(|in_flight| in_flight == 1), "the place after {host}");
    }
    assert!(format!("{bulkhead:?}").contains("destinations: 200"));
}

/// The predicates on outcomes are called without a lock.
// G-5
#[test]
fn predicates_may_use_the_breaker() {
    let slot: Arc<OnceLock<CircuitBreaker>> = Arc::default();
    let (excluding, judging) = (Arc::clone(&slot), Arc::clone(&slot));
    let breaker = CircuitBreaker::rate()
        .consecutive_failures(5)
        .is_excluded(move |_| excluding.get().unwrap().counts_at(HOST, NOW).requests == 0)
        .is_successful(move |_| judging.get().unwrap().counts_at(HOST, NOW).total_successes == 0);
    slot.set(breaker.clone()).unwrap();
    for _ in 0..2 {
        let ticket = admit(&breaker, NOW).unwrap();
        breaker.end_ticket(ticket, &End::judged(Health::Served, SECOND), NOW);
    }
    let counts = breaker.counts_at(HOST, NOW);
    assert_eq!((counts.total_successes, counts.total_failures), (1, 1));
}

/// A call that a released place wakes may use the bulkhead at once.
// G-5
#[test]
fn a_waker_may_use_the_bulkhead() {
    struct Asking(Bulkhead);
    impl Wake for Asking {
        fn wake(self: Arc<Self>) {
            assert_eq!(self.0.usage_at(HOST, NOW).in_flight, 1);
            assert_eq!(reason(admit(&self.0, NOW)), Reason::Full);
        }
    }
    let bulkhead = Bulkhead::new(1).queue(1, SECOND);
    let first = admit(&bulkhead, NOW).unwrap();
    let Admit::Waiting(mut ticket) = bulkhead.admit(&Arrival::new(HOST, NOW)) else { panic!("not in the queue") };
    let waker = Waker::from(Arc::new(Asking(bulkhead.clone())));
    let arrival = Arrival::new(HOST, NOW);
    assert!(matches!(bulkhead.resume(&mut ticket, &arrival, &waker), Resume::Waiting { .. }));
    assert!(bulkhead.end_ticket(first, &End::Unsent, NOW).is_none());
    assert_eq!(bulkhead.resume(&mut ticket, &arrival, &waker), Resume::Admitted);
    assert!(bulkhead.end_ticket(ticket, &End::Unsent, NOW).is_none());
}

/// A wait keeps its end, and the age of a body is never negative.
// G-12
#[test]
fn bulkhead_time_goes_back_or_stands() {
    let bulkhead = Bulkhead::new(1).queue(1, SECOND);
    let held = admit(&bulkhead, NOW).unwrap();
    let mut waiting = wait(&bulkhead, NOW);
    for now in [NOW, NOW, NOW - SECOND, NOW] {
        assert_eq!(waiting.poll(now), super::guards::waits_until(at(1000)));
    }
    let held = bulkhead.end_ticket(held, &End::judged(Health::Served, SECOND), NOW).unwrap();
    let usage = bulkhead.usage_at(HOST, NOW - SECOND);
    assert_eq!(usage.oldest_past_head.map(|age| age.is_zero()), Some(true));
    assert!(bulkhead.end_ticket(held, &End::Over(BodyEnd::Dropped), NOW - SECOND).is_none());
    drop(waiting.admitted(NOW - SECOND));
}
