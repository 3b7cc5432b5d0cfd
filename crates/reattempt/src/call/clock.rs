//! The one clock: tokio's, so that a paused clock governs everything.

use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep};

/// The moment from which the budgets' time counts. No clock of this process is before it.
///
/// It is a month before the first use, because a paused clock may have been stopped a little earlier.
static EPOCH: LazyLock<Instant> = LazyLock::new(epoch);

#[expect(
    clippy::disallowed_types,
    reason = "the paused clock of one runtime may be far ahead of the clocks of the others"
)]
fn epoch() -> Instant {
    let now = Instant::from_std(std::time::Instant::now());
    now.checked_sub(Duration::from_secs(30 * 24 * 3600)).unwrap_or(now)
}

/// Returns the monotonic time that budgets are given.
pub(crate) fn since_epoch(now: Instant) -> Duration {
    now.saturating_duration_since(*EPOCH)
}

/// Returns `now + wait`, with a wait of at most thirty years.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

/// Returns `true` if a timer below, or at the server, that enforces `deadline` may have fired by `now`.
///
/// Such a timer was set at `since` or later. It may fire early, because its time comes from a rounded field and because
/// timers round too.
pub(crate) fn is_due(deadline: Instant, since: Instant, now: Instant) -> bool {
    const TIMER: Duration = Duration::from_millis(2);
    // The field has five digits at least, unless it counts in nanoseconds.
    let slack = TIMER + now.saturating_duration_since(since) / 65_536;
    deadline.saturating_duration_since(now) <= slack
}

/// Returns `true` if there is a tokio runtime, which a wait needs.
///
/// tokio offers no way to find out if the runtime's time driver is on. Where it is off, tokio panics when a
/// timer is made.
pub(crate) fn has_timer() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

/// Polls a timer that interrupts another future, which was polled before.
///
/// A future that always has work uses up the budget that tokio gives a task for one poll. A timer that needed a part of
/// that budget would never end such a future.
pub(crate) fn poll_interrupt(sleep: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
    pin!(unconstrained(sleep)).poll(cx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn epoch_is_before_clock_of_any_runtime() {
        let of_another_runtime = Instant::now();
        tokio::time::advance(Duration::from_secs(365 * 24 * 3600)).await;
        assert!(epoch() < of_another_runtime);
    }
}
