//! The error of a call that was not admitted.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The error of a call that a [`PaceLayer`](crate::pace::PaceLayer) turned away. Nothing of it was sent.
///
/// It is in the `BoxError` of a layer with [`boxed_errors`](crate::pace::PaceLayer::boxed_errors), or in the extensions
/// of the response that the protocol returns instead. A retry layer outside retries the call, unless its deadline ended
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceRefused {
    pub(crate) reason: PaceRefusal,
    pub(crate) wait: Duration,
}

/// The reason for which a call was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaceRefusal {
    /// The queue has as many calls as it may.
    QueueFull,
    /// The wait for its turn would be longer than a call may wait.
    WaitTooLong,
    /// Its turn is due after its deadline.
    DeadlineTooSoon,
}

impl PaceRefused {
    /// Returns the reason.
    pub fn reason(&self) -> PaceRefusal {
        self.reason
    }

    /// Returns the time for which the call would have waited, by the interval at that moment.
    pub fn wait(&self) -> Duration {
        self.wait
    }
}

impl fmt::Display for PaceRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            PaceRefusal::QueueFull => "too many calls wait for their turns",
            PaceRefusal::WaitTooLong => "the wait for a turn is too long",
            PaceRefusal::DeadlineTooSoon => "the turn is due after the deadline",
        };
        write!(f, "the call was not sent: {reason} ({:?})", self.wait)
    }
}

impl Error for PaceRefused {}
