//! The opening of the next attempt's body, for a body that each attempt opens anew.
//!
//! It begins after the delay, so that the body does not wait while it is open. The last outcome is held until then,
//! because it is returned if the body cannot be opened.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use reattempt_replay::UploadError;
use tokio::time::Sleep;

use super::HeldOutcome;
use super::timers::{LimitPassed, poll_by, poll_sleep};
use crate::call::clock::Instant;
use crate::protocol::{CallTypes, Saved};

/// A granted retry, with the outcome that is returned if its body cannot be opened.
pub(super) struct Unsent<T: CallTypes> {
    pub(super) held: HeldOutcome<T>,
    pub(super) saved: T::Saved,
}

/// The delay of a retry, and then the opening of its body.
pub(super) struct Opening<T: CallTypes> {
    /// `None` once the body is open.
    pub(super) unsent: Option<Box<Unsent<T>>>,
    /// The time limit for the opening.
    limit: Duration,
    /// The time at which the opening must end, once it has begun.
    by: Option<Instant>,
}

impl<T: CallTypes> Opening<T> {
    pub(super) fn new(unsent: Unsent<T>, limit: Duration) -> Self {
        Self { unsent: Some(Box::new(unsent)), limit, by: None }
    }

    /// Polls until the body is open, or cannot be. `end` returns the end of the call's time.
    pub(super) fn poll(
        &mut self,
        mut sleep: Pin<&mut Option<Sleep>>,
        cx: &mut Context<'_>,
        end: impl FnOnce() -> Option<Instant>,
    ) -> Poll<Result<(), UploadError>> {
        let Some(unsent) = &mut self.unsent else { return Poll::Pending };
        if self.by.is_none() {
            if let Some(due) = unsent.held.granted.due {
                ready!(poll_sleep(sleep.as_mut(), cx, due));
                unsent.held.granted.due = None;
            }
            let now = Instant::now();
            if let Some(end) = end() {
                self.limit = self.limit.min(end.saturating_duration_since(now));
            }
            self.by = Some(now.later(self.limit));
        }
        let mut by = self.by;
        let opened = poll_by(sleep, &mut by, cx, |cx| match unsent.saved.body_mut() {
            Some(body) => body.poll_open(cx),
            None => Poll::Ready(Ok(())),
        });
        opened.map(|opened| opened.unwrap_or_else(|LimitPassed| Err(UploadError::NotOpenAfter(self.limit))))
    }
}
