//! Tests of AWS's retry quota: its costs, its refunds, and defects of published budgets that it could have had.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind, PaidRetry, Permit};

const BUSY: Failure = Failure::new(FailureKind::Throttled);
const TIMEOUT: Failure = Failure::new(FailureKind::Timeout);
const START: Duration = Duration::ZERO;

fn acquire(budget: &RetryBudget, failure: &Failure) -> Option<Permit> {
    budget.acquire("a", failure, START)
}

/// Sends retries until one is refused. Returns the number sent.
fn drain(budget: &RetryBudget, destination: &str, failure: &Failure) -> u32 {
    let mut sent = 0;
    while let Some(permit) = budget.acquire(destination, failure, START) {
        drop(permit.spend());
        sent += 1;
    }
    sent
}

#[test]
fn quota_pays_100_retries_or_50_timeouts() {
    let kinds = [
        (FailureKind::Connect, 100),
        (FailureKind::Network, 100),
        (FailureKind::Throttled, 100),
        (FailureKind::Server, 100),
        (FailureKind::Other, 100),
        (FailureKind::Timeout, 50),
    ];
    for (kind, retries) in kinds {
        for quota in [RetryBudget::aws_quota(), RetryBudget::aws_quota().shared(true)] {
            assert_eq!((quota.balance("a"), quota.is_full()), (500.0, true));
            assert_eq!(drain(&quota, "a", &Failure::new(kind)), retries, "{kind}");
            assert_eq!((quota.balance("a"), quota.refusals()), (0.0, 1));
            assert!(!quota.is_full());
        }
    }
}

#[test]
fn too_dear_retry_is_refused_and_takes_none() {
    let quota = RetryBudget::aws_quota().capacity(12.0);
    assert_eq!(acquire(&quota, &BUSY).unwrap().spend().cost(), 5);
    assert!(acquire(&quota, &TIMEOUT).is_none());
    assert_eq!((quota.balance("a"), quota.refusals()), (7.0, 1));
    assert_eq!(acquire(&quota, &BUSY).unwrap().spend().cost(), 5);
    assert!(acquire(&quota, &BUSY).is_none());
    assert_eq!((quota.balance("a"), quota.refusals()), (2.0, 2));
}

#[test]
fn success_returns_payment_or_gives_one() {
    for quota in [RetryBudget::aws_quota(), RetryBudget::aws_quota().shared(true)] {
        let [first, dear, last] = [BUSY, TIMEOUT, BUSY].map(|failure| acquire(&quota, &failure).unwrap().spend());
        assert_eq!([&first, &dear, &last].map(PaidRetry::cost), [5, 10, 5]);
        assert_eq!(quota.balance("a"), 480.0);
        dear.succeed();
        quota.on_success("a", 1);
        assert_eq!(quota.balance("a"), 490.0);
        quota.on_success("a", 0);
        assert_eq!(quota.balance("a"), 491.0);
        drop(first);
        assert_eq!(quota.balance("a"), 491.0, "a retry that fails returns nothing");
        last.succeed();
        quota.on_success("a", 0);
        quota.on_success("a", 0);
        (0..3).for_each(|_| quota.on_success("a", 0));
        assert_eq!((quota.balance("a"), quota.is_full()), (500.0, true), "and never more");
        quota.on_success("a", u32::MAX);
        assert_eq!(quota.balance("a"), 500.0);
    }
}

#[test]
fn time_gives_nothing_five_successes_pay() {
    let quota = RetryBudget::aws_quota();
    drain(&quota, "a", &BUSY);
    let late = Duration::from_secs(3600 * 24 * 365);
    assert!(quota.acquire("a", &BUSY, late).is_none());
    for _ in 0..4 {
        quota.on_success("a", 0);
    }
    assert!(quota.acquire("a", &BUSY, late).is_none());
    quota.on_success("a", 0);
    assert!(quota.acquire("a", &BUSY, late).is_some());
}

#[test]
fn ratio_budget_credits_ratio_only() {
    let budget = RetryBudget::ratio(0.1);
    drain(&budget, "a", &TIMEOUT);
    budget.on_success("a", 7);
    assert_eq!(budget.balance("a"), 0.1);
}

#[test]
fn settings_are_clamped_to_their_ranges() {
    let aws = RetryBudget::aws_quota;
    let rows = [
        (RetryBudget::quota(0, 10), RetryBudget::quota(1, 10)),
        (RetryBudget::quota(501, 10), RetryBudget::quota(500, 10)),
        (RetryBudget::quota(5, 0), RetryBudget::quota(5, 1)),
        (RetryBudget::quota(5, u32::MAX), RetryBudget::quota(5, 500)),
        (aws().capacity(9.99), aws().capacity(10.0)),
        (aws().capacity(f64::NAN), aws().capacity(10.0)),
        (aws().min_per_second(-1.0), aws().min_per_second(0.0)),
    ];
    for (beyond, end) in rows {
        assert_eq!(format!("{beyond:?}"), format!("{end:?}"));
    }
    let quota = RetryBudget::quota(500, 1);
    assert_eq!((drain(&quota, "a", &BUSY), drain(&quota, "b", &TIMEOUT)), (1, 500));
    let quota = aws().capacity(10.0).min_per_second(1.0);
    assert_eq!(drain(&quota, "a", &TIMEOUT), 1);
    let second = Duration::from_secs(5);
    assert!(quota.acquire("a", &BUSY, second).is_some(), "a trickle that was asked for");
}

#[test]
fn what_it_says_of_itself() {
    let quota = RetryBudget::aws_quota();
    drain(&quota, "a", &BUSY);
    acquire(&RetryBudget::clone(&quota), &BUSY);
    assert_eq!(
        format!("{quota:?}"),
        "RetryBudget { kind: quota, retry: 5, after_timeout: 10, capacity: 500.0, min_per_second: 0.0, \
         refusals: 2, destinations: 1, not_full: {\"a\": 0.0} }"
    );
}

// trap 10
#[test]
fn clones_share_one_quota() {
    let quota = RetryBudget::aws_quota();
    let (clone, other) = (quota.clone(), RetryBudget::aws_quota());
    assert_eq!(drain(&clone, "a", &BUSY), 100);
    assert_eq!((quota.balance("a"), other.balance("a")), (0.0, 500.0));
}

// trap 11
#[test]
fn dropped_unspent_permit_returns_all() {
    let quota = RetryBudget::aws_quota().capacity(10.0);
    for failure in [BUSY, TIMEOUT] {
        let permit = acquire(&quota, &failure).unwrap();
        assert!(!quota.is_full());
        drop(permit);
        assert_eq!((quota.balance("a"), quota.is_full()), (10.0, true));
    }
}

// trap 13
#[test]
fn two_hundred_threads_do_not_overdraw() {
    for quota in [RetryBudget::aws_quota(), RetryBudget::aws_quota().shared(true)] {
        let start = Barrier::new(200);
        let paid: u32 = thread::scope(|scope| {
            let threads: Vec<_> = (0..200)
                .map(|thread| {
                    let (quota, start) = (&quota, &start);
                    scope.spawn(move || {
                        start.wait();
                        let failure = if thread % 2 == 0 { BUSY } else { TIMEOUT };
                        (0..50)
                            .filter_map(|_| acquire(quota, &failure))
                            .map(|permit| permit.spend().cost())
                            .sum::<u32>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((paid, quota.balance("a")), (500, 0.0));
    }
}

// trap 13
#[test]
fn contention_accounts_for_every_token() {
    // As much is refunded as is paid, so the capacity is never reached and nothing is lost at it.
    let build = || RetryBudget::aws_quota().capacity(100_000.0);
    for quota in [build(), build().shared(true)] {
        drain(&quota, "a", &BUSY);
        for _ in 0..20_000 {
            quota.on_success("a", 0);
        }
        let start = Barrier::new(200);
        let (spent, at_once): (u64, u64) = thread::scope(|scope| {
            let threads: Vec<_> = (0..200)
                .map(|thread| {
                    let (quota, start) = (&quota, &start);
                    scope.spawn(move || {
                        start.wait();
                        work(quota, thread)
                    })
                })
                .collect();
            let totals = threads.into_iter().map(|thread| thread.join().unwrap());
            totals.fold((0, 0), |(spent, at_once), (more, other)| (spent + more, at_once + other))
        });
        assert_eq!(quota.balance("a"), (20_000 + at_once - spent) as f64);
    }
}

/// Returns the tokens spent on failed calls, and the number of calls that succeeded at once.
fn work(quota: &RetryBudget, thread: u64) -> (u64, u64) {
    let (mut spent, mut at_once) = (0, 0);
    for step in 0..200 {
        let failure = if (thread + step).is_multiple_of(2) { BUSY } else { TIMEOUT };
        match (thread + step / 2) % 4 {
            0 => {
                quota.on_success("a", 0);
                at_once += 1;
            }
            1 => drop(acquire(quota, &failure)),
            2 => {
                if let Some(permit) = acquire(quota, &failure) {
                    permit.spend().succeed();
                    quota.on_success("a", 1);
                }
            }
            _ => spent += u64::from(acquire(quota, &failure).map_or(0, |permit| permit.spend().cost())),
        }
    }
    (spent, at_once)
}

// trap 14
#[test]
fn total_outage_adds_next_to_no_load() {
    let quota = RetryBudget::aws_quota();
    let granted = (0..600_000_u64).filter(|call| {
        let now = Duration::from_millis(*call);
        quota.acquire_after_failure("a", &BUSY.into(), now).map(|permit| permit.spend().cost()).is_some()
    });
    assert_eq!(granted.count(), 100);
}

// trap 15
#[test]
fn destinations_have_quotas_of_their_own() {
    let quota = RetryBudget::aws_quota().max_destinations(1);
    let _under_way = quota.acquire_after_failure("bad", &BUSY.into(), START).unwrap().spend();
    assert_eq!(drain(&quota, "bad", &BUSY), 99);
    for name in 0..100 {
        // The other destinations share a bucket, which their retries empty.
        drain(&quota, &format!("host-{name}"), &TIMEOUT);
    }
    assert_eq!(quota.refusals(), 101);
    (0..10).for_each(|_| quota.on_success("host-7", 0));
    assert_eq!(quota.balance("bad"), 0.0);
    let retry = quota.acquire("host-9", &TIMEOUT, START).unwrap().spend();
    assert!(quota.acquire("host-8", &TIMEOUT, START).is_none());
    retry.succeed();
    assert!(quota.acquire("host-8", &TIMEOUT, START).is_some());
    assert_eq!(quota.balance("bad"), 0.0);

    let quota = RetryBudget::aws_quota();
    drain(&quota, "bad", &BUSY);
    assert_eq!(drain(&quota, "good", &BUSY), 100);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Retry { name: usize, timeout: bool, spend: bool },
    GiveBack,
    Succeed { name: usize, of_retry: bool },
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_usize, any::<bool>(), any::<bool>())
            .prop_map(|(name, timeout, spend)| Step::Retry { name, timeout, spend }),
        1 => Just(Step::GiveBack),
        3 => (0..2_usize, any::<bool>())
            .prop_map(|(name, of_retry)| Step::Succeed { name, of_retry }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_quota_does_what_a_serial_model_does(
        (retry, after_timeout) in (1..=60_u32, 1..=60_u32),
        capacity in 60..=500_u32,
        shared in any::<bool>(),
        steps in proptest::collection::vec(steps(), 1..200),
    ) {
        let names = ["a", "b"];
        let quota = RetryBudget::quota(retry, after_timeout);
        let quota = quota.capacity(capacity.into());
        let quota = if shared { quota.shared(true) } else { quota };
        let bucket = |name: usize| if shared { 0 } else { name };
        let mut model = HashMap::from([(0, capacity), (1, capacity)]);
        let mut held: Vec<(usize, u32, Permit)> = Vec::new();
        let mut spent: Vec<(usize, PaidRetry)> = Vec::new();
        let mut refusals = 0;
        for step in steps {
            match step {
                Step::Retry { name, timeout, spend } => {
                    let cost = if timeout { after_timeout } else { retry };
                    let failure = if timeout { TIMEOUT } else { BUSY };
                    let permit = quota.acquire(names[name], &failure, START);
                    let balance = model.get_mut(&bucket(name)).unwrap();
                    prop_assert_eq!(permit.is_some(), *balance >= cost);
                    let Some(permit) = permit else {
                        refusals += 1;
                        continue;
                    };
                    *balance -= cost;
                    if spend {
                        let retry = permit.spend();
                        prop_assert_eq!(retry.cost(), cost);
                        spent.push((bucket(name), retry));
                    } else {
                        held.push((bucket(name), cost, permit));
                    }
                }
                Step::GiveBack => {
                    if let Some((name, cost, permit)) = held.pop() {
                        drop(permit);
                        let balance = model.get_mut(&name).unwrap();
                        *balance = (*balance + cost).min(capacity);
                    }
                }
                Step::Succeed { name, of_retry } => {
                    let retry = spent.pop().filter(|_| of_retry);
                    let (own, returned) = match &retry {
                        Some((own, retry)) => (*own, retry.cost()),
                        None => (bucket(name), 1),
                    };
                    quota.on_success(names[name], retry.is_some().into());
                    if let Some((_, retry)) = retry {
                        retry.succeed();
                    }
                    let balance = model.get_mut(&own).unwrap();
                    *balance = (*balance + returned).min(capacity);
                }
            }
            for (name, destination) in names.into_iter().enumerate() {
                prop_assert_eq!(quota.balance(destination), f64::from(model[&bucket(name)]));
            }
            let full = if shared { model[&0] == capacity } else { model.values().all(|b| *b == capacity) };
            prop_assert_eq!(quota.is_full(), full);
            prop_assert_eq!(quota.refusals(), refusals);
        }
    }
}
