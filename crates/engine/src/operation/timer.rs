//! The clock and the timer of a retried operation: tokio's or custom ones.

use std::time::Duration;

use tokio::time::Sleep;

use crate::call::clock::{self, Instant};

/// A clock and a timer for [`Retrying::timer`](super::Retrying::timer), for use without tokio.
///
/// Budgets and schedules with shared state compare times from several calls, so all of these calls must use one clock.
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
    /// The future of a wait, whose output is ignored. The wait may start before the first poll.
    type Sleep: Future;

    /// Returns the time since a fixed instant. It must never decrease.
    fn now(&self) -> Duration;

    /// Creates a wait that ends at this time, which may be in the past.
    fn sleep_until(&mut self, due: Duration) -> Self::Sleep;
}

/// The tokio clock and timer, which [`retry`](crate::retry()) uses by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    type Sleep = Sleep;

    #[inline]
    fn now(&self) -> Duration {
        Instant::now().since_epoch()
    }

    fn sleep_until(&mut self, due: Duration) -> Sleep {
        clock::sleep_until(Instant::at(due))
    }
}

/// The system clock, with a function that creates waits.
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
