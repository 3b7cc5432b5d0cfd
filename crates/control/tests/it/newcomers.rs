//! Tests of destinations beyond a table's bound: names that others choose do not cause refusals, and a call's state is
//! never lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use reattempt_control::{
    AdaptiveLimit, BreakerState, Bulkhead, BulkheadTicket, CircuitBreaker, Limit, RateLimit, RetryBudget, SendRate,
    Throttle,
};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Quota};
use reattempt_core::{Budget, Failure, FailureKind, Permit, ServerHint};

use crate::guards::{HOST, NOW, SECOND, admit_to, at};

/// More names than any default table has places for.
const ATTACK: usize = 1_049;

fn end_ticket<G: Guard>(guard: &G, ticket: G::Ticket, health: Health, now: Duration) {
    let held = guard.end_ticket(ticket, &End::judged(health, Duration::ZERO), now);
    held.map(|ticket| guard.end_ticket(ticket, &End::Unsent, now));
}

/// Calls this many hosts of one domain once. Returns the number of refused calls.
fn call_all<G: Guard>(guard: &G, domain: &str, hosts: usize, health: Health) -> usize {
    let call = |host| match admit_to(guard, &format!("{host}.{domain}"), NOW) {
        Some(ticket) => {
            end_ticket(guard, ticket, health, NOW);
            0
        }
        None => 1,
    };
    (0..hosts).map(call).sum()
}

fn newcomers_are_admitted_by(guard: &impl Guard) {
    for _ in 0..4 {
        call_all(guard, "attacker.example", ATTACK, Health::Overloaded);
    }
    assert_eq!(call_all(guard, "healthy.example", 100, Health::Served), 0);
    assert_eq!(call_all(guard, "healthy.example", 100, Health::Served), 0);
}

/// Failures of hosts that an attacker names do not cause refusals of calls to others.
// trap 52
#[test]
fn failures_of_others_refuse_no_newcomer() {
    newcomers_are_admitted_by(&CircuitBreaker::rate());
    newcomers_are_admitted_by(&CircuitBreaker::counting());
    newcomers_are_admitted_by(&Bulkhead::new(1));
    newcomers_are_admitted_by(&AdaptiveLimit::aimd());
    newcomers_are_admitted_by(&Throttle::new());
    newcomers_are_admitted_by(&SendRate::new().no_queue());
    newcomers_are_admitted_by(&RateLimit::new(Limit::INFINITE, 0));
}

/// Calls in flight to hosts that an attacker names, including failures, do not cause refusals of calls to others.
fn crawler_is_admitted_by(guard: &impl Guard) {
    let call = |host| admit_to(guard, &format!("{host}.example"), NOW).unwrap();
    let held: Vec<_> = (0..3_000).map(call).collect();
    held.into_iter().for_each(|ticket| end_ticket(guard, ticket, Health::Overloaded, NOW));
    assert_eq!(call_all(guard, "healthy.example", 100, Health::Served), 0);
}

// trap 52
#[test]
fn crawler_of_3000_hosts_is_not_refused() {
    crawler_is_admitted_by(&CircuitBreaker::rate());
    crawler_is_admitted_by(&Bulkhead::new(1));
    crawler_is_admitted_by(&AdaptiveLimit::vegas());
    crawler_is_admitted_by(&Throttle::new());
    crawler_is_admitted_by(&SendRate::new().no_queue());
}

/// Quotas of hosts that an attacker names do not delay calls to others, whether the quotas come from a response or a
/// method call.
// trap 52
#[test]
fn followed_quotas_of_others_block_nobody() {
    for own in [Limit::INFINITE, Limit::per_second(1000)] {
        let limit = RateLimit::new(own, 1000).no_queue();
        for host in 0..1_025 {
            let host = format!("{host}.attacker.example");
            let ticket = admit_to(&limit, &host, NOW).unwrap();
            let quota = Some(Quota::new(0, 3000 * SECOND));
            let (health, hint, after) = (Health::Served, ServerHint::None, Duration::ZERO);
            assert!(limit.end_ticket(ticket, &End::Judged { health, hint, quota, after }, NOW).is_none());
            limit.follow_at(&host, 0, 3000 * SECOND, NOW);
        }
        assert!(!limit.allow_at("1.attacker.example", NOW), "it is followed");
        for now in [NOW, at(2000)] {
            let refused = (0..100).filter(|host| !limit.allow_at(&format!("{host}.example"), now));
            assert_eq!(refused.count(), 0, "{own:?}");
        }
    }
}

/// A forgotten quota does not add a token to the user's own rate.
// trap 52
#[test]
fn forgotten_quota_mints_no_token() {
    let limit = RateLimit::new(Limit::per_second(1), 5).no_queue().max_destinations(1);
    assert!((0..5).all(|_| limit.allow_at(HOST, NOW)));
    limit.follow_at(HOST, 0, 100 * SECOND, NOW);
    assert!(limit.allow_at("b", at(4999)) && limit.tokens_at(HOST, at(4999)) < 1.0, "b shares");
    assert!(limit.allow_at("b", at(5000)));
    assert_eq!(limit.tokens_at(HOST, at(5000)), 5.0, "it has left");
}

/// A client whose budget has seen an attacker's hosts still retries calls to others.
// trap 52
#[test]
fn calls_to_newcomers_are_retried() {
    let failure = Failure::new(FailureKind::Server);
    let budgets =
        [RetryBudget::cautious(), RetryBudget::percent(10), RetryBudget::rate(0.1, 2.0), RetryBudget::aws_quota()];
    for budget in budgets {
        let retry = |host: &str| budget.acquire_after_failure(host, &failure.into(), NOW);
        for host in 0..ATTACK {
            let host = format!("{host}.attacker.example");
            (0..200).for_each(|_| drop(retry(&host).map(Permit::spend)));
        }
        let granted = (0..100).filter_map(|host| retry(&format!("{host}.example")));
        assert_eq!(granted.map(Permit::spend).count(), 100, "{budget:?}");
    }
}

/// Evicts the one host from a table of four places, if its entry may be evicted. Only calls to new destinations are
/// sent.
fn crowd_out(guard: &impl Guard) {
    assert_eq!(call_all(guard, "attacker.example", 1000, Health::Overloaded), 0);
}

/// A destination's state stays while one of its calls is in flight, however many new destinations there are.
// G-20, trap 52
#[test]
fn entry_with_a_call_in_flight_stays() {
    let breaker = CircuitBreaker::rate().max_destinations(4);
    let ticket = admit_to(&breaker, HOST, NOW).unwrap();
    crowd_out(&breaker);
    end_ticket(&breaker, ticket, Health::Failed, NOW);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).total_failures, 1);
    crowd_out(&breaker);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).total_failures, 0, "it has left");

    let bulkhead = Bulkhead::new(1).max_destinations(4);
    let ticket = admit_to(&bulkhead, HOST, NOW).unwrap();
    let held = bulkhead.end_ticket(ticket, &End::judged(Health::Served, SECOND), NOW).unwrap();
    crowd_out(&bulkhead);
    assert!(admit_to(&bulkhead, HOST, NOW).is_none(), "its body is not over");
    end_ticket(&bulkhead, held, Health::Served, NOW);

    let adaptive = AdaptiveLimit::aimd().max_destinations(4);
    let _held = admit_to(&adaptive, HOST, NOW).unwrap();
    crowd_out(&adaptive);
    assert_eq!(adaptive.usage_at(HOST, NOW).in_flight, 1);

    let throttle = Throttle::new().max_destinations(4);
    let ticket = admit_to(&throttle, HOST, NOW).unwrap();
    crowd_out(&throttle);
    end_ticket(&throttle, ticket, Health::Overloaded, NOW);
    assert_eq!(throttle.counts_at(HOST, NOW).accepts, 0);
    assert_eq!(throttle.counts_at(HOST, NOW).requests, 1);

    let rate = SendRate::new().max_destinations(4);
    let ticket = admit_to(&rate, HOST, NOW).unwrap();
    end_ticket(&rate, admit_to(&rate, HOST, NOW).unwrap(), Health::Overloaded, NOW);
    crowd_out(&rate);
    assert!(!rate.limit(HOST).is_infinite());
    end_ticket(&rate, ticket, Health::Served, NOW);
    crowd_out(&rate);
    assert!(rate.limit(HOST).is_infinite(), "it has left");
}

/// An open breaker survives ten tables of new destinations if its destination is called now and then. An evicted one is
/// reported as closed.
// trap 52
#[test]
fn open_breaker_in_use_is_not_forgotten() {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&changes);
    let breaker = CircuitBreaker::rate().min_failing_time(Duration::ZERO).first_open_time(Duration::ZERO);
    let breaker = breaker.consecutive_failures(5).on_state_change(move |change| {
        seen.lock().unwrap().push((change.destination.to_string(), change.to));
    });
    call_all(&breaker, "first.example", 64, Health::Served);
    for _ in 0..5 {
        end_ticket(&breaker, admit_to(&breaker, HOST, NOW).unwrap(), Health::Failed, NOW);
    }
    for round in 0..20 {
        call_all(&breaker, &format!("{round}.example"), 500, Health::Failed);
        assert!(admit_to(&breaker, HOST, NOW).is_none(), "round {round}");
    }
    assert_eq!(*changes.lock().unwrap(), [(HOST.to_owned(), BreakerState::Open)]);
    call_all(&breaker, "last.example", 2000, Health::Failed);
    assert_eq!(breaker.state_at(HOST, NOW), BreakerState::Closed);
    let last = changes.lock().unwrap().last().cloned();
    assert_eq!(last, Some((HOST.to_owned(), BreakerState::Closed)));
}

/// A state that the user sets gets a place whatever calls are in flight, and is never evicted.
#[test]
fn state_that_the_user_sets_stays() {
    let breaker = CircuitBreaker::rate().max_destinations(2);
    let _held = ["a", "b"].map(|host| admit_to(&breaker, host, NOW).unwrap());
    breaker.isolate_at(HOST, NOW);
    crowd_out(&breaker);
    assert!(admit_to(&breaker, HOST, NOW).is_none());
    breaker.close_at(HOST, NOW);
    crowd_out(&breaker);
    assert!(admit_to(&breaker, HOST, NOW).is_some());

    let limit = RateLimit::new(Limit::per_second(1), 1).no_queue().max_destinations(1);
    assert!(limit.allow_at("a", NOW) && limit.allow_at("b", NOW) && !limit.allow_at("c", NOW));
    limit.set_burst_at(HOST, 0, NOW);
    assert!(!limit.allow_at(HOST, NOW));
    assert!(limit.allow_at("c", at(2000)) && limit.allow_at("d", at(4000)));
    assert_eq!((limit.burst(HOST), limit.burst("a")), (0, 1));
}

const PLACES: usize = 4;
const CALLS: u32 = 2;

/// A call in the model: its destination, its ticket, and whether it was admitted with a state.
type Call = (usize, BulkheadTicket, bool);

proptest! {
    /// A bulkhead with few places agrees with a count of calls in flight by name: a call is refused only because of
    /// calls to its own destination.
    // G-20, trap 52
    #[test]
    fn bulkhead_in_a_full_table_as_by_a_model(steps in prop::collection::vec((0..12_usize, 0..3_usize), 1..200)) {
        let bulkhead = Bulkhead::new(CALLS).max_destinations(PLACES);
        let names: Vec<_> = (0..12).map(|host| format!("{host}.example")).collect();
        let (mut counts, mut calls) = (BTreeMap::<usize, u32>::new(), Vec::<Call>::new());
        for (host, step) in steps {
            if step == 0 && !calls.is_empty() {
                let (host, ticket, counted) = calls.swap_remove(host % calls.len());
                prop_assert!(bulkhead.end_ticket(ticket, &End::Unsent, NOW).is_none());
                if counted {
                    counts.entry(host).and_modify(|count| *count -= 1);
                    counts.retain(|_, count| *count > 0);
                }
            } else {
                let has_place = counts.contains_key(&host) || counts.len() < PLACES;
                let is_full = counts.get(&host) == Some(&CALLS);
                match bulkhead.admit(&Arrival::new(&names[host], NOW)) {
                    Admit::Admitted(ticket) => {
                        prop_assert!(!is_full);
                        if has_place {
                            *counts.entry(host).or_default() += 1;
                        }
                        calls.push((host, ticket, has_place));
                    }
                    Admit::Refused(_) => prop_assert!(is_full),
                    Admit::Waiting(_) => unreachable!("there is no queue"),
                }
            }
            for (host, name) in names.iter().enumerate() {
                let in_flight = bulkhead.usage_at(name, NOW).in_flight;
                prop_assert_eq!(in_flight, counts.get(&host).copied().unwrap_or(0));
            }
        }
    }
}
