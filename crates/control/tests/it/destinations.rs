//! Tests that credits find their destination's bucket, whatever was added to the table and evicted since.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind, PaidRetry};

const FAILURE: Failure = Failure::new(FailureKind::Server);

/// Returns a budget with this many tokens per destination, and a tenth per success.
fn budget(tokens: f64, destinations: usize) -> RetryBudget {
    let budget = RetryBudget::ratio(0.1).capacity(tokens);
    budget.min_per_second(0.0).max_destinations(destinations)
}

fn spend(budget: &RetryBudget, destination: &str) -> PaidRetry {
    budget.acquire(destination, &FAILURE, Duration::ZERO).unwrap().spend()
}

#[test]
fn destination_back_in_table_is_credited() {
    let budget = budget(1.0, 1);
    drop(spend(&budget, "a"));
    for name in ["b", "a", "b", "a"] {
        // The bucket in the only place is full again, so the new destination evicts it.
        let resident = &budget.destinations()[0].0;
        (0..10).for_each(|_| budget.on_success(resident, 0));
        drop(spend(&budget, name));
        assert_eq!(budget.destinations(), [(name.into(), 0.0)]);
        budget.on_success(name, 0);
        assert_eq!(budget.balance(name), 0.1);
    }
}

#[test]
fn destination_back_in_table_gets_paid_back() {
    let quota = RetryBudget::aws_quota().capacity(10.0).max_destinations(1);
    for name in ["a", "b", "a", "b"] {
        let retry = spend(&quota, name);
        assert_eq!(quota.destinations(), [(name.into(), 5.0)]);
        retry.succeed();
        assert_eq!(quota.balance(name), 10.0);
    }
}

#[test]
fn thousand_destinations_credited_apart() {
    let budget = budget(2.0, 1000);
    let names: Vec<String> = (0..1000).map(|number| format!("host-{number}")).collect();
    names.iter().for_each(|name| drop(spend(&budget, name)));
    for (number, name) in names.iter().enumerate() {
        (0..number % 10).for_each(|_| budget.on_success(name, 0));
    }
    for (number, name) in names.iter().enumerate() {
        let millionths = 1_000_000 + 100_000 * (number % 10) as u64;
        assert_eq!(budget.balance(name), millionths as f64 / 1e6, "{name}");
    }
}

#[test]
fn shared_budget_is_not_keyed() {
    assert!(RetryBudget::default().is_keyed());
    assert!(!RetryBudget::default().shared(true).is_keyed());
    assert!(!RetryBudget::unlimited().is_keyed());
}

/// A bucket that time has filled is no longer counted when it is evicted.
#[test]
fn bucket_filled_by_time_leaves_uncounted() {
    let budget = RetryBudget::ratio(0.1).capacity(1.0);
    let budget = budget.min_per_second(1.0).max_destinations(1);
    drop(spend(&budget, "a"));
    drop(budget.acquire("b", &FAILURE, Duration::from_secs(2)).unwrap());
    assert_eq!((budget.destinations(), budget.is_full()), (vec![("b".into(), 1.0)], true));
}

/// A full bucket is evicted before one that was used earlier, and the shared bucket is no longer used.
#[test]
fn free_place_is_a_full_bucket() {
    let budget = budget(1.0, 2);
    let under_way = ["a", "b", "c"].map(|name| spend(&budget, name));
    assert!(budget.acquire("e", &FAILURE, Duration::ZERO).is_none(), "shared with c");
    drop(under_way);
    (0..10).for_each(|_| budget.on_success("b", 0));
    drop(spend(&budget, "d"));
    assert_eq!(budget.destinations(), [("a".into(), 0.0), ("d".into(), 0.0)]);
}

/// A bucket with doubt stays, and a destination that comes back has its own bucket again.
#[test]
fn only_full_cautious_buckets_leave() {
    let budget = RetryBudget::cautious().max_destinations(2);
    let fail = |name: &str| budget.on_failure(name, &FAILURE.into(), Duration::ZERO);
    let names = || budget.destinations().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    ["bad", "good"].into_iter().for_each(fail);
    budget.on_success("good", 0);
    fail("new");
    assert_eq!(names(), ["bad", "new"].map(Into::into));
    budget.on_success("new", 0);
    fail("good");
    assert_eq!(names(), ["bad", "good"].map(Into::into));
    budget.on_success("bad", 0);
    budget.on_success("good", 0);
    assert!(budget.is_full());
}
