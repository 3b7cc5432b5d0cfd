//! Tests of operations whose `Ok` values are failures.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::sync::{Arc, Mutex};

use reattempt::operation::retry_blocking;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryPolicy, Verdict, retry};
use reattempt_core::{Classification, ServerHint, StopReason};
use reattempt_schedule_fixed::Constant;
use tokio::time::Instant;
use tokio_test::{assert_pending, task};

use super::{SECOND, script, three_tokens};

#[tokio::test(start_paused = true)]
async fn value_with_condition_is_retried() {
    let started = Instant::now();
    let result = retry(Constant::new(SECOND), script([Ok(0), Err("down"), Ok(0), Ok(7)]))
        .when_ok(|value| *value == 0)
        .with_options(CallOptions::new().max_attempts(4))
        .await;
    assert_eq!(result.unwrap(), 7);
    assert_eq!(started.elapsed(), 3 * SECOND);
}

/// The caller of a call that gives up gets the last value, as Polly and resilience4j return it.
#[tokio::test(start_paused = true)]
async fn refused_value_returns_as_it_was() {
    let slot = ReportSlot::default();
    let value = retry(Constant::new(SECOND), script([Ok(1), Ok(2), Ok(3), Ok(4)]))
        .when_ok(|_| true)
        .with_options(CallOptions::new().report_to(&slot))
        .await;
    assert_eq!(value.unwrap(), 3);
    let report = slot.take().unwrap();
    assert_eq!((report.stop_reason(), report.attempts().len()), (StopReason::AttemptsExhausted, 3));
}

#[test]
fn blocking_value_is_retried_and_returned() {
    let (calls, slept) = (Cell::new(0), Cell::new(0));
    let operation = || {
        calls.set(calls.get() + 1);
        Ok::<_, &str>(calls.get())
    };
    let policy = Constant::new(SECOND);
    let sleep = |_| slept.set(slept.get() + 1);
    let value = retry_blocking(policy, operation).when_ok(|value| *value < 2).call_with(sleep);
    assert_eq!((value.unwrap(), slept.get()), (2, 1));

    let value = retry_blocking(policy, operation).when_ok(|_| true).call_with(sleep);
    assert_eq!((value.unwrap(), slept.get()), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn hint_in_value_sets_delay() {
    let started = Instant::now();
    let result = retry(RetryPolicy::operations().seed(1), script([Ok(0), Ok(1)]))
        .classify_ok(|value| (*value == 0).then(|| Verdict::throttled().with_hint(ServerHint::Exactly(10 * SECOND))))
        .await;
    assert_eq!(result.unwrap(), 1);
    assert_eq!(started.elapsed(), 10 * SECOND);
}

/// The last condition is asked first, and `None` or `false` leaves the value to the one before it.
#[tokio::test(start_paused = true)]
async fn conditions_are_asked_last_first() {
    let retried = async |value| {
        let calls = Cell::new(0);
        let operation = || {
            calls.set(calls.get() + 1);
            ready(Ok::<_, ()>(value))
        };
        let value = retry(Constant::new(SECOND), operation)
            .when_ok(|value| *value >= 10)
            .classify_ok(|value| (*value == 15).then_some(Verdict::Success))
            .classify_ok(|value| (*value == 3).then_some(Classification::from(Verdict::transient())))
            .await;
        value.unwrap();
        calls.get() > 1
    };
    assert_eq!([retried(1).await, retried(3).await, retried(12).await, retried(15).await], [false, true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn conditions_may_have_state() {
    let (mut errors, mut values) = (0, 0);
    let result = retry(Constant::new(SECOND), script([Err("down"), Ok(0), Err("down"), Ok(0)]))
        .when(|_| {
            errors += 1;
            errors < 3
        })
        .when_ok(|_| {
            values += 1;
            values < 2
        })
        .max_attempts(None)
        .await;
    assert_eq!((result.unwrap(), errors, values), (0, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn permanent_value_ends_call() {
    let slot = ReportSlot::default();
    let value = retry(Constant::new(SECOND), script([Ok(0), Ok(4), Ok(9)]))
        .classify_ok(|value| match value {
            0 => Some(Verdict::transient()),
            4 => Some(Verdict::Permanent),
            _ => None,
        })
        .with_options(CallOptions::new().report_to(&slot))
        .await;
    assert_eq!(value.unwrap(), 4);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Permanent);
}

#[tokio::test(start_paused = true)]
async fn refused_values_take_tokens() {
    let budget = three_tokens();
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).max_attempts(None).budget(budget.clone());
    assert_eq!(retry(&policy, script([Ok(1)])).when_ok(|_| true).await.unwrap(), 1);
    assert_eq!(budget.balance(""), 0.0, "three tokens, three retries, and nothing earned");
    assert_eq!(retry(&policy, script([Ok(1)])).when_ok(|_| false).await.unwrap(), 1);
    assert!((budget.balance("") - 0.1).abs() < 1e-9, "{}", budget.balance(""));
}

#[tokio::test(start_paused = true)]
async fn value_is_held_until_next_attempt() {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let operation = move || ready(Ok::<_, ()>(Arc::clone(&held)));
    let mut call = task::spawn(retry(Constant::new(SECOND), operation).when_ok(|_| true).into_future());
    assert_pending!(call.poll());
    assert_eq!(Arc::strong_count(&alive), 3, "the closure's own, and the refused value");
    drop(call);
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// A value whose retry comes too late is returned, not lost.
#[tokio::test(start_paused = true)]
async fn late_thread_returns_value() {
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).max_elapsed(5 * SECOND);
    let sleeps = |_| assert_pending!(task::spawn(tokio::time::advance(60 * SECOND)).poll());
    let value = retry_blocking(policy, || Ok::<_, ()>("busy")).when_ok(|_| true).call_with(sleeps);
    assert_eq!(value.unwrap(), "busy");
}

#[tokio::test(start_paused = true)]
async fn both_kinds_of_failure_are_notified() {
    let told = RefCell::new(Vec::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let policy = RetryPolicy::operations()
        .backoff(Constant::new(SECOND))
        .observe(move |_, event| list.lock().unwrap().push(event.to_string()));
    let value = retry(policy, script([Ok(0), Err("down"), Ok(2)]))
        .when_ok(|value| *value == 0)
        .notify(|error, delay| told.borrow_mut().push(format!("error {error} in {delay:?}")))
        .notify_ok(|value, delay| told.borrow_mut().push(format!("value {value} in {delay:?}")))
        .await;
    assert_eq!(value.unwrap(), 2);
    assert_eq!(told.into_inner(), ["value 0 in 1s", "error down in 1s"]);
    assert_eq!(seen.lock().unwrap().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn not_repeatable_operation_needs_proof() {
    let tries = async |verdict, options: CallOptions| {
        let calls = Cell::new(0);
        let operation = || {
            calls.set(calls.get() + 1);
            ready(Err::<(), _>("lost"))
        };
        let call = retry(Constant::new(SECOND), operation).classify(move |_| verdict).repeatable(false);
        let error = call.with_options(options).await.unwrap_err();
        (calls.get(), error.stop_reason())
    };
    let none = CallOptions::new;
    assert_eq!(tries(Verdict::transient(), none()).await, (1, StopReason::NotRepeatable));
    assert_eq!(tries(Verdict::not_processed(), none()).await, (3, StopReason::AttemptsExhausted));
    let own = none().repeatable(true);
    assert_eq!(tries(Verdict::transient(), own).await, (3, StopReason::AttemptsExhausted), "options take precedence");
}

#[tokio::test(start_paused = true)]
async fn every_limit_can_be_removed() {
    let unlimited = RetryPolicy::operations().max_attempts(None).max_elapsed(None).max_server_delay(None);
    assert_eq!(unlimited.limits().max_attempts, u32::MAX);
    let policy = unlimited.budget(reattempt::RetryBudget::unlimited());
    let options = CallOptions::new().max_attempts(None).max_elapsed(None).max_server_delay(None);
    let day = ServerHint::After(86_400 * SECOND);
    for call in [retry(&policy, ends_at(100)), retry(&policy, ends_at(100)).with_options(options.clone())] {
        assert_eq!(call.classify(|_| Verdict::throttled().with_hint(day)).await.unwrap(), 100);
    }
    let call = retry(Constant::new(SECOND), ends_at(100)).with_options(options);
    assert_eq!(call.classify(|_| Verdict::throttled().with_hint(day)).await.unwrap(), 100);
}

/// Returns an operation that succeeds at this attempt.
fn ends_at(last: u32) -> impl FnMut() -> std::future::Ready<Result<u32, &'static str>> {
    let mut calls = 0;
    move || {
        calls += 1;
        ready(if calls < last { Err("busy") } else { Ok(calls) })
    }
}
