//! Tests of operations without a runtime.

use std::cell::RefCell;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use reattempt::operation::{is_transient_io_error, retry_blocking};
use reattempt::{RetryPolicy, retry};
use reattempt_core::StopReason;
use reattempt_schedule_fixed::Constant;
use tokio_test::{assert_pending, assert_ready, task};

use super::{SECOND, script};

#[test]
fn last_error_returns_where_nothing_waits() {
    let mut call = task::spawn(retry(Constant::new(SECOND), script([Err("down")])).into_future());
    let error = assert_ready!(call.poll()).unwrap_err();
    assert_eq!((*error.error(), error.stop_reason()), ("down", StopReason::NoTimer));
}

#[test]
fn without_a_delay_no_runtime_is_needed() {
    let operation = script([Err("one"), Ok(2)]);
    let mut call = task::spawn(retry(Constant::immediate(), operation).into_future());
    assert_eq!(assert_ready!(call.poll()).unwrap(), 2);
}

#[test]
fn blocking_operation_needs_no_runtime() {
    let mut slept = Vec::new();
    let mut calls = 0;
    const HOUR: Duration = Duration::from_secs(3600);
    let policy = RetryPolicy::operations().backoff(Constant::new(HOUR)).max_elapsed(None);
    let error = retry_blocking(policy, || {
        calls += 1;
        Err::<(), _>(io::Error::from(ErrorKind::ConnectionRefused))
    })
    .when(is_transient_io_error)
    .call_with(|time| slept.push(time))
    .unwrap_err();
    assert_eq!((calls, error.attempts()), (3, 3));
    assert_eq!(slept.len(), 2);
    // The clock advanced a little between the decision and the sleep.
    assert!(slept.iter().all(|time| *time <= HOUR && *time > HOUR / 2), "{slept:?}");
    let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn blocking_without_delay_does_not_sleep() {
    let results = RefCell::new(vec![Ok(3), Err("two"), Err("one")]);
    let operation = || results.borrow_mut().pop().unwrap();
    let value = retry_blocking(Constant::immediate(), operation).call_with(|_| panic!("there is nothing to wait for"));
    assert_eq!(value.unwrap(), 3);
}

/// A thread that slept past the limit on elapsed time makes no further attempt.
#[tokio::test(start_paused = true)]
async fn late_thread_ends_call() {
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).max_elapsed(5 * SECOND);
    let mut calls = 0;
    let fails = || {
        calls += 1;
        Err::<(), _>(calls)
    };
    let sleeps = |_| assert_pending!(task::spawn(tokio::time::advance(60 * SECOND)).poll());
    let error = retry_blocking(policy, fails).call_with(sleeps).unwrap_err();
    assert_eq!((*error.error(), error.stop_reason(), error.attempts()), (1, StopReason::ElapsedExhausted, 1));
}
