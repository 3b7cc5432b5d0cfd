//! The crate's only clock: tokio's, so that tests can pause it. `retry()` also accepts a custom one.

use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::Sleep;

/// The instant from which time is counted. It is earlier than any reading of the clock in this process.
///
/// It is a month before the first use, because a paused clock may have stopped slightly earlier.
static EPOCH: LazyLock<tokio::time::Instant> = LazyLock::new(epoch);

#[expect(
    clippy::disallowed_types,
    reason = "the paused clock of one runtime may be far ahead of the clocks of the others"
)]
fn epoch() -> tokio::time::Instant {
    let now = tokio::time::Instant::from_std(std::time::Instant::now());
    now.checked_sub(Duration::from_secs(30 * 24 * 3600)).unwrap_or(now)
}

/// `true` for the target without a clock, on which reading the clock panics and tokio's timers do not run.
const NO_CLOCK: bool = cfg!(all(target_family = "wasm", target_os = "unknown"));

/// The longest duration of a timer: thirty years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

#[cfg(debug_assertions)]
thread_local! {
    /// The number of times that this thread has read the clock, for the tests of layers.
    pub static READINGS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// A time on a call's clock, as the duration since a fixed instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// Reads tokio's clock. On a target without a clock, the result is always the same.
    #[inline]
    pub fn now() -> Self {
        #[cfg(debug_assertions)]
        READINGS.set(READINGS.get() + 1);
        match NO_CLOCK {
            true => Self(Duration::ZERO),
            false => Self(tokio::time::Instant::now().saturating_duration_since(*EPOCH)),
        }
    }

    /// Returns the time this long after the fixed instant.
    pub(crate) const fn at(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// Returns the time since `earlier`, or zero if that is later.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time since this instant.
    #[cfg(feature = "http")]
    pub fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    /// Returns the time in the form that tokio's timers take.
    pub fn on_tokio(self) -> tokio::time::Instant {
        EPOCH.checked_add(self.0.min(FAR)).unwrap_or(*EPOCH)
    }

    /// Returns the time in the form that budgets take.
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// Returns the time after `wait`, which is limited to thirty years.
    pub fn later(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait.min(FAR)))
    }

    /// Returns `true` if a timer for this deadline, in an inner layer or at the server, may have expired by `now`.
    ///
    /// The timer was set at `since` or later. It may expire early, because the time in a header is rounded, and timers
    /// themselves round.
    pub fn is_due(self, since: Self, now: Self) -> bool {
        // A timeout in a header has at least five digits, unless its unit is the nanosecond, so its rounding error is
        // small.
        let slack = TIMER_SLACK + now.saturating_duration_since(since) / 65_536;
        self.saturating_duration_since(now) <= slack
    }
}

/// The time by which timers are late or early, because they round.
pub(crate) const TIMER_SLACK: Duration = Duration::from_millis(2);

/// Creates a timer for a time on tokio's clock.
pub fn sleep_until(until: Instant) -> Sleep {
    tokio::time::sleep_until(until.on_tokio())
}

/// Returns `true` if there is a current tokio runtime, which timers require.
///
/// tokio cannot report whether the runtime's time driver is enabled. If it is not, tokio panics when a timer is
/// created.
pub fn has_timer() -> bool {
    !NO_CLOCK && tokio::runtime::Handle::try_current().is_ok()
}

/// Polls a timer that interrupts another future, which was polled first.
///
/// A future that is always busy uses up the cooperative budget that tokio grants a task per poll. If the timer needed
/// part of that budget, it could never interrupt such a future.
pub fn poll_interrupt(sleep: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
    pin!(unconstrained(sleep)).poll(cx)
}

/// Polls until a response has been held for this time, which begins with the first poll. Without a runtime, nothing is
/// held.
#[cfg(feature = "http")]
pub fn poll_held(timer: &mut Pin<&mut Option<Sleep>>, within: Duration, cx: &mut Context<'_>) -> Poll<()> {
    if within.is_zero() || !has_timer() {
        return Poll::Ready(());
    }
    if timer.is_none() {
        timer.set(Some(tokio::time::sleep(within)));
    }
    timer.as_mut().as_pin_mut().map_or(Poll::Ready(()), |timer| poll_interrupt(timer, cx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn epoch_is_before_clock_of_any_runtime() {
        let of_another_runtime = tokio::time::Instant::now();
        tokio::time::advance(Duration::from_secs(365 * 24 * 3600)).await;
        assert!(epoch() < of_another_runtime);
    }
}
