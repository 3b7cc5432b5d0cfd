//! Fresh calls that succeed at the first attempt, with settings beyond the defaults.
//!
//! A bucket of the budget is not full, an observer is notified, or a hook runs.

use std::future::ready;
use std::hint::black_box;

use http::Request;
use reattempt::budget::Budget;
use reattempt::schedule::Constant;
use reattempt::{Http, Retry, RetryBudget, RetryPolicy};

use super::call::each;
use super::{Row, above, alone, once};
use crate::contenders::ours;
use crate::inner::{Answers, FailsFirst};
use crate::requests::{Body, fresh, fresh_to};

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
            above("ours-own-not-full", "bare", || each(after_a_retry(fresh), fresh)),
            above("ours-other-not-full", "bare", || each(after_a_retry(to_another), fresh)),
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
    RetryBudget::ratio(0.000_001).unwrap().min_per_second(0.0).unwrap()
}

fn policy(budget: RetryBudget) -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::immediate()).budget(budget)
}

fn with_budget(budget: RetryBudget) -> Retry<Answers, RetryPolicy<Http, Constant>> {
    Retry::new(policy(budget), Answers)
}

/// Returns the service after one retry has taken a token from the bucket of the request's
/// destination.
fn after_a_retry(make: fn() -> Request<Body>) -> Retry<Answers, RetryPolicy<Http, Constant>> {
    let budget = scant();
    once::each(Retry::new(policy(budget.clone()), FailsFirst::default()), make)(1);
    assert!(!budget.is_full());
    with_budget(budget)
}

fn to_another() -> Request<Body> {
    fresh_to("http://another.example/", Body::default())
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
