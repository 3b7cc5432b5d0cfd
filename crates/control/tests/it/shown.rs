//! Tests of what budgets and guards report about themselves, and of settings that survive a replacement.

use std::time::Duration;

use reattempt_control::{
    AdaptiveLimit, Bulkhead, CircuitBreaker, Latencies, Limit, RateLimit, RetryBudget, SendRate, Throttle,
};
use reattempt_core::guard::{Arrival, End, Guard, Health, Quota, Reason};
use reattempt_core::{Budget, Failure, FailureKind, ServerHint};

use crate::guards::{HOST, NOW, SECOND, admit, admit_to, at, reason, wait, wait_until};

const OTHER: &str = "https://other.example";

#[test]
fn latencies_count_their_samples() {
    let latencies = Latencies::p95();
    assert_eq!(latencies.samples(), 0);
    (0..5).for_each(|_| latencies.record(SECOND));
    assert_eq!(latencies.samples(), 5);
    assert_eq!(format!("{latencies:?}"), "Latencies { below_millionths: 950000, quantile: None, .. }");
}

#[test]
fn unusual_budget_settings_are_warned_of() {
    for (budget, warned) in [
        (RetryBudget::default(), None),
        (RetryBudget::percent(10), None),
        (RetryBudget::percent(60), Some("ratio")),
        (RetryBudget::rate(1.0, 2.0), None),
        (RetryBudget::rate(1.0, 100.0), Some("burst")),
        (RetryBudget::aws_quota(), None),
        (RetryBudget::unlimited(), None),
    ] {
        let warnings = Budget::validate(&budget);
        let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), usize::from(warned.is_some()), "{budget:?}: {texts:?}");
        assert!(texts.iter().all(|text| text.contains(warned.unwrap())), "{texts:?}");
    }
    let warnings = |burst| Guard::validate(&RateLimit::new(Limit::per_second(1), burst)).len();
    assert_eq!((warnings(2), warnings(100)), (0, 1));
}

#[test]
fn only_the_unlimited_budget_is_a_noop() {
    assert!(RetryBudget::unlimited().is_noop());
    for budget in [RetryBudget::default(), RetryBudget::percent(10), RetryBudget::aws_quota()] {
        assert!(!budget.is_noop());
    }
}

/// A cautious bucket that was evicted is full again.
#[test]
fn full_cautious_bucket_has_no_entry() {
    let budget = RetryBudget::cautious().max_destinations(1);
    let failure = Failure::new(FailureKind::Server);
    assert!(budget.is_full());
    let paid = budget.acquire_after_failure("a", &failure.into(), NOW).unwrap().spend();
    assert!(!budget.is_full());
    assert_eq!((budget.balance("a"), budget.balance("b")), (9.0, 10.0));
    paid.succeed();
    assert!(!budget.is_full(), "the doubt is left");
    budget.on_success("a", 0);
    assert!(budget.is_full());
    let text = format!("{budget:?}");
    assert!(text.ends_with("destinations: 1, not_full: {} }"), "{text}");
}

#[test]
fn rates_and_reservations_are_shown() {
    let limit = RateLimit::new(Limit::per_second(2), 3);
    assert_eq!(format!("{:?}", Limit::per_second(2)), "2/s");
    assert!(Limit::per_second(2) != Limit::per_second(3));
    assert!(Limit::per_second(2) != Limit::INFINITE);
    let text = format!("{limit:?}");
    assert!(text.starts_with("RateLimit { limit: 2/s, burst: 3, queue:"), "{text}");
    assert!(limit.allow_at(HOST, NOW));
    assert!(format!("{limit:?}").contains("destinations: 1, held: [], more: 0"), "{limit:?}");
    limit.follow_at(HOST, 0, SECOND, NOW);
    assert!(format!("{limit:?}").contains("held: [(\"https://a.example\""), "{limit:?}");
    let text = format!("{:?}", limit.reserve_at(OTHER, NOW));
    assert_eq!(text, "Reservation { ok: true, at: Some(1000s) }");
}

#[test]
fn send_rate_has_the_queue_that_was_set() {
    let rate = SendRate::new().queue(1, SECOND);
    lower(&rate, HOST);
    while admit(&rate, at(1000)).is_ok() {}
    let _first = wait(&rate, at(1000));
    assert_eq!(reason(wait_until(&rate, at(1000), None)), Reason::Full);
}

#[test]
fn impossible_bounds_are_moved() {
    let shown = |least, most| format!("{:?}", AdaptiveLimit::aimd().bounds(least, most));
    assert!(shown(3, 3).contains("bounds: Bounds { least: 3, most: 3 }"), "{}", shown(3, 3));
    assert_eq!(shown(4, 3), shown(4, 4));
    assert_eq!((shown(0, 9), shown(0, 0)), (shown(1, 9), shown(1, 1)));
}

#[test]
fn unusual_guard_settings_are_warned_of() {
    let warnings = |breaker: CircuitBreaker| Guard::validate(&breaker).len();
    assert_eq!(warnings(CircuitBreaker::rate()), 0);
    assert_eq!(warnings(CircuitBreaker::rate().failure_ratio(0.01)), 1);
    for (per_second, burst, number) in [(2, 4, 0), (2, 1, 1), (4, 1, 1), (1, 3, 0)] {
        let limit = RateLimit::new(Limit::per_second(per_second), burst);
        assert_eq!(limit.validate().len(), number, "{per_second}/s, burst {burst}");
    }
    let slow = RateLimit::new(Limit::every(SECOND * 60), 1);
    assert!(slow.validate().is_empty(), "one call is a minute of this rate");
    assert!(RateLimit::new(Limit::INFINITE, 1).validate().is_empty());
}

#[test]
fn tickets_show_their_state() {
    fn check<G: Guard>(guard: G, name: &str)
    where
        G::Ticket: std::fmt::Debug,
    {
        let text = format!("{:?}", admit(&guard, NOW).unwrap());
        assert!(text.starts_with(name) && text.len() > name.len(), "{text}");
    }
    check(Bulkhead::new(1), "BulkheadTicket {");
    check(AdaptiveLimit::aimd(), "AdaptiveTicket {");
    check(RateLimit::new(Limit::per_second(1), 1), "RateTicket {");
    check(SendRate::new(), "SendTicket {");
    check(Throttle::new(), "ThrottleTicket {");
    check(CircuitBreaker::rate(), "BreakerTicket {");
}

/// Destinations in use are listed, and the others are counted.
#[test]
fn bulkhead_lists_destinations_in_use() {
    let bulkhead = Bulkhead::new(2);
    let held = admit(&bulkhead, NOW).unwrap();
    let ticket = admit_to(&bulkhead, OTHER, NOW).unwrap();
    bulkhead.end_ticket(ticket, &End::Unsent, NOW);
    assert!(bulkhead.end_ticket(held, &End::judged(Health::Served, SECOND), NOW).is_some());
    let text = format!("{bulkhead:?}");
    assert!(text.contains("destinations: 2, in_use: [(\"https://a.example\", Usage {"), "{text}");
    assert!(text.contains("past_head: 1, oldest_past_head: None })], more: 0"), "{text}");
}

// G-19
#[test]
fn replaced_settings_leave_the_destinations() {
    let bulkhead = Bulkhead::new(9).shared(true);
    bulkhead.replace_settings(&Bulkhead::new(1));
    let bulkhead = bulkhead.queue(0, SECOND);
    let _held = admit(&bulkhead, NOW).unwrap();
    assert!(admit_to(&bulkhead, OTHER, NOW).is_none(), "still one for all");

    let limit = RateLimit::new(Limit::per_second(1), 9).shared(true);
    limit.replace_settings(&RateLimit::new(Limit::per_second(1), 1));
    let limit = limit.no_queue();
    assert!(limit.allow_at(HOST, NOW) && !limit.allow_at(OTHER, NOW));

    let throttle = Throttle::new().shared(true);
    throttle.replace_settings(&Throttle::new());
    let throttle = throttle.seed(1);
    admit(&throttle, NOW).unwrap();
    assert_eq!(throttle.counts_at(OTHER, NOW).requests, 1);

    let rate = SendRate::new().shared(true);
    rate.replace_settings(&SendRate::new());
    let rate = rate.no_queue();
    lower(&rate, HOST);
    assert_eq!(rate.limit(OTHER), rate.limit(HOST));
}

/// Lowers a send rate with a refusal.
fn lower(rate: &SendRate, host: &str) {
    for call in 0..100 {
        let now = at(10 * call);
        let health = if call == 99 { Health::Overloaded } else { Health::Served };
        if let Some(ticket) = admit_to(rate, host, now) {
            rate.end_ticket(ticket, &End::judged(health, Duration::ZERO), now);
        }
    }
    assert_ne!(rate.limit(host), Limit::INFINITE);
}

// G-19
#[test]
fn send_rate_adopts_a_queue_and_keeps_rate() {
    let rate = SendRate::new();
    lower(&rate, HOST);
    let before = rate.limit(HOST);
    while admit(&rate, at(1000)).is_ok() {}
    wait(&rate, at(1000)).cancel(at(1000));
    rate.replace_settings(&SendRate::new().no_queue());
    assert_eq!(rate.limit(HOST), before);
    assert_eq!(reason(rate.would_admit(&Arrival::new(HOST, at(1000)))), Reason::RateExceeded);
}

/// An idle destination's place goes to a new one, which then shares no state.
// G-20
#[test]
fn idle_destinations_leave_their_places() {
    let bulkhead = Bulkhead::new(1).max_destinations(2);
    for host in ["a", "b"] {
        let ticket = admit_to(&bulkhead, host, NOW).unwrap();
        bulkhead.end_ticket(ticket, &End::Unsent, NOW);
    }
    let _held = admit_to(&bulkhead, "c", at(2000)).unwrap();
    assert!(admit_to(&bulkhead, "d", at(4000)).is_some() && admit_to(&bulkhead, "c", NOW).is_none());

    let limit = RateLimit::new(Limit::per_second(1), 1).max_destinations(2);
    assert!(["a", "b"].iter().all(|host| limit.allow_at(host, NOW)));
    assert!(limit.allow_at("c", at(2000)) && limit.allow_at("d", at(2000)) && !limit.allow_at("c", at(2000)));

    let throttle = Throttle::new().window(SECOND).max_destinations(2);
    for host in ["a", "b"] {
        admit_to(&throttle, host, NOW).unwrap();
    }
    admit_to(&throttle, "c", at(5000)).unwrap();
    let requests = |host| throttle.counts_at(host, at(5000)).requests;
    assert_eq!((requests("c"), requests("d")), (1, 0), "d would share, if c did");
}

/// A destination without a place is admitted without a state.
// G-20, trap 52
#[test]
fn call_past_the_bound_has_no_state() {
    let bulkhead = Bulkhead::new(1).max_destinations(1);
    let held = ["a", "b", "b"].map(|host| admit_to(&bulkhead, host, NOW).unwrap());
    let in_flight = ["a", "b"].map(|host| bulkhead.usage_at(host, NOW).in_flight);
    assert_eq!(in_flight, [1, 0]);
    held.into_iter().for_each(|ticket| drop(bulkhead.end_ticket(ticket, &End::Unsent, NOW)));
    let _held = admit_to(&bulkhead, "b", NOW).unwrap();
    assert_eq!(bulkhead.usage_at("b", NOW).in_flight, 1, "there is a place again");
}

#[test]
fn shared_bulkhead_has_one_limit() {
    let bulkhead = Bulkhead::new(1).shared(true);
    let _held = admit(&bulkhead, NOW).unwrap();
    assert!(admit_to(&bulkhead, OTHER, NOW).is_none());
    assert_eq!(bulkhead.usage_at(OTHER, NOW).in_flight, 1);
}

#[test]
fn full_adaptive_limit_is_seen_beforehand() {
    let limit = AdaptiveLimit::aimd().initial(1);
    let arrival = Arrival::new(HOST, NOW);
    assert!(limit.would_admit(&arrival).is_ok());
    let ticket = admit(&limit, NOW).unwrap();
    assert_eq!(reason(limit.would_admit(&arrival)), Reason::Full);
    limit.end_ticket(ticket, &End::Unsent, NOW);
    assert!(limit.would_admit(&arrival).is_ok());
}

/// A quota that a response states is followed.
// G-15
#[test]
fn judged_response_lowers_the_rate() {
    let limit = RateLimit::new(Limit::per_second(10), 5);
    let ticket = admit(&limit, NOW).unwrap();
    let quota = Some(Quota::new(0, SECOND * 2));
    let end = End::Judged { health: Health::Served, hint: ServerHint::None, quota, after: SECOND };
    assert!(limit.end_ticket(ticket, &end, NOW).is_none());
    assert!(!limit.allow_at(HOST, at(2000)) && limit.allow_at(HOST, at(2100)));
}

/// Calls that read their bodies are counted even if there are more than lock-free slots.
// G-10
#[test]
fn many_unread_bodies_are_counted_apart() {
    let bulkhead = Bulkhead::new(100);
    for round in 0..2_u64 {
        let begin = |call: u64| at(1000 * round + call);
        let tickets: Vec<_> = (0..100).map(|_| admit(&bulkhead, NOW).unwrap()).collect();
        let held: Vec<_> = (0..100_u64)
            .zip(tickets)
            .map(|(call, ticket)| {
                let end = End::judged(Health::Served, SECOND);
                bulkhead.end_ticket(ticket, &end, begin(call)).unwrap()
            })
            .collect();
        // The oldest first, so that the next one is always the oldest.
        for (ticket, left) in held.into_iter().zip((1..=100_u32).rev()) {
            let usage = bulkhead.usage_at(HOST, begin(200));
            let call = u64::from(100 - left);
            let age = begin(200) - begin(call);
            assert_eq!((usage.past_head, usage.in_flight), (left as usize, left));
            assert_eq!(usage.oldest_past_head, Some(age), "round {round}, call {call}");
            let over = End::Over(reattempt_core::guard::BodyEnd::Complete);
            assert!(bulkhead.end_ticket(ticket, &over, begin(200)).is_none());
        }
        assert_eq!(bulkhead.usage_at(HOST, NOW).past_head, 0);
    }
}

/// A call that moves to another task is woken there.
#[test]
fn waiting_call_is_woken_by_its_last_waker() {
    let bulkhead = Bulkhead::new(1).queue(1, SECOND);
    let held = admit(&bulkhead, NOW).unwrap();
    let mut waiting = wait(&bulkhead, NOW);
    waiting.poll(NOW);
    let first = std::mem::take(&mut waiting.waker);
    waiting.poll(NOW);
    bulkhead.end_ticket(held, &End::Unsent, NOW);
    assert_eq!((first.woken(), waiting.waker.woken()), (0, 1));
}

#[test]
fn doubt_without_a_place_is_listed() {
    let budget = RetryBudget::cautious().max_destinations(1);
    let failure = Failure::new(FailureKind::Server);
    let _under_way = budget.acquire_after_failure("a", &failure.into(), NOW).unwrap().spend();
    budget.on_failure("b", &failure.into(), NOW);
    let text = format!("{budget:?}");
    assert!(text.ends_with("others: 10.0 with doubt 1 }"), "{text}");
}

/// A guard that records no time for a success needs none.
#[test]
fn success_is_timed_if_its_moment_counts() {
    fn times<G: Guard>(guard: &G) -> bool {
        guard.times_success(&admit(guard, NOW).unwrap())
    }
    assert!(times(&Bulkhead::new(1)), "the head of a response whose body is unread");
    assert!(!times(&Bulkhead::new(1).release_at_head(true)));
    assert!(!times(&RateLimit::new(Limit::per_second(1), 1)));
    assert!(!times(&Throttle::new().seed(1)));
    assert!(times(&AdaptiveLimit::aimd()) && times(&SendRate::new()));
}

#[test]
fn only_held_and_shedding_are_listed() {
    let limit = RateLimit::new(Limit::per_second(1), 1);
    assert!(limit.allow_at(HOST, NOW));
    let waiting = wait(&limit, NOW);
    assert!(format!("{limit:?}").contains(r#"held: [("https://a.example""#), "{limit:?}");
    waiting.cancel(NOW);
    assert!(format!("{limit:?}").contains("held: []"), "{limit:?}");
    let throttle = Throttle::new().seed(1);
    admit(&throttle, NOW).unwrap();
    assert!(format!("{throttle:?}").contains("shedding: []"), "{throttle:?}");
}
