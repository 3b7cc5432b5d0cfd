//! Credits of successes and withdrawals of tokens, on one thread and on two.
//!
//! The bare loop does not use the budget. Ours is compared with a bare loop that also passes the name of a destination,
//! which tower's budget does not get. A credit is `on_success` alone. The layer calls `is_full` first, because a full
//! budget needs no destination. That combination has contenders of its own.
//!
//! tower's budget and governor's limiter read a clock each time, which is part of their cost. Ours
//! gets the time as an argument, because a failed call has read it anyway.

use std::hint::black_box;
#[cfg(feature = "peers")]
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(feature = "peers")]
use governor::{Quota, RateLimiter};
use reattempt::RetryBudget;
use reattempt::budget::Budget;
use reattempt::schedule::{Failure, FailureKind};
use tower::retry::budget::{Budget as _, TpsBudget};

use super::{Row, Work, above, alone};
use crate::contenders::Bucket;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "credit",
        title: "credit of a success",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || {
                let budget = full();
                repeat(move || {
                    black_box(&budget);
                })
            }),
            alone("bare-named", || {
                let budget = full();
                repeat(move || {
                    black_box(&budget);
                    black_box(DESTINATION);
                })
            }),
            above("ours-full", "bare-named", || credits(full().shared(true), false)),
            above("ours-half-full", "bare-named", || credits(half_full(tiny_ratio().shared(true)), false)),
            above("ours-full-asked", "bare", || credits(full(), true)),
            above("ours-half-full-asked", "bare-named", || credits(half_full(tiny_ratio().shared(true)), true)),
            above("ours-cautious-half-full", "bare-named", || credits(half_full_cautious(), false)),
            above("ours-half-full-keyed", "bare-named", || credits(half_full(tiny_ratio()), true)),
            above("ours-64-destinations", "bare-named", || credits(one_of_64_not_full(), true)),
            above("tower", "bare", || {
                let budget = TpsBudget::default();
                repeat(move || black_box(&budget).deposit())
            }),
            above("tower-bucket", "bare", || {
                let budget = Bucket::default();
                repeat(move || black_box(&budget).deposit())
            }),
        ],
    },
    Row {
        name: "take-and-give-back",
        title: "take and give back",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || {
                let budget = full();
                repeat(move || {
                    black_box(&budget);
                })
            }),
            alone("bare-named", || {
                let budget = full();
                repeat(move || {
                    black_box(&budget);
                    black_box(DESTINATION);
                })
            }),
            above("ours", "bare-named", || takes(ratio().shared(true), false)),
            // With the success between two failures, without which the third is the last that is granted.
            above("ours-cautious-and-credit", "bare-named", || {
                let budget = full().shared(true);
                repeat(move || {
                    drop(retry(black_box(&budget)).expect("a success came before it"));
                    budget.on_success(black_box(DESTINATION), 0);
                })
            }),
            above("ours-64-destinations", "bare-named", || takes(one_of_64_not_full(), false)),
            above("tower", "bare", || {
                // The nearest to giving back: one token is taken and one deposited.
                let budget = TpsBudget::new(Duration::from_secs(10), 1_000_000, 1.0);
                repeat(move || {
                    assert!(black_box(&budget).withdraw());
                    black_box(&budget).deposit();
                })
            }),
        ],
    },
    Row {
        name: "take-and-spend",
        title: "take and spend",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || {
                let budget = full();
                repeat(move || {
                    black_box(&budget);
                })
            }),
            alone("bare-named", || {
                let budget = full();
                repeat(move || {
                    black_box(&budget);
                    black_box(DESTINATION);
                })
            }),
            above("ours", "bare-named", || takes(plenty(), true)),
            above("tower", "bare", || {
                let budget = TpsBudget::new(Duration::from_secs(10), 200_000_000, 1.0);
                repeat(move || assert!(black_box(&budget).withdraw()))
            }),
            #[cfg(feature = "peers")]
            above("governor", "bare", || {
                let limiter = RateLimiter::direct(Quota::per_second(NonZeroU32::MAX));
                repeat(move || assert!(black_box(&limiter).check().is_ok()))
            }),
        ],
    },
    Row {
        name: "two-threads",
        title: "credits on two threads",
        operations: 2000,
        counted: false,
        timed: true,
        contenders: &[
            alone("ours-full", || on_two_threads(full(), credit)),
            alone("ours-cautious-half-full", || on_two_threads(half_full_cautious(), credit)),
            alone("ours-half-full", || on_two_threads(half_full(tiny_ratio().shared(true)), credit)),
            alone("ours-64-destinations", || on_two_threads(one_of_64_not_full(), credit)),
            alone("tower", || on_two_threads(TpsBudget::default(), TpsBudget::deposit)),
            alone("tower-bucket", || on_two_threads(Bucket::default(), Bucket::deposit)),
            alone("tower-bucket-half-full", || {
                let bucket = Bucket::new(2_000_000, 1);
                (0..1_000_000).for_each(|_| assert!(bucket.withdraw()));
                on_two_threads(bucket, Bucket::deposit)
            }),
        ],
    },
];

const DESTINATION: &str = "shop.example";

fn full() -> RetryBudget {
    RetryBudget::default()
}

fn ratio() -> RetryBudget {
    RetryBudget::percent(10)
}

/// Creates a budget without doubt, and with so few tokens that no measurement fills it.
fn half_full_cautious() -> RetryBudget {
    let budget = RetryBudget::cautious().capacity(1000.0).shared(true);
    for _ in 0..1200 {
        drop(retry(&budget).expect("a success came before it").spend());
        budget.on_success(DESTINATION, 0);
    }
    budget
}

fn retry(budget: &RetryBudget) -> Option<reattempt::budget::Permit> {
    budget.acquire_after_failure(DESTINATION, &Failure::new(FailureKind::Server).into(), NOW)
}

/// Creates a budget that no measurement fills, because a success earns so little.
fn tiny_ratio() -> RetryBudget {
    RetryBudget::ratio(0.000_001).min_per_second(0.0).capacity(2000.0)
}

/// Creates a budget with tokens for more retries than a measurement makes.
fn plenty() -> RetryBudget {
    RetryBudget::rate(1_000_000.0, 10_000_000.0).shared(true)
}

/// Spends half of the tokens of [`DESTINATION`].
fn half_full(budget: RetryBudget) -> RetryBudget {
    spend(&budget, DESTINATION, 1000);
    budget
}

/// Creates a budget with buckets for 64 destinations, of which one other than [`DESTINATION`] is
/// not full.
fn one_of_64_not_full() -> RetryBudget {
    let budget = tiny_ratio();
    for number in 1..64 {
        drop(take(&budget, &format!("host-{number}.example")));
    }
    drop(take(&budget, DESTINATION));
    spend(&budget, "host-7.example", 1000);
    budget
}

fn take(budget: &RetryBudget, destination: &str) -> Option<reattempt::budget::Permit> {
    budget.acquire(destination, &Failure::new(FailureKind::Server), NOW)
}

/// A time after the start of any budget.
const NOW: Duration = Duration::from_secs(1);

fn spend(budget: &RetryBudget, destination: &str, tokens: u32) {
    for _ in 0..tokens {
        drop(take(budget, destination).expect("there are more").spend());
    }
}

/// Credits a success, as a call does.
fn credit(budget: &RetryBudget) {
    if !budget.is_full() {
        budget.on_success(black_box(DESTINATION), 0);
    }
}

fn repeat(operation: impl Fn() + 'static) -> Work {
    Box::new(move |operations| (0..operations).for_each(|_| operation()))
}

/// Credits successes; if `asked`, only after `is_full` has returned `false`.
fn credits(budget: RetryBudget, asked: bool) -> Work {
    match asked {
        true => repeat(move || credit(black_box(&budget))),
        false => repeat(move || black_box(&budget).on_success(black_box(DESTINATION), 0)),
    }
}

fn takes(budget: RetryBudget, spent: bool) -> Work {
    repeat(move || {
        let permit = take(black_box(&budget), black_box(DESTINATION)).expect("there are more");
        if spent {
            drop(permit.spend());
        }
    })
}

/// Does half of the operations on each of two threads.
fn on_two_threads<B: Send + Sync + 'static>(budget: B, operation: fn(&B)) -> Work {
    let budget = Arc::new(budget);
    Box::new(move |operations| {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..operations / 2).for_each(|_| operation(black_box(&budget))));
            }
        });
    })
}

/// Checks that full budgets are full, half full ones are half full, and empty ones refuse.
#[cfg(feature = "peers")]
pub(super) fn check() {
    assert!(full().is_full());
    let cautious = half_full_cautious();
    assert_eq!(cautious.balance(DESTINATION), 40.0);
    credits(cautious.clone(), false)(4000);
    assert!(!cautious.is_full());
    let half = half_full(tiny_ratio());
    credits(half.clone(), true)(1_000_000);
    assert_eq!(half.balance(DESTINATION), 1001.0);
    let keyed = one_of_64_not_full();
    assert!(!keyed.is_full());
    assert_eq!(keyed.balance(DESTINATION), 2000.0);
    assert_eq!(keyed.destinations().len(), 64);
    spend(&keyed, "host-7.example", 1000);
    assert!(take(&keyed, "host-7.example").is_none());
}
