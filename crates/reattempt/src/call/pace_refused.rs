//! The error of a call that was not admitted.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A call that a [`PaceLayer`](crate::pace::PaceLayer) turned away; nothing of it was sent.
///
/// It is found inside the boxed error of a layer with
/// [`boxed_errors`](crate::pace::PaceLayer::boxed_errors), and in the extensions of the answer that a protocol
/// gives in its place. A retry layer outside sends such a call again, unless its deadline ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceRefused {
    pub(crate) reason: PaceRefusal,
    pub(crate) wait: Duration,
}

/// Why a call was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaceRefusal {
    /// As many calls wait as may.
    QueueFull,
    /// The wait for its turn would be longer than a call may wait.
    WaitTooLong,
    /// Its turn is due after its deadline.
    DeadlineTooSoon,
}

impl PaceRefused {
    /// Returns why.
    pub fn reason(&self) -> PaceRefusal {
        self.reason
    }

    /// Returns how long it would have had to wait, by the interval at that moment.
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
