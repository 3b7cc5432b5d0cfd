//! Allocations of `retry()` around a closure: none for a first-time success, one after a failure.

use std::cell::Cell;
use std::future::{IntoFuture, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use reattempt::schedule::{Constant, Exponential, Schedule};
use reattempt::{RetryPolicy, retry};

/// Returns the allocations of an operation that fails this many times, and then succeeds.
fn allocations<D: Schedule>(schedule: D, failures: u32) -> usize {
    let turn = Cell::new(0);
    let operation = || {
        turn.set(turn.get() + 1);
        ready(if turn.get() <= failures { Err("not yet") } else { Ok(()) })
    };
    reattempt_testing::allocations_of(|| {
        let polled = pin!(retry(schedule, operation).into_future()).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Ok(())));
    })
}

#[test]
fn success_at_once_allocates_nothing() {
    assert_eq!(allocations(Exponential::full_jitter(Duration::from_millis(100)), 0), 0);
    let policy = RetryPolicy::operations();
    let allocated = reattempt_testing::allocations_of(|| {
        let polled =
            pin!(retry(&policy, || ready(Ok::<_, ()>(()))).into_future()).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Ok(())));
    });
    assert_eq!(allocated, 0);
}

#[test]
fn first_failure_allocates_one_box() {
    assert_eq!(allocations(Constant::immediate(), 1), 1);
    assert_eq!(allocations(Constant::immediate(), 1), 1);
}

#[test]
fn future_is_small() {
    let future = retry(Exponential::default(), || ready(Ok::<u32, &str>(7))).into_future();
    assert!(size_of_val(&future) <= 240, "{}", size_of_val(&future));
}
