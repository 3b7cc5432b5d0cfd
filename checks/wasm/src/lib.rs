//! Calls on a target without a clock, a thread or a runtime.
//!
//! Input: the clock of the program around it. Output: the attempts of one call, the time of another, and the end of a
//! third, which has no timer.

use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use reattempt::operation::{IntoOperationPolicy, Timer};
use reattempt::schedule::Exponential;
use reattempt::{RetryPolicy, StopReason, retry};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Returns the milliseconds since a fixed moment.
    safe fn now() -> f64;
}

struct Host;

impl Timer for Host {
    type Sleep = Until;

    fn now(&self) -> Duration {
        Duration::from_secs_f64(now() / 1e3)
    }

    fn sleep_until(&mut self, due: Duration) -> Until {
        Until(due)
    }
}

struct Until(Duration);

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if Host.now() >= self.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Polls a future until it ends, because nothing here could wake it.
fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// Makes a call that succeeds with its third attempt. Returns the attempts.
#[unsafe(no_mangle)]
pub extern "C" fn attempts() -> u32 {
    let mut attempts = 0;
    let call = retry(policy(), || {
        attempts += 1;
        ready(if attempts < 3 { Err("busy") } else { Ok(attempts) })
    });
    run(call.timer(Host).into_future()).unwrap_or(0)
}

/// Makes a call that always fails. Returns the milliseconds that its report contains.
#[unsafe(no_mangle)]
pub extern "C" fn elapsed() -> f64 {
    let failed = run(retry(policy(), || ready(Err::<(), _>("busy"))).timer(Host).into_future());
    failed.map_or_else(|error| error.elapsed().as_secs_f64() * 1e3, |()| 0.0)
}

/// Makes a call without a timer. Returns 1 if that is the reason for its end.
#[unsafe(no_mangle)]
pub extern "C" fn ends_without_timer() -> u32 {
    let failed = run(retry(policy(), || ready(Err::<(), _>("busy"))).into_future());
    failed.map_or_else(|error| u32::from(error.stop_reason() == StopReason::NoTimer), |()| 0)
}

fn policy() -> impl IntoOperationPolicy {
    RetryPolicy::operations().backoff(Exponential::no_jitter(Duration::from_millis(20))).seed(1)
}
