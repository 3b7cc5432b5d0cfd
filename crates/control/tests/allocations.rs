//! Allocations of a call: none, once its destination has asked for a token before.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind};
use reattempt_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_known_destination_costs_no_allocation() {
    let failure = Failure::new(FailureKind::Server);
    for budget in [
        RetryBudget::percent(10),
        RetryBudget::percent(10).shared(),
        RetryBudget::cautious(),
        RetryBudget::cautious().shared(),
        RetryBudget::aws_quota().capacity(10.0).unwrap(),
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
