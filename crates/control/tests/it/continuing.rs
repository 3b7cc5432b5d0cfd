//! A budget with other numbers that continues with a former budget's state.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind};

const FAILURE: Failure = Failure::new(FailureKind::Server);

/// Returns the number of retries that the budget grants at `now`, at most 1000.
fn granted(budget: &RetryBudget, now: Duration) -> usize {
    let retry = || budget.acquire_after_failure("a", &FAILURE.into(), now).map(|permit| permit.spend());
    (0..1000).take_while(|_| retry().is_some()).count()
}

/// A change of numbers in an outage grants nothing: tokens are neither refilled nor scaled.
#[test]
fn changed_numbers_keep_the_tokens() {
    let now = Duration::from_secs(5000);
    for (former, changed) in [
        (RetryBudget::ratio(0.1), RetryBudget::ratio(0.5).capacity(100.0)),
        (RetryBudget::rate(0.001, 4.0), RetryBudget::rate(0.002, 40.0)),
        (RetryBudget::aws_quota(), RetryBudget::aws_quota().capacity(1000.0)),
        (RetryBudget::cautious(), RetryBudget::cautious().capacity(100.0)),
        (RetryBudget::ratio(0.1).shared(true), RetryBudget::ratio(0.2).shared(true)),
    ] {
        assert!(granted(&former, now) > 0);
        let balance = former.balance("a");
        let budget = changed.continuing(&former);
        assert_eq!(budget.balance("a"), balance, "{budget:?}");
        assert_eq!(granted(&budget, now), 0, "{budget:?}");
        assert_eq!(budget.is_full(), former.is_full(), "successes that add tokens must be recorded");
    }
}

#[test]
fn lower_capacity_cuts_the_tokens() {
    let now = Duration::from_secs(1);
    let former = RetryBudget::ratio(0.1).min_per_second(0.0);
    drop(former.acquire("a", &FAILURE, now).unwrap().spend());
    let budget = RetryBudget::ratio(0.1).min_per_second(0.0).capacity(2.0).continuing(&former);
    assert_eq!(budget.balance("a"), 2.0);
    assert_eq!(granted(&budget, now), 2);
}

/// Time counts from the former budget's last refill, and quiet from the last failure.
#[test]
fn time_counts_from_the_former_budget() {
    let now = Duration::from_secs(5000);
    let former = RetryBudget::rate(0.1, 4.0);
    assert_eq!(granted(&former, now), 4);
    let budget = RetryBudget::rate(0.1, 5.0).continuing(&former);
    assert_eq!(granted(&budget, now + Duration::from_secs(20)), 2);

    let former = RetryBudget::cautious();
    assert_eq!(granted(&former, now), 3);
    let budget = RetryBudget::cautious().capacity(20.0).continuing(&former);
    assert_eq!(granted(&budget, now + Duration::from_secs(599)), 0);
    let budget = RetryBudget::cautious().capacity(20.0).continuing(&former);
    assert_eq!(granted(&budget, now + Duration::from_secs(601)), 3);
}

#[test]
fn same_numbers_share_the_buckets() {
    let former = RetryBudget::ratio(0.1);
    let budget = RetryBudget::ratio(0.1).continuing(&former);
    drop(former.acquire("a", &FAILURE, Duration::ZERO).unwrap().spend());
    assert_eq!(budget.balance("a"), 9.0);
}

#[test]
fn another_kind_starts_full() {
    let former = RetryBudget::ratio(0.1);
    drop(former.acquire("a", &FAILURE, Duration::ZERO).unwrap().spend());
    for other in [RetryBudget::cautious(), RetryBudget::ratio(0.1).shared(true), RetryBudget::unlimited()] {
        assert!(other.continuing(&former).is_full());
    }
}

/// A budget that continues twice, as after two changes at once, is full again after the same successes.
#[test]
fn continuing_twice_counts_a_bucket_once() {
    for (former, changed) in [
        (RetryBudget::ratio(0.5), RetryBudget::ratio(1.0).capacity(8.0)),
        (RetryBudget::cautious(), RetryBudget::cautious().capacity(8.0)),
    ] {
        for _ in 0..3 {
            drop(former.acquire("a", &FAILURE, Duration::ZERO).unwrap().spend());
        }
        let budget = changed.continuing(&former).continuing(&former);
        assert!(!budget.is_full());
        for _ in 0..10_000 {
            budget.on_success("a", 0);
        }
        assert!(budget.is_full(), "{budget:?}");
    }
}

/// A budget that continues twice has the fewer tokens and the higher doubt, in either order.
#[test]
fn continuing_twice_keeps_stricter_state() {
    let doubted = RetryBudget::cautious();
    let spent = RetryBudget::cautious();
    for _ in 0..10 {
        doubted.on_failure("a", &FAILURE.into(), Duration::ZERO);
    }
    for _ in 0..3 {
        drop(spent.acquire("a", &FAILURE, Duration::ZERO).unwrap().spend());
    }
    for _ in 0..3 {
        spent.on_success("a", 0);
    }
    assert!(spent.balance("a") < doubted.balance("a"));
    assert!(spent.acquire("a", &FAILURE, Duration::ZERO).is_some(), "no doubt");
    for (first, second) in [(&doubted, &spent), (&spent, &doubted)] {
        let budget = RetryBudget::cautious().capacity(20.0).continuing(first).continuing(second);
        assert_eq!(budget.balance("a"), spent.balance("a"));
        assert_eq!(granted(&budget, Duration::ZERO), 0);
    }
}
