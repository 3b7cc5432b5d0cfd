//! Tests of an operation whose retries a budget confirms later.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::time::Duration;

use reattempt::operation::retry_blocking;
use reattempt::{RetryPolicy, retry};
use reattempt_core::{Schedule, StopReason};
use reattempt_schedule_fixed::Constant;
use tokio::time::{Instant, timeout};

use super::Asking;

const MS: Duration = Duration::from_millis(1);

fn policy(
    delay: Duration,
    budget: &Asking,
) -> RetryPolicy<reattempt::operation::Operations, impl Schedule + Clone, Asking> {
    RetryPolicy::operations().backoff(Constant::new(delay)).budget(budget.clone())
}

/// Runs an operation that fails once. Returns when it was called, when the retry was notified, and the result.
async fn run(delay: Duration, budget: &Asking) -> (Vec<u128>, Vec<u128>, Result<u32, StopReason>) {
    let start = Instant::now();
    let (called, notified) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let operation = || {
        called.borrow_mut().push(start.elapsed().as_millis());
        ready(if called.borrow().len() == 1 { Err("first") } else { Ok(7) })
    };
    let result = retry(policy(delay, budget), operation)
        .notify(|_, _| notified.borrow_mut().push(start.elapsed().as_millis()))
        .await;
    let result = result.map_err(|error| {
        assert_eq!((*error.error(), error.attempts()), ("first", 1));
        assert_eq!(error.elapsed(), Duration::ZERO, "the attempt ended at once");
        assert_eq!(error.report().attempts()[0].delay, None, "nothing was waited for");
        error.stop_reason()
    });
    (called.into_inner(), notified.into_inner(), result)
}

/// The retry is sent when its time has come and it is confirmed.
// F-4
#[tokio::test(start_paused = true)]
async fn retry_leaves_when_due_and_confirmed() {
    for (delay, answer, leaves) in [(100_u32, 30_u32, 100_u32), (20, 30, 30), (0, 30, 30), (100, 0, 100)] {
        let budget = Asking::new(answer * MS, true);
        let (called, notified, result) = run(delay * MS, &budget).await;
        assert_eq!(called, [0, u128::from(leaves)], "{delay} {answer}");
        assert_eq!((notified, result), (vec![u128::from(answer)], Ok(7)), "{delay} {answer}");
        assert_eq!(budget.log(), ["asked", "succeeded"]);
    }
}

/// The caller gets the error of its attempt.
// F-5
#[tokio::test(start_paused = true)]
async fn refused_retry_returns_the_held_error() {
    for answer in [0, 30] {
        let budget = Asking::new(answer * MS, false);
        let (called, notified, result) = run(100 * MS, &budget).await;
        assert_eq!((called, notified), (vec![0], vec![]));
        assert_eq!(result, Err(StopReason::BudgetExhausted));
        assert_eq!(budget.log(), ["asked", "returned"]);
    }
}

#[tokio::test(start_paused = true)]
async fn call_dropped_while_asking_returns_permit() {
    let budget = Asking::new(30 * MS, true);
    let calls = Cell::new(0);
    let call = retry(policy(100 * MS, &budget), || {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("no"))
    });
    timeout(10 * MS, call.into_future()).await.unwrap_err();
    assert_eq!((calls.get(), budget.log()), (1, vec!["asked", "returned"]));
}

/// A thread does not wait for the answer: the retry is sent, and the budget is debited.
#[tokio::test(start_paused = true)]
async fn blocking_retry_is_sent_unconfirmed() {
    let budget = Asking::new(30 * MS, false);
    let mut results = [Ok(7), Err("first")].to_vec();
    let result = retry_blocking(policy(MS, &budget), || results.pop().unwrap()).call_with(|_| {});
    assert_eq!((result.unwrap(), budget.log()), (7, vec!["asked", "succeeded"]));
}

/// A retry that is confirmed after the call's time is neither announced nor sent.
#[tokio::test(start_paused = true)]
async fn late_confirmation_is_not_announced() {
    let (budget, told) = (Asking::new(60_000 * MS, true), Cell::new(0));
    let policy = policy(MS, &budget).max_elapsed(5_000 * MS);
    let call = retry(policy, || ready(Err::<u32, _>("first"))).notify(|_, _| told.set(told.get() + 1));
    let error = call.await.unwrap_err();
    assert_eq!((told.get(), error.attempts(), error.stop_reason()), (0, 1, StopReason::ElapsedExhausted));
}
