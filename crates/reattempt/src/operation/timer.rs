//! The clock and the timer of a retried operation: tokio's, or those of its caller.

use std::time::Duration;

use tokio::time::Sleep;

use crate::call::clock::{self, Instant};

/// A clock and a timer for [`Retrying::timer`](super::Retrying::timer), where tokio's are not available.
///
/// Budgets and schedules with shared state compare the times of their calls, so all of these calls need the same clock.
///
/// ```
/// use std::cell::Cell;
/// use std::future::{Ready, ready};
/// use std::time::Duration;
/// use reattempt::operation::Timer;
/// use reattempt::retry;
/// use reattempt::schedule::Constant;
///
/// /// A clock for tests, on which every wait is over at once.
/// #[derive(Default)]
/// struct Manual(Cell<Duration>);
///
/// impl Timer for &Manual {
///     type Sleep = Ready<()>;
///
///     fn now(&self) -> Duration {
///         self.0.get()
///     }
///
///     fn sleep_until(&mut self, due: Duration) -> Ready<()> {
///         self.0.set(due);
///         ready(())
///     }
/// }
///
/// # async fn example() {
/// let clock = Manual::default();
/// let error = retry(Constant::new(Duration::from_secs(5)), async || Err::<(), _>("busy")).timer(&clock).await;
/// assert_eq!(error.unwrap_err().elapsed(), Duration::from_secs(10));
/// # }
/// # tokio_test::block_on(example());
/// ```
pub trait Timer {
    /// The future of a wait. Its output is ignored. The wait starts at its first poll or earlier.
    type Sleep: Future;

    /// Returns the time since a fixed moment. It never decreases.
    fn now(&self) -> Duration;

    /// Creates a wait that ends at this time, which may have passed.
    fn sleep_until(&mut self, due: Duration) -> Self::Sleep;
}

/// The clock and the timer of tokio, the default of [`retry`](crate::retry()).
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    type Sleep = Sleep;

    #[inline]
    fn now(&self) -> Duration {
        clock::since_epoch(Instant::now())
    }

    fn sleep_until(&mut self, due: Duration) -> Sleep {
        clock::sleep_until(Instant::at(due))
    }
}

/// The system's clock, with a function that creates waits.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(super) struct SleepFunction<F>(pub(super) F);

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl<F: FnMut(Duration) -> Wait, Wait: Future> Timer for SleepFunction<F> {
    type Sleep = Wait;

    fn now(&self) -> Duration {
        TokioTimer.now()
    }

    fn sleep_until(&mut self, due: Duration) -> Wait {
        let wait = due.saturating_sub(self.now());
        (self.0)(wait)
    }
}
