//! `retry()` with a clock and a timer of its caller's, in no tokio runtime.

use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt::operation::Timer;
use reattempt::{CallOptions, Deadline, RetryPolicy, retry};
use reattempt_control::RetryBudget;
use reattempt_core::StopReason;
use reattempt_schedule_exponential::Exponential;
use reattempt_schedule_fixed::Constant;
use tokio_test::{assert_pending, assert_ready, task};

use super::{SECOND, script};

/// A clock that a test moves.
#[derive(Default)]
struct Manual(Cell<Duration>);

impl Manual {
    fn moves(&self, by: Duration) {
        self.0.set(self.0.get() + by);
    }
}

impl<'a> Timer for &'a Manual {
    type Sleep = Until<'a>;

    fn now(&self) -> Duration {
        self.0.get()
    }

    fn sleep_until(&mut self, due: Duration) -> Until<'a> {
        Until(self, due)
    }
}

struct Until<'a>(&'a Manual, Duration);

impl Future for Until<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A call waits on its own timer for exactly its delay, and its report has the times of its own clock.
#[test]
fn own_timer_needs_no_runtime() {
    let clock = Manual::default();
    clock.moves(1000 * SECOND);
    let mut call = task::spawn(retry(Constant::new(SECOND), script([Err("busy")])).timer(&clock).into_future());
    assert_pending!(call.poll());
    clock.moves(SECOND - Duration::from_nanos(1));
    assert_pending!(call.poll());
    clock.moves(Duration::from_nanos(1));
    assert_pending!(call.poll());
    clock.moves(SECOND);
    let error = assert_ready!(call.poll()).unwrap_err();
    let ends: Vec<_> = error.report().attempts().iter().map(|attempt| attempt.ended).collect();
    assert_eq!(ends, [Duration::ZERO, SECOND, 2 * SECOND]);
    assert_eq!(error.stop_reason(), StopReason::AttemptsExhausted);
}

/// The time of attempts counts, which only a clock can measure.
#[test]
fn own_clock_limits_the_elapsed_time() {
    let clock = Manual::default();
    let slow = || {
        clock.moves(4 * SECOND);
        ready(Err::<(), _>("busy"))
    };
    let policy = RetryPolicy::operations().backoff(Constant::immediate()).max_attempts(9).max_elapsed(10 * SECOND);
    // The call's time begins with the end of its first attempt, which is never pending.
    let mut call = task::spawn(retry(&policy, slow).timer(&clock).into_future());
    let error = assert_ready!(call.poll()).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::ElapsedExhausted, 4));
}

/// A deadline is converted from tokio's clock to the call's own.
#[test]
fn deadline_counts_from_the_start() {
    let clock = Manual::default();
    clock.moves(1_000_000 * SECOND);
    let options = CallOptions::new().deadline(Deadline::after(5 * SECOND));
    let policy = RetryPolicy::operations().backoff(Constant::new(2 * SECOND)).max_attempts(9);
    let mut call = task::spawn(retry(policy, script([Err("busy")])).with_options(options).timer(&clock).into_future());
    for _ in 0..2 {
        assert_pending!(call.poll());
        clock.moves(2 * SECOND);
    }
    let error = assert_ready!(call.poll()).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::DeadlineExceeded, 3));
}

/// A budget's tokens come back with the time of the caller's clock.
#[test]
fn budget_follows_the_own_clock() {
    let clock = Manual::default();
    clock.moves(SECOND);
    let budget = RetryBudget::ratio(0.1).capacity(1.0).min_per_second(1.0);
    let policy = RetryPolicy::operations().backoff(Constant::immediate()).max_attempts(2).budget(budget);
    let stops = || {
        let mut call = task::spawn(retry(&policy, script([Err("busy")])).timer(&clock).into_future());
        assert_ready!(call.poll()).unwrap_err().stop_reason()
    };
    assert_eq!([stops(), stops()], [StopReason::AttemptsExhausted, StopReason::BudgetExhausted]);
    clock.moves(SECOND);
    assert_eq!([stops(), stops()], [StopReason::AttemptsExhausted, StopReason::BudgetExhausted]);
}

/// One engine decides: the delays of one seed are the same on either clock.
#[test]
fn delays_are_those_of_a_call_in_tokio() {
    let policy = || {
        let policy = RetryPolicy::operations().backoff(Exponential::default()).max_attempts(6).seed(27);
        policy.budget(RetryBudget::unlimited())
    };
    let of_tokio = RefCell::new(Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let call = retry(policy(), script([Err("busy")])).notify(|_, delay| of_tokio.borrow_mut().push(delay));
    let report = runtime.block_on(call.into_future()).unwrap_err();

    let clock = Manual::default();
    let own = RefCell::new(Vec::new());
    let call = retry(policy(), script([Err("busy")])).notify(|_, delay| own.borrow_mut().push(delay)).timer(&clock);
    let mut call = task::spawn(call.into_future());
    let error = loop {
        match call.poll() {
            Poll::Ready(result) => break result.unwrap_err(),
            Poll::Pending => clock.moves(*own.borrow().last().unwrap()),
        }
    };
    assert_eq!(own.borrow().len(), 5);
    assert_eq!(own, of_tokio);
    assert_eq!(error.stop_reason(), report.stop_reason());
    // tokio's timers end at whole milliseconds.
    let [own, of_tokio] = [error.elapsed(), report.elapsed()];
    assert!(of_tokio.abs_diff(own) <= Duration::from_millis(6), "{own:?}, {of_tokio:?}");
}

/// A function that sleeps gets the time that is left on the system's clock.
#[test]
fn sleep_function_gets_the_delay() {
    let waits = RefCell::new(Vec::new());
    let sleep = |wait| {
        waits.borrow_mut().push(wait);
        ready(())
    };
    let call = retry(Constant::new(3600 * SECOND), script([Err("busy"), Err("busy"), Ok(7)]));
    let call = call.with_options(CallOptions::new().max_elapsed(None)).sleep_with(sleep);
    let mut call = task::spawn(call.into_future());
    assert_eq!(assert_ready!(call.poll()).unwrap(), 7);
    let waits = waits.take();
    assert_eq!(waits.len(), 2);
    for wait in waits {
        assert!(wait <= 3600 * SECOND && wait > 3590 * SECOND, "{wait:?}");
    }
}

/// The last error ends the call if the wait was so long that the deadline passed, as after the sleep of a computer.
#[test]
fn late_timer_ends_call_at_the_deadline() {
    let clock = Manual::default();
    let options = CallOptions::new().deadline(Deadline::after(60 * SECOND));
    let call = retry(Constant::new(SECOND), script([Err("busy"), Ok(1)])).with_options(options).timer(&clock);
    let mut call = task::spawn(call.into_future());
    assert_pending!(call.poll());
    clock.moves(3600 * SECOND);
    let error = assert_ready!(call.poll()).unwrap_err();
    assert_eq!((*error.error(), error.stop_reason(), error.attempts()), ("busy", StopReason::DeadlineExceeded, 1));
}

/// A timer that is always ready and an operation that always fails at once let other tasks run, in no runtime too.
#[test]
fn ready_timer_lets_others_run() {
    #[derive(Debug)]
    struct Always;
    impl Timer for Always {
        type Sleep = std::future::Ready<()>;

        fn now(&self) -> Duration {
            SECOND
        }

        fn sleep_until(&mut self, _: Duration) -> Self::Sleep {
            ready(())
        }
    }

    let calls = Cell::new(0);
    let fails = || {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("busy"))
    };
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).max_attempts(u32::MAX).max_elapsed(None);
    let policy = policy.budget(RetryBudget::unlimited());
    let mut call = task::spawn(retry(policy, fails).timer(Always).into_future());
    assert_pending!(call.poll());
    assert!(call.is_woken());
    assert_eq!(calls.get(), 128);
}

/// A timer that is late by its own rounding does not end a call whose retry was granted for the last moment.
#[test]
fn rounded_timer_keeps_the_last_retry() {
    let clock = Manual::default();
    let policy = RetryPolicy::operations().backoff(Constant::new(SECOND)).max_elapsed(SECOND);
    let mut call = task::spawn(retry(policy, script([Err("busy"), Ok(1)])).timer(&clock).into_future());
    assert_pending!(call.poll());
    clock.moves(SECOND + Duration::from_millis(1));
    assert_eq!(assert_ready!(call.poll()).unwrap(), 1);
}
