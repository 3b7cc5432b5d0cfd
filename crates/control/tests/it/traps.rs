//! Tests of defects that published retry budgets had.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind, Permit};

const FAILURE: Failure = Failure::new(FailureKind::Server);
const START: Duration = Duration::ZERO;

fn acquire(budget: &RetryBudget, destination: &str, now: Duration) -> Option<Permit> {
    budget.acquire(destination, &FAILURE, now)
}

/// Sends retries until one is refused, at most `most`. Returns the number sent.
fn drain(budget: &RetryBudget, destination: &str, now: Duration, most: u32) -> u32 {
    let mut sent = 0;
    while sent < most {
        let Some(permit) = acquire(budget, destination, now) else {
            break;
        };
        drop(permit.spend());
        sent += 1;
    }
    sent
}

/// Returns a budget without a trickle, so that only the test changes it.
fn without_trickle(ratio: f64, capacity: f64) -> RetryBudget {
    RetryBudget::ratio(ratio).capacity(capacity).min_per_second(0.0)
}

// trap 10
#[test]
fn clones_share_one_bucket_builds_do_not() {
    for budget in [without_trickle(0.1, 3.0), without_trickle(0.1, 3.0).shared(true)] {
        let clone = budget.clone();
        drop(acquire(&budget, "a", START).unwrap().spend());
        drop(acquire(&clone, "a", START).unwrap().spend());
        assert_eq!((budget.balance("a"), clone.balance("a")), (1.0, 1.0));
        clone.on_success("a", 0);
        assert_eq!((budget.balance("a"), clone.balance("a")), (1.1, 1.1));
        assert_eq!(drain(&clone, "a", START, 100), 1);
        assert!(acquire(&budget, "a", START).is_none());
        assert_eq!((budget.refusals(), clone.refusals()), (2, 2));
    }

    let (one, other) = (without_trickle(0.1, 3.0), without_trickle(0.1, 3.0));
    assert_eq!(drain(&one, "a", START, 100), 3);
    assert_eq!((other.balance("a"), other.refusals()), (3.0, 0));
}

// trap 10
#[test]
fn setter_leaves_clones_unchanged() {
    let first = without_trickle(0.1, 3.0).shared(true);
    let clone = first.clone();
    assert_eq!(drain(&first, "a", START, 2), 2);
    let second = first.capacity(5.0);
    assert_eq!((clone.balance("a"), second.balance("a")), (1.0, 5.0));
    assert_eq!(drain(&second, "a", START, 100), 5);
    assert_eq!(clone.balance("a"), 1.0);
}

// trap 11
#[test]
fn dropped_unspent_permit_returns_token() {
    for budget in [without_trickle(0.1, 1.0), without_trickle(0.1, 1.0).shared(true)] {
        for _ in 0..5 {
            let permit = acquire(&budget, "a", START).unwrap();
            assert!(acquire(&budget, "a", START).is_none(), "the only token is out");
            assert!(!budget.is_full());
            drop(permit);
            assert_eq!(budget.balance("a"), 1.0);
            assert!(budget.is_full());
        }
        assert_eq!(acquire(&budget, "a", START).unwrap().spend().cost(), 1);
        assert_eq!(budget.balance("a"), 0.0, "a token that was spent stays spent");
    }
}

// trap 11
#[test]
fn full_bucket_takes_no_returned_token() {
    let budget = without_trickle(0.3, 2.0);
    for successes in [3, 100] {
        let permit = acquire(&budget, "a", START).unwrap();
        for _ in 0..successes {
            budget.on_success("a", 0);
        }
        drop(permit);
        assert_eq!(budget.balance("a"), 2.0);
    }
    assert_eq!(drain(&budget, "a", START, 100), 2);
}

// trap 13
#[test]
fn two_hundred_threads_do_not_overdraw() {
    for budget in [without_trickle(0.1, 1000.0), without_trickle(0.1, 1000.0).shared(true)] {
        let start = Barrier::new(200);
        let sent: u32 = thread::scope(|scope| {
            let threads: Vec<_> = (0..200)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        drain(&budget, "a", START, 50)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(sent, 1000);
        assert_eq!(budget.balance("a"), 0.0);
    }
}

// trap 13
#[test]
fn ratio_is_exactly_what_it_says() {
    let rows = [(0.1, 1), (0.3, 3), (0.6, 6), (0.29, 2), (0.7, 7), (1.0, 10)];
    for (ratio, retries) in rows {
        let budget = without_trickle(ratio, 100.0);
        assert_eq!(drain(&budget, "a", START, 1000), 100);
        for _ in 0..10 {
            budget.on_success("a", 0);
        }
        assert_eq!(drain(&budget, "a", START, 1000), retries, "ten successes at {ratio}");
    }
    let budget = without_trickle(0.3, 1_000_000.0);
    drain(&budget, "a", START, 1_000_000);
    for _ in 0..100_000 {
        budget.on_success("a", 0);
    }
    assert_eq!(budget.balance("a"), 30_000.0, "and does not drift");
}

// trap 13
#[test]
fn balance_never_goes_below_zero() {
    let budget = without_trickle(0.1, 1.0);
    assert_eq!(drain(&budget, "a", START, 10), 1);
    for refusals in 2..1000 {
        assert!(acquire(&budget, "a", START).is_none());
        assert_eq!((budget.balance("a"), budget.refusals()), (0.0, refusals));
    }
    for _ in 0..10 {
        budget.on_success("a", 0);
    }
    assert_eq!(drain(&budget, "a", START, 10), 1, "and comes back at once");
}

// trap 14
#[test]
fn total_outage_adds_next_to_no_load() {
    let budget = RetryBudget::percent(10);
    let mut retries = 0;
    // A thousand calls per second for ten minutes, and every attempt fails.
    for call in 0..600_000_u64 {
        let now = Duration::from_millis(call);
        budget.on_failure("a", &FAILURE.into(), START);
        if let Some(permit) = acquire(&budget, "a", now) {
            drop(permit.spend());
            budget.on_failure("a", &FAILURE.into(), START);
            retries += 1;
        }
    }
    // The initial capacity plus the trickle: 0.003 % more load.
    assert_eq!(retries, 10 + 5);
    assert_eq!(budget.refusals(), 600_000 - retries);
}

/// While a retry is in flight, its bucket stays, and new destinations share a bucket.
// trap 15, trap 52
#[test]
fn bucket_of_retry_under_way_is_not_dropped() {
    let budget = without_trickle(0.1, 2.0).max_destinations(2);
    let _under_way = ["a", "b"].map(|name| acquire(&budget, name, START).unwrap().spend());
    drain(&budget, "a", START, 1);
    let sent = (0..100).map(|name| drain(&budget, &format!("newcomer {name}"), START, 1));
    assert_eq!(sent.sum::<u32>(), 2);
    assert_eq!(budget.balance("a"), 0.0);
    assert!(acquire(&budget, "a", START).is_none(), "no token was made by forgetting");
    assert_eq!(drain(&budget, "b", START, 10), 1);
}

// trap 15
#[test]
fn full_bucket_makes_room_for_newcomer() {
    let budget = RetryBudget::percent(10).max_destinations(2);
    drain(&budget, "a", START, 1);
    drain(&budget, "b", START, 10);
    // After a hundred seconds the trickle has filled one bucket but not the other.
    let later = Duration::from_secs(100);
    drain(&budget, "c", later, 1);
    assert_eq!(names(&budget), ["b", "c"]);
    assert_eq!(drain(&budget, "b", later, 10), 1, "what is kept keeps its balance");
    assert_eq!(drain(&budget, "a", later, 100), 10, "full when it was dropped");
}

// trap 15
#[test]
fn permit_past_its_bucket_makes_no_token() {
    let budget = RetryBudget::percent(10).max_destinations(1);
    let permits: Vec<_> = (0..10).map(|_| acquire(&budget, "a", START).unwrap()).collect();
    // A thousand seconds later time has filled the bucket. It stays because of the permits.
    let later = Duration::from_secs(1000);
    drop(acquire(&budget, "b", later).unwrap());
    assert_eq!(names(&budget), ["a"]);
    drain(&budget, "a", later, 5);
    drop(permits);
    assert_eq!(budget.balance("a"), 10.0);
    drop(acquire(&budget, "b", later).unwrap());
    assert_eq!(names(&budget), ["b"]);
    assert_eq!(drain(&budget, "a", later, 100), 10);
}

// trap 15
#[test]
fn one_bad_host_does_not_starve_the_others() {
    let budget = RetryBudget::percent(10);
    assert_eq!(drain(&budget, "bad", START, 1000), 10);
    assert!(acquire(&budget, "bad", START).is_none());
    for name in ["good", "better"] {
        assert_eq!(budget.balance(name), 10.0);
        assert_eq!(drain(&budget, name, START, 1000), 10);
    }
}

// trap 15
#[test]
fn number_of_destinations_is_bounded() {
    let budget = RetryBudget::percent(10);
    let retry = |name: u32| acquire(&budget, &format!("host-{name}"), START).map(Permit::spend);
    let under_way: Vec<_> = (0..5000).filter_map(retry).collect();
    assert_eq!(budget.destinations().len(), 1024);
    // Destinations beyond the bound have shared one bucket, because every other bucket has a retry in flight.
    assert_eq!(under_way.len(), 1024 + 10);
    assert_eq!(budget.refusals(), 5000 - 1034);
    for _ in 0..10 {
        budget.on_success("host-4999", 0);
    }
    assert_eq!(drain(&budget, "host-4998", START, 10), 1, "and a success of one pays for all");
    drop(under_way);
    assert_eq!((5000..9000).filter_map(retry).count(), 4000, "each has a bucket of its own");
    assert_eq!(budget.destinations().len(), 1024);
}

// trap 15
#[test]
fn success_alone_takes_no_place_in_table() {
    let budget = RetryBudget::percent(10);
    drain(&budget, "busy", START, 1);
    assert!(!budget.is_full());
    for name in 0..100 {
        budget.on_success(&format!("host-{name}"), 0);
    }
    assert_eq!(names(&budget), ["busy"]);
}

// trap 15
#[test]
fn success_is_credited_beside_any_others() {
    // Many more than there are slots to count them in, so that some are counted together.
    let budget = without_trickle(0.5, 2.0);
    let names: Vec<_> = (0..1000).map(|name| format!("host-{name}")).collect();
    for name in &names {
        drain(&budget, name, START, 1);
    }
    for name in &names {
        assert!(!budget.is_full());
        assert_eq!(budget.balance(name), 1.0);
        for balance in [1.5, 2.0, 2.0] {
            budget.on_success(name, 0);
            assert_eq!(budget.balance(name), balance);
        }
    }
    assert!(budget.is_full());
}

// trap 15
#[test]
fn placeless_success_is_credited_to_all() {
    for name in 0..16 {
        let budget = without_trickle(0.5, 2.0).max_destinations(1);
        let _under_way = acquire(&budget, "first", START).unwrap().spend();
        drain(&budget, "second", START, 1);
        let other = format!("host-{name}");
        budget.on_success(&other, 0);
        assert_eq!(budget.balance("first"), 1.0);
        budget.on_success(&other, 0);
        budget.on_success("first", 0);
        budget.on_success("first", 0);
        assert!(budget.is_full());
    }
}

// trap 15
#[test]
fn unused_destination_lets_budget_be_full() {
    let a_token_in_ten_seconds = || RetryBudget::percent(10).min_per_second(0.1);
    let budget = a_token_in_ten_seconds();
    let retry_elsewhere = |second| drop(acquire(&budget, "busy", Duration::from_secs(second)));
    drain(&budget, "once", START, 1);
    retry_elsewhere(9);
    assert_eq!((budget.balance("once"), budget.is_full()), (9.0, false));
    retry_elsewhere(10);
    assert_eq!((budget.balance("once"), budget.is_full()), (10.0, true));

    // The next search is ten seconds after the last, and time is not credited twice.
    drain(&budget, "once", Duration::from_secs(11), 1);
    assert_eq!(budget.balance("once"), 9.0);
    retry_elsewhere(20);
    assert_eq!((budget.balance("once"), budget.is_full()), (9.0, false));
    retry_elsewhere(30);
    assert_eq!((budget.balance("once"), budget.is_full()), (10.0, true));
    assert_eq!(drain(&budget, "once", Duration::from_secs(30), 100), 10);

    // Neither does the shared bucket of destinations without a place.
    let budget = a_token_in_ten_seconds().max_destinations(1);
    let _under_way = acquire(&budget, "busy", START).unwrap().spend();
    drain(&budget, "busy", START, 1);
    drain(&budget, "once", START, 1);
    assert_eq!((budget.balance("busy"), budget.is_full()), (8.0, false));
    drop(acquire(&budget, "busy", Duration::from_secs(10)));
    (0..10).for_each(|_| budget.on_success("busy", 0));
    assert_eq!((budget.balance("busy"), budget.is_full()), (10.0, true));
}

// trap 21
#[test]
fn moment_before_the_last_makes_no_token() {
    let budget = RetryBudget::rate(1.0, 5.0);
    let late = Duration::from_secs(100);
    assert_eq!(drain(&budget, "a", late, 100), 5);
    for moment in [0, 50, 99, 100] {
        assert!(acquire(&budget, "a", Duration::from_secs(moment)).is_none());
    }
    assert_eq!(drain(&budget, "a", Duration::from_secs(101), 100), 1, "counted from the latest");

    // A take at an earlier time, granted from existing tokens, does not turn the clock back either.
    assert_eq!(drain(&budget, "b", late, 4), 4);
    assert_eq!(drain(&budget, "b", START, 100), 1);
    assert!(acquire(&budget, "b", late).is_none());
}

// trap 21
#[test]
fn far_end_of_time_does_not_overflow() {
    for (rate, burst) in [(0.000_001, 1.0), (0.1, 5.0), (1_000_000.0, 10_000.0)] {
        let budget = RetryBudget::rate(rate, burst);
        let most = 20_000;
        let full = drain(&budget, "a", START, most);
        let ends = [u64::from(u32::MAX), u64::MAX >> 21, u64::MAX >> 1, u64::MAX];
        let mut previous = START;
        for end in ends.map(|seconds| Duration::new(seconds, 999_999_999)) {
            assert_eq!(drain(&budget, "a", end, most), full, "{end:?}");
            assert!(acquire(&budget, "a", previous).is_none());
            previous = end;
            if end.as_secs() > u64::MAX >> 20 {
                break; // Beyond half a million years time stands still.
            }
        }
        assert!(acquire(&budget, "a", Duration::MAX).is_none());
    }
}

// trap 21
#[test]
fn wrapping_stretch_of_time_fills_bucket() {
    // 2^24 millionths a second for 2^40 seconds.
    let budget = RetryBudget::rate(16.777_216, 5.0);
    assert_eq!(drain(&budget, "a", START, 100), 5);
    assert_eq!(drain(&budget, "a", Duration::from_secs(1 << 40), 100), 5);
}

fn names(budget: &RetryBudget) -> Vec<String> {
    budget.destinations().iter().map(|(name, _)| name.to_string()).collect()
}
