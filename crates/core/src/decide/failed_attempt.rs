//! The facts about a failed attempt.

use core::time::Duration;

use crate::guard::Refused;
use crate::{Classification, Evidence, Fault, SentAt, Signs, Undone};

/// A failed attempt, as reported by the driver.
///
/// [`new`](FailedAttempt::new) sets the remaining fields to values that allow a retry.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'a> {
    /// The classification of the outcome.
    pub classification: Classification,
    /// The refusal, if an inner guard refused to send the attempt. It is checked before everything else.
    pub refused: Option<Refused>,
    /// The stage at which the attempt ended, if it provably was not processed and is replaced for that reason.
    pub undone: Option<Undone>,
    /// The party whose fault it is, if the outcome shows that it is not the server's.
    pub fault: Option<Fault>,
    /// `true` if a server responded to the attempt.
    pub responded: bool,
    /// `true` if an endpoint that the call has not tried is available.
    pub elsewhere: bool,
    /// `true` if the caller's own request body has failed.
    pub source_failed: bool,
    /// `true` if the request can be sent again, because its body was saved.
    pub replayable: bool,
    /// The value that [`Schedule::on_send`](crate::Schedule::on_send) returned for the attempt.
    pub sent_at: SentAt,
    /// The monotonic time at which the attempt was sent, on the clock of `now`. It shows whether attempts fail of the
    /// same cause. If it is unknown, it is the maximum.
    pub sent: Duration,
    /// The time since the call started.
    pub elapsed: Duration,
    /// The time left until the call's deadline, or `None` if it has no deadline.
    pub until_deadline: Option<Duration>,
    /// The request's server, used as the budget's key.
    pub destination: &'a str,
    /// The current monotonic time, for the budget.
    pub now: Duration,
    /// A function that returns `true` if the driver can wait. It is called only if there is a delay.
    pub can_wait: fn() -> bool,
}

impl<'a> FailedAttempt<'a> {
    /// Creates an attempt that failed at `now`, with no time elapsed since the call started.
    pub fn new(classification: impl Into<Classification>, destination: &'a str, now: Duration) -> Self {
        Self {
            classification: classification.into(),
            refused: None,
            undone: None,
            fault: None,
            responded: false,
            elsewhere: false,
            source_failed: false,
            replayable: true,
            sent_at: SentAt::default(),
            sent: Duration::MAX,
            elapsed: Duration::ZERO,
            until_deadline: None,
            destination,
            now,
            can_wait: || true,
        }
    }

    /// Sets the time since the call started.
    pub const fn elapsed(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }

    /// Sets the value that [`Schedule::on_send`](crate::Schedule::on_send) returned for the attempt.
    pub const fn sent_at(self, sent_at: SentAt) -> Self {
        Self { sent_at, ..self }
    }

    /// Sets the time at which the attempt was sent.
    pub const fn sent(self, sent: Duration) -> Self {
        Self { sent, ..self }
    }

    /// Makes the evidence in the outcome. [`Call`](crate::Call) does so once, and keeps it.
    pub(crate) fn evidence(&self) -> Evidence {
        let signs = Signs { undone: self.undone, fault: self.fault, ..Signs::new(self.classification.verdict) };
        Evidence { sent: self.sent, ..Evidence::of(&signs) }
    }

    /// Sets [`elsewhere`](FailedAttempt::elsewhere).
    pub const fn elsewhere(self, elsewhere: bool) -> Self {
        Self { elsewhere, ..self }
    }
}
