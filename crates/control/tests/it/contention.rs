//! Tests with two hundred threads on one budget, in which every token is accounted for, to the millionth.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind, PaidRetry, Permit};

const THREADS: u64 = 200;
const STEPS: u64 = 200;
const FAILURE: Failure = Failure::new(FailureKind::Timeout);

/// The counts of a run: retries sent, and successful calls.
#[derive(Default)]
struct Counts {
    sent: u64,
    succeeded: u64,
}

/// Steps through ten seconds. Each thread has its own clock, which is up to a second late.
fn work(budget: &RetryBudget, destination: &str, thread: u64) -> Counts {
    let mut counts = Counts::default();
    let mut random = thread.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for step in 0..STEPS {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let now = Duration::from_millis((step * 50).saturating_sub(random % 1000));
        match random >> 62 {
            0 | 1 => {
                budget.on_success(destination, 0);
                counts.succeeded += 1;
            }
            2 => drop(budget.acquire(destination, &FAILURE, now)),
            _ => {
                if let Some(permit) = budget.acquire(destination, &FAILURE, now) {
                    drop(permit.spend());
                    counts.sent += 1;
                }
            }
        }
    }
    counts
}

fn run(budget: &RetryBudget, destinations: u64) -> Vec<Counts> {
    let start = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let destination = thread % destinations;
                    (destination, work(budget, &format!("host-{destination}"), thread))
                })
            })
            .collect();
        let mut totals: Vec<_> = (0..destinations).map(|_| Counts::default()).collect();
        for (destination, counts) in threads.into_iter().map(|thread| thread.join().unwrap()) {
            let total = &mut totals[usize::try_from(destination).unwrap()];
            total.sent += counts.sent;
            total.succeeded += counts.succeeded;
        }
        totals
    })
}

/// Sends retries at `now` until one is refused.
fn drain(budget: &RetryBudget, destination: &str, now: Duration) -> u64 {
    let mut sent = 0;
    while let Some(permit) = budget.acquire(destination, &FAILURE, now) {
        drop(permit.spend());
        sent += 1;
    }
    sent
}

/// Sends retries at the start until one is refused. They stay in flight.
fn under_way(budget: &RetryBudget, destination: &str) -> Vec<PaidRetry> {
    let retry = || budget.acquire(destination, &FAILURE, Duration::ZERO).map(Permit::spend);
    std::iter::from_fn(retry).collect()
}

#[test]
fn every_token_is_accounted_for() {
    let build = || RetryBudget::ratio(0.3).capacity(20_000.0);
    let build = || build().min_per_second(7.7);
    for (budget, destinations) in [(build().shared(true), 1), (build(), 1), (build(), 5)] {
        // The capacity is larger than everything that comes in, so nothing is lost at it.
        for destination in 0..destinations {
            assert_eq!(drain(&budget, &format!("host-{destination}"), Duration::ZERO), 20_000);
        }
        let totals = run(&budget, destinations);
        for (destination, mut total) in totals.into_iter().enumerate() {
            let end = Duration::from_secs(10);
            total.sent += drain(&budget, &format!("host-{destination}"), end);
            let earned = 300_000 * total.succeeded + 7_700_000 * 10;
            assert_eq!(total.sent, earned / 1_000_000);
        }
    }
}

#[test]
fn a_full_bucket_is_never_more_than_full() {
    for build in [|| RetryBudget::percent(10), || RetryBudget::percent(10).shared(true)] {
        let budget = build();
        let total = &run(&budget, 1)[0];
        let end = Duration::from_secs(10);
        let sent = total.sent + drain(&budget, "host-0", end);
        // Capacity, ratio and trickle, in tenths of a token.
        assert!(10 * sent <= 100 + total.succeeded + 10);
        for _ in 0..100 {
            budget.on_success("host-0", 0);
        }
        assert_eq!(budget.balance("host-0"), 10.0);
        assert!(budget.is_full(), "the count of buckets that are not full is back at zero");
    }
}

#[test]
fn short_lived_buckets_make_no_tokens() {
    // Two places for a hundred destinations, each with one token and no way to earn another. A bucket with a retry in
    // flight stays, so at most three tokens exist: those of the two places and of the shared bucket.
    let budget = RetryBudget::ratio(0.1).capacity(1.0).min_per_second(0.0);
    let budget = budget.max_destinations(2);
    let start = Barrier::new(100);
    let sent: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..100)
            .map(|thread| {
                let (budget, start) = (&budget, &start);
                scope.spawn(move || {
                    start.wait();
                    let name = format!("host-{thread}");
                    // Permits dropped unspent refill their bucket, which may then be retired while another thread is
                    // about to take from it.
                    for _ in 0..50 {
                        drop(budget.acquire(&name, &FAILURE, Duration::ZERO));
                    }
                    under_way(budget, &name)
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sent.len(), 3);
    assert_eq!(budget.destinations().len(), 2);
    assert!(!budget.is_full());
}

#[test]
fn take_racing_bucket_end_makes_no_token() {
    // One place, with a full bucket in it. One thread takes from it while another thread's new destination evicts it.
    // In either order two tokens exist, one in the place and one in the shared bucket.
    for _ in 0..2000 {
        let budget = RetryBudget::ratio(0.1).capacity(1.0).min_per_second(0.0);
        let budget = budget.max_destinations(1);
        drop(budget.acquire("old", &FAILURE, Duration::ZERO));
        let start = Barrier::new(2);
        let sent: Vec<_> = thread::scope(|scope| {
            let threads = ["old", "new"].map(|name| {
                let (budget, start) = (&budget, &start);
                scope.spawn(move || {
                    start.wait();
                    under_way(budget, name)
                })
            });
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let left = ["old", "new"].map(|name| under_way(&budget, name));
        assert_eq!(sent.len() + left.iter().map(Vec::len).sum::<usize>(), 2);
    }
}
