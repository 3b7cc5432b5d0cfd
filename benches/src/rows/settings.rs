//! Fresh calls that succeed at the first attempt, with settings beyond the defaults.
//!
//! A bucket of the budget is not full, an observer is notified, or a hook runs.

use std::future::ready;
use std::hint::black_box;
use std::time::Duration;

use reattempt::budget::Budget;
use reattempt::schedule::{Constant, Failure, FailureKind};
use reattempt::{Http, Retry, RetryBudget, RetryPolicy};

use super::call::each;
use super::{Row, above, alone};
use crate::contenders::ours;
use crate::inner::Answers;
use crate::requests::fresh;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "not-full",
        title: "first-time success while a bucket is not full, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours-full", "bare", || each(with_budget(scant()), fresh)),
            above("ours-own-not-full", "bare", || each(not_full("shop.example"), fresh)),
            above("ours-other-not-full", "bare", || each(not_full("another.example"), fresh)),
        ],
    },
    Row {
        name: "observer",
        title: "first-time success with an observer, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours-off", "bare", || each(ours(Answers), fresh)),
            above("ours-on", "bare", || each(observed(), fresh)),
        ],
    },
    Row {
        name: "hook",
        title: "first-time success with a hook, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours-off", "bare", || each(ours(Answers), fresh)),
            above("ours-on", "bare", || each(hooked(), fresh)),
        ],
    },
];

/// Creates a budget that no measurement fills, because a success earns so little.
fn scant() -> RetryBudget {
    RetryBudget::ratio(0.000_001).min_per_second(0.0)
}

fn policy(budget: RetryBudget) -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::immediate()).budget(budget)
}

fn with_budget(budget: RetryBudget) -> Retry<Answers, RetryPolicy<Http, Constant>> {
    Retry::new(policy(budget), Answers)
}

/// Returns a service whose budget has spent a token of this destination.
///
/// The token is not spent by a call: what a call leaves of its heap makes later allocations dearer or cheaper.
fn not_full(destination: &str) -> Retry<Answers, RetryPolicy<Http, Constant>> {
    let budget = scant();
    let permit = budget.acquire(destination, &Failure::new(FailureKind::Server), Duration::ZERO);
    drop(permit.expect("the bucket is full").spend());
    assert!(!budget.is_full());
    with_budget(budget)
}

fn observed() -> Retry<Answers> {
    let policy = RetryPolicy::http().observe(|destination, event| {
        black_box((destination, event));
    });
    Retry::new(policy, Answers)
}

/// Wraps a service in ours with a hook that does nothing; the hook's box has a size of zero.
fn hooked() -> Retry<Answers> {
    Retry::new(RetryPolicy::http().before_attempt(|_, _| Box::pin(ready(()))), Answers)
}

/// Checks that the observer is notified of each call, and that the hook runs.
pub(super) fn check() {
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(10);
    }
}
