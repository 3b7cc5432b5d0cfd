//! Waits of a call between its attempts, on one timer.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Sleep;

use crate::call::clock::{self, Instant, sleep_until};

/// A time limit that has passed.
pub(super) struct LimitPassed;

/// Polls `work` with a time limit. A running timer is polled first, so that nothing is sent too late. A passed limit is
/// removed, because a call without any other outcome continues to wait.
pub(super) fn poll_by<T>(
    mut sleep: Pin<&mut Option<Sleep>>,
    by: &mut Option<Instant>,
    cx: &mut Context<'_>,
    mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<Result<T, LimitPassed>> {
    let armed = sleep.as_ref().as_pin_ref().is_some_and(|sleep| by.is_some_and(|by| sleep.deadline() == by.on_tokio()));
    if !armed && let Poll::Ready(done) = work(cx) {
        return Poll::Ready(Ok(done));
    }
    let Some(limit) = by.filter(|_| clock::has_timer()) else { return Poll::Pending };
    if poll_sleep(sleep.as_mut(), cx, limit).is_pending() {
        return if armed { work(cx).map(Ok) } else { Poll::Pending };
    }
    *by = None;
    Poll::Ready(Err(LimitPassed))
}

/// Sleeps until `until`, reusing the previous stage's timer if there was one.
pub(super) fn poll_sleep(mut sleep: Pin<&mut Option<Sleep>>, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
    match sleep.as_mut().as_pin_mut() {
        None => sleep.set(Some(sleep_until(until))),
        Some(running) if running.deadline() != until.on_tokio() => running.reset(until.on_tokio()),
        Some(_) => {}
    }
    sleep.as_pin_mut().map_or(Poll::Ready(()), |sleep| clock::poll_interrupt(sleep, cx))
}
