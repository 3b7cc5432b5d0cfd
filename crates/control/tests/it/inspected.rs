//! Tests of the parts of budgets and guards in a snapshot.

use std::time::Duration;

use reattempt_control::{
    AdaptiveLimit, Bulkhead, CircuitBreaker, Limit, Pause, RateLimit, RetryBudget, SendRate, Throttle,
};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health};
use reattempt_core::snapshot::Inspect;
use reattempt_core::{Budget, Failure, FailureKind, ServerHint};

const NOW: Duration = Duration::from_secs(100);

/// Calls to `a` and `b`, of which the one to `a` ends like this, and the one to `b` is in flight.
fn calls<G: Guard>(guard: &G, end: &End) {
    if let Admit::Admitted(ticket) = guard.admit(&Arrival::new("a", NOW)) {
        guard.end_ticket(ticket, end, NOW);
    }
    std::mem::forget(guard.admit(&Arrival::new("b", NOW)));
}

/// Returns the lines of the destinations half a second later.
fn destinations(guard: &impl Inspect) -> String {
    let page = guard.inspect(NOW + Duration::from_millis(500)).to_string();
    page.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn guards_show_each_destination() {
    let busy = End::judged(Health::Overloaded, Duration::ZERO).with_hint(ServerHint::After(Duration::from_secs(2)));
    let breaker = CircuitBreaker::counting().ready_to_trip(|counts| counts.total_failures > 0);
    calls(&breaker, &busy);
    let expected = "  destination a: state open, open_time_left 59.5s, requests 0, failures 0, consecutive_failures 0\n  \
                    destination b: state closed, requests 1, failures 0, consecutive_failures 0\n";
    assert_eq!(destinations(&breaker), expected);

    let bulkhead = Bulkhead::new(4);
    calls(&bulkhead, &busy);
    let expected = "  destination a: limit 4, in_flight 1, waiting 0, past_head 1, oldest_past_head 500ms\n  \
                    destination b: limit 4, in_flight 1, waiting 0, past_head 0\n";
    assert_eq!(destinations(&bulkhead), expected);

    let adaptive = AdaptiveLimit::vegas().shared(true);
    calls(&adaptive, &busy);
    assert_eq!(
        destinations(&adaptive),
        "  all_destinations: limit 20, in_flight 2, waiting 0, past_head 1, oldest_past_head 500ms\n"
    );

    let limit = RateLimit::new(Limit::per_second(1), 4);
    calls(&limit, &End::Unsent);
    let expected = "  destination a: per_second 1, tokens 4, waiting 0, lowered_by_server false\n  \
                    destination b: per_second 1, tokens 3.5, waiting 0, lowered_by_server false\n";
    assert_eq!(destinations(&limit), expected);

    let rate = SendRate::new();
    calls(&rate, &busy);
    let text = destinations(&rate);
    assert!(text.starts_with("  destination a: per_second ") && text.contains("tokens"), "{text}");
    assert!(text.ends_with("  destination b: waiting 0, lowered_by_server false\n"), "{text}");

    let pause = Pause::new();
    calls(&pause, &busy);
    let expected = "  destination a: time_left 1.5s, waiting 0\n  destination b: time_left 0s, waiting 0\n";
    assert_eq!(destinations(&pause), expected);

    let throttle = Throttle::new();
    calls(&throttle, &busy);
    let expected = "  destination a: requests 1, accepts 0, probability 0\n  \
                    destination b: requests 1, accepts 1, probability 0\n";
    assert_eq!(destinations(&throttle), expected);
}

/// Destinations past the bound share a limit, which is then shown.
#[test]
fn full_table_shows_what_others_share() {
    let limit = RateLimit::new(Limit::ZERO, 1).max_destinations(1);
    calls(&limit, &End::judged(Health::Served, Duration::ZERO));
    let expected = "  other_destinations: per_second 0, tokens 0, waiting 0, lowered_by_server false\n  \
                    destination a: per_second 0, tokens 0, waiting 0, lowered_by_server false\n";
    assert_eq!(destinations(&limit), expected);
}

#[test]
fn budgets_show_balances() {
    let failure = Failure::new(FailureKind::Server);
    let budget = RetryBudget::cautious();
    let _ = budget.acquire_after_failure("a", &failure.into(), NOW).unwrap().spend();
    assert_eq!(
        budget.inspect(NOW).to_string(),
        "budget: rule cautious, capacity 10, refusals 0\n  destination a: tokens 9, doubt 1\n"
    );
    let shared = RetryBudget::rate(1.0, 5.0).shared(true);
    let _ = shared.acquire("a", &failure, NOW).unwrap().spend();
    assert_eq!(
        shared.inspect(NOW).to_string(),
        "budget: rule rate, per_second 1, burst 5, refusals 0\n  all_destinations: tokens 4\n"
    );
    assert_eq!(RetryBudget::unlimited().inspect(NOW).to_string(), "budget: rule unlimited\n");
}
