//! Tests that calls allocate nothing once their destination has requested a token, and that picks of endpoints allocate
//! nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use reattempt_control::{Bulkhead, CircuitBreaker, EndpointSet, Limit, RateLimit, RetryBudget, Trail};
use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Guard, Health};
use reattempt_core::{Budget, Failure, FailureKind};
use reattempt_testing::{Always, CountingAllocator, allocations, bytes_in_use};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_known_destination_costs_no_allocation() {
    let failure = Failure::new(FailureKind::Server);
    for budget in [
        RetryBudget::percent(10),
        RetryBudget::percent(10).shared(true),
        RetryBudget::cautious(),
        RetryBudget::cautious().shared(true),
        RetryBudget::aws_quota().capacity(10.0),
    ] {
        let acquire = |now| budget.acquire("api:443", &failure, now);
        drop(acquire(Duration::ZERO));
        let before = allocations();
        for second in 0..100 {
            drop(acquire(Duration::from_secs(second)));
            acquire(Duration::from_secs(second)).map(|permit| permit.spend());
            budget.on_success("api:443", 0);
            budget.on_success("other:443", 0);
        }
        assert!(budget.refusals() > 0, "refusals cost nothing either");
        assert_eq!(allocations() - before, 0);
    }
}

/// Memory for names that others choose is bounded, however long the names are.
// trap 54
#[test]
fn long_names_take_no_memory() {
    let guards = (CircuitBreaker::rate(), Bulkhead::new(1));
    let limit = RateLimit::new(Limit::per_second(1), 1);
    let budget = RetryBudget::cautious();
    let failure = Failure::new(FailureKind::Server);
    let before = bytes_in_use();
    for number in 0..64 {
        let host = format!("{}{number}", "h".repeat(300_000));
        let now = Duration::from_secs(number);
        for _ in 0..2 {
            let Admit::Admitted(ticket) = guards.admit(&Arrival::new(&host, now)) else {
                panic!("{number} is refused")
            };
            assert!(guards.end_ticket(ticket, &End::Unsent, now).is_none());
            budget.on_failure(&host, &failure.into(), now);
            budget.on_success(&host, 0);
        }
        assert!(limit.allow_at(&host, now) && !limit.allow_at(&host, now), "it has a state of its own");
    }
    assert!(bytes_in_use() - before < 1 << 20, "{}", bytes_in_use() - before);
    assert!(budget.destinations().iter().all(|(name, _)| name.len() == 33));
}

/// Picking an endpoint and ending the attempt allocate nothing while no endpoint is ejected or returns, whether or not
/// the attempt fails.
// E-15
#[test]
fn a_pick_costs_no_allocation() {
    let set = EndpointSet::new();
    set.update((0..20).map(|number| (0, number.to_string())), |_| (), Duration::ZERO);
    let mut random = Always(0x1234_5678_9abc_def0);
    let attempt = |health, trail: &mut Trail, random: &mut Always| {
        let ticket = set.pick(trail, Duration::ZERO, random).unwrap().ticket;
        trail.push(ticket.id());
        let end = End::judged(health, Duration::from_millis(1));
        let held = set.end_ticket(ticket, &end, Duration::ZERO, random).held.unwrap();
        set.end_ticket(held, &End::Over(BodyEnd::Complete), Duration::ZERO, random);
    };
    // A thread's first pick registers the thread with the list of endpoints.
    attempt(Health::Served, &mut Trail::new(), &mut random);
    let before = allocations();
    for call in 0..100 {
        let mut trail = Trail::new();
        let health = if call < 4 { Health::Failed } else { Health::Overloaded };
        attempt(health, &mut trail, &mut random);
        attempt(Health::Overloaded, &mut trail, &mut random);
        attempt(Health::Served, &mut trail, &mut random);
    }
    assert_eq!(allocations() - before, 0);
    assert!(set.view(Duration::ZERO).iter().any(|view| view.failing > 0.5));
}
