//! Tests of retrying any operation.

mod blocking;
mod http;
mod kinds;
mod results;
mod timers;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::{pending, ready};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reattempt::operation::RetryError;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{CallOptions, Deadline, RetryPolicy, retry};
use reattempt_control::RetryBudget;
use reattempt_core::StopReason;
use reattempt_schedule_exponential::Exponential;
use reattempt_schedule_fixed::{Constant, Linear};
use tokio::time::Instant;
use tokio_test::{assert_pending, assert_ready, task};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Returns an operation that yields these results in order, and repeats the last.
fn script<const N: usize>(
    results: [Result<u32, &'static str>; N],
) -> impl FnMut() -> std::future::Ready<Result<u32, &'static str>> {
    let mut next = 0;
    move || {
        let result = results[next.min(N - 1)];
        next += 1;
        ready(result)
    }
}

/// Returns a budget of three tokens, which only successes refill.
fn three_tokens() -> RetryBudget {
    RetryBudget::ratio(0.1).capacity(3.0).min_per_second(0.0)
}

#[tokio::test(start_paused = true)]
async fn a_success_is_handed_on_at_once() {
    let started = Instant::now();
    assert_eq!(retry(Constant::new(SECOND), script([Ok(7), Err("never")])).await.unwrap(), 7);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn each_delay_and_error_precede_a_new_try() {
    let started = Instant::now();
    let mut told = Vec::new();
    let schedule = Linear::new(SECOND);
    let result = retry(schedule, script([Err("one"), Err("two"), Ok(3)]))
        .notify(|error, delay| told.push((*error, delay)))
        .await;
    assert_eq!(result.unwrap(), 3);
    assert_eq!(told, [("one", SECOND), ("two", 2 * SECOND)]);
    assert_eq!(started.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn error_has_reason_attempts_and_time() {
    let error = retry(Constant::new(SECOND), script([Err("one"), Err("two"), Err("three")])).await.unwrap_err();
    assert_eq!(*error.error(), "three");
    assert_eq!(error.stop_reason(), StopReason::AttemptsExhausted);
    assert_eq!(error.attempts(), 3);
    assert_eq!(error.elapsed(), 2 * SECOND);
    assert_eq!(error.report().total_delay(), 2 * SECOND);
    assert_eq!(error.to_string(), "gave up after 3 attempts in 2s: all allowed attempts have been made");
    assert_eq!(error.into_error(), "three");
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_ends_it() {
    let error = retry(Constant::new(SECOND), script([Err("busy"), Err("denied"), Ok(1)]))
        .when(|error| *error == "busy")
        .await
        .unwrap_err();
    assert_eq!(*error.error(), "denied");
    assert_eq!(error.stop_reason(), StopReason::Permanent);
    assert_eq!(error.attempts(), 2);
    let outcome = &error.report().attempts()[1].outcome;
    assert!(matches!(outcome, AttemptOutcome::PermanentFailure { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_error_may_be_permanent() {
    let calls = Cell::new(0);
    let error = retry(Constant::new(SECOND), || {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("denied"))
    })
    .when(|_| false)
    .await
    .unwrap_err();
    assert_eq!((calls.get(), error.attempts()), (1, 1));
    assert_eq!(error.to_string(), "failed on attempt 1 in 0s: the failure is permanent");
}

#[tokio::test(start_paused = true)]
async fn it_never_sleeps_first_and_gives_up_after() {
    let started = Instant::now();
    let policy = RetryPolicy::operations().backoff(Constant::new(4 * SECOND)).max_attempts(10).max_elapsed(10 * SECOND);
    let error = retry(policy, script([Err("down")])).await.unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::ElapsedExhausted);
    assert_eq!(error.attempts(), 3);
    assert_eq!(started.elapsed(), 8 * SECOND);
}

/// A schedule alone has the limits of 3 attempts and 30 s.
#[tokio::test(start_paused = true)]
async fn limits_are_set_beside_a_schedule() {
    let down = || retry(Constant::new(4 * SECOND), script([Err("down")])).max_attempts(None);
    let tries = |error: RetryError<_>| (error.attempts(), error.stop_reason());
    assert_eq!(tries(down().await.unwrap_err()), (8, StopReason::ElapsedExhausted));
    assert_eq!(tries(down().max_elapsed(10 * SECOND).await.unwrap_err()), (3, StopReason::ElapsedExhausted));
    let unlimited = down().max_elapsed(None).max_attempts(20);
    assert_eq!(tries(unlimited.await.unwrap_err()), (20, StopReason::AttemptsExhausted));
}

#[tokio::test(start_paused = true)]
async fn time_that_an_attempt_takes_counts() {
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).max_elapsed(10 * SECOND);
    let slow = || async {
        tokio::time::sleep(6 * SECOND).await;
        Err::<(), _>("slow")
    };
    let error = retry(policy, slow).await.unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::ElapsedExhausted);
    assert_eq!(error.attempts(), 2);
    assert_eq!(error.elapsed(), 13 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn calls_by_one_policy_share_its_budget() {
    let budget = three_tokens();
    let policy = RetryPolicy::operations().backoff(Constant::new(MS)).max_attempts(100).budget(budget.clone());
    let error = retry(&policy, script([Err("down")])).await.unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::BudgetExhausted);
    assert_eq!(error.attempts(), 4, "three tokens, three retries");
    let error = retry(&policy, script([Err("down")])).await.unwrap_err();
    assert_eq!((error.attempts(), *error.error()), (1, "down"), "nothing is left, and nothing lost");
    assert_eq!(retry(&policy, script([Ok(1)])).await.unwrap(), 1);
    assert!((budget.balance("") - 0.1).abs() < 1e-9, "{}", budget.balance(""));
    retry(&policy, script([Err("denied")])).when(|_| false).await.unwrap_err();
    assert!((budget.balance("") - 0.1).abs() < 1e-9, "an error earns nothing");
}

#[tokio::test(start_paused = true)]
async fn dropped_in_its_wait_it_gives_token_back() {
    let budget = three_tokens();
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).budget(budget.clone());
    let mut call = task::spawn(retry(&policy, script([Err("down")])).into_future());
    assert_pending!(call.poll());
    assert_eq!(budget.balance(""), 2.0);
    drop(call);
    assert_eq!(budget.balance(""), 3.0);
}

#[tokio::test(start_paused = true)]
async fn dropped_in_an_attempt_it_drops_that() {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let mut call = task::spawn(
        retry(Constant::new(SECOND), move || {
            let held = Arc::clone(&held);
            async move {
                let _held = held;
                pending::<Result<(), ()>>().await
            }
        })
        .into_future(),
    );
    assert_pending!(call.poll());
    assert_eq!(Arc::strong_count(&alive), 3);
    drop(call);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn attempt_is_gone_before_wait_begins() {
    let alive = Rc::new(());
    let held = Rc::clone(&alive);
    let mut call = task::spawn(
        retry(Constant::new(SECOND), move || {
            let held = Rc::clone(&held);
            async move {
                let _held = held;
                std::future::ready(()).await;
                Err::<(), _>("down")
            }
        })
        .into_future(),
    );
    assert_pending!(call.poll());
    assert_eq!(Rc::strong_count(&alive), 2, "the closure's own, and no attempt's");
}

#[tokio::test(start_paused = true)]
async fn operation_failing_at_once_yields() {
    let policy = RetryPolicy::operations()
        .backoff(Constant::immediate())
        .max_attempts(u32::MAX)
        .max_elapsed(None)
        .budget(RetryBudget::unlimited());
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let busy = tokio::spawn(
        retry(policy, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            ready(Err::<(), _>("down"))
        })
        .into_future(),
    );
    while calls.load(Ordering::Relaxed) < 1000 {
        tokio::task::yield_now().await;
    }
    busy.abort();
    assert!(busy.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_call_may_override_its_policy() {
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND));
    let slot = ReportSlot::default();
    let options = CallOptions::new().max_attempts(2).report_to(&slot);
    let error = retry(&policy, script([Err("down")])).with_options(options).await.unwrap_err();
    assert_eq!(error.attempts(), 2);
    assert_eq!(slot.take().as_ref(), Some(error.report()));

    let soon = CallOptions::new().deadline(Deadline::after(SECOND / 2)).report_to(&slot);
    let error = retry(&policy, script([Err("down")])).with_options(soon).await.unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (1, StopReason::DeadlineExceeded));

    let never = CallOptions::new().never_retry();
    let error = retry(&policy, script([Err("down")])).with_options(never).await.unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::Forbidden);

    let once = CallOptions::new().repeatable(false);
    let error = retry(&policy, script([Err("down")])).with_options(once).await.unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::NotRepeatable);

    let options = CallOptions::new().report_to(&slot);
    slot.take();
    retry(&policy, script([Ok(1)])).with_options(options).await.unwrap();
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn observers_see_what_happens() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let policy = RetryPolicy::operations()
        .backoff(Constant::new(SECOND))
        .observe(move |_, event| list.lock().unwrap().push(event.to_string()));
    retry(&policy, script([Err("down"), Ok(1)])).await.unwrap();
    retry(&policy, script([Ok(1)])).await.unwrap();
    let seen = seen.lock().unwrap();
    let expected = ["attempt 1: other", "attempt 2 in 1s", "succeeded on attempt 2", "succeeded on attempt 1"];
    assert_eq!(*seen, expected);
}

#[tokio::test(start_paused = true)]
async fn a_seed_makes_the_delays_reproducible() {
    let delays = async |seed| {
        let told = RefCell::new(Vec::new());
        let policy = RetryPolicy::operations().max_attempts(6).budget(RetryBudget::percent(10)).seed(seed);
        let call = retry(policy, script([Err("down")]));
        call.notify(|_, delay| told.borrow_mut().push(delay)).await.unwrap_err();
        told.into_inner()
    };
    let (first, again, other) = (delays(1).await, delays(1).await, delays(2).await);
    assert_eq!(first.len(), 5);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn what_can_be_sent_and_shared_is() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    fn is_error<T: Error + Send + Sync>() {}
    let policy = RetryPolicy::operations().backoff(Exponential::default());
    drop(is_send(retry(&policy, script([Ok(1)])).when(|_| true).into_future()));
    is_error::<RetryError<io::Error>>();
}

// trap 46
#[tokio::test(start_paused = true)]
async fn finished_retry_runs_nothing_when_polled() {
    for outcome in [Ok(1), Err("down")] {
        let (runs, held) = (AtomicU32::new(0), Arc::new(()));
        let (counted, held_by_call) = (&runs, Arc::clone(&held));
        let operation = move || {
            let _held = &held_by_call;
            counted.fetch_add(1, Ordering::SeqCst);
            ready(outcome)
        };
        let retried = retry(Constant::new(SECOND), operation).when(|_| false);
        let mut call = task::spawn(retried.into_future());
        assert_eq!(assert_ready!(call.poll()).is_ok(), outcome.is_ok());
        assert_eq!(Arc::strong_count(&held), 1, "it lets go of everything at its end");
        assert_pending!(call.poll());
        assert_pending!(call.poll());
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}
