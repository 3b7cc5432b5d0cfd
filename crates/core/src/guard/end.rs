//! The end of an attempt, as reported to guards.

use core::time::Duration;

use crate::ServerHint;

/// The end of an admitted attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The attempt ended with an outcome.
    Judged {
        /// The server's health, as judged from the outcome.
        health: Health,
        /// The delay that the server requested.
        hint: ServerHint,
        /// The quota stated in the response, if it was read.
        quota: Option<Quota>,
        /// The time since the attempt was sent.
        after: Duration,
    },
    /// The caller dropped the attempt after it was sent, or an outer time limit ended it before the server had its
    /// time. Otherwise, an attempt that a time limit ends is judged as [unavailable](Health::Unavailable).
    Abandoned {
        /// The time since the attempt was sent.
        after: Duration,
    },
    /// The attempt was never sent: another guard refused it, or it was dropped while waiting. The guard's state must be
    /// as if the attempt had never arrived.
    Unsent,
    /// The response body has ended. Only guards that hold their ticket until then are notified.
    Over(BodyEnd),
}

impl End {
    /// Creates the end of an attempt with an outcome, without a server hint or quota.
    pub const fn judged(health: Health, after: Duration) -> Self {
        Self::Judged { health, hint: ServerHint::None, quota: None, after }
    }

    /// Adds the server's hint to an end with an outcome.
    #[must_use]
    pub const fn with_hint(self, hint: ServerHint) -> Self {
        match self {
            Self::Judged { health, quota, after, .. } => Self::Judged { health, hint, quota, after },
            other => other,
        }
    }

    /// Returns the wait that the server requested of its callers when it refused the attempt (429, 503). Returns `None`
    /// if it did not refuse the attempt, or requested no wait that can be read.
    ///
    /// gRPC's pushback ([`ServerHint::Exactly`]) concerns only its own call, so it is no such wait.
    pub fn requested_wait(&self) -> Option<Duration> {
        match *self {
            Self::Judged {
                health: Health::Overloaded | Health::Unavailable,
                hint: ServerHint::After(wait) | ServerHint::AtLeast(wait),
                ..
            } => Some(wait).filter(|wait| !wait.is_zero()),
            _ => None,
        }
    }
}

/// The number of calls that the server still allows, as stated in its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// The number of calls left until the reset.
    pub remaining: u32,
    /// The time until the quota is renewed.
    pub reset: Duration,
}

impl Quota {
    /// Creates a quota of `remaining` calls until the reset.
    pub const fn new(remaining: u32, reset: Duration) -> Self {
        Self { remaining, reset }
    }
}

/// The end of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BodyEnd {
    /// The body was read to its end.
    Complete,
    /// The body failed.
    Broken,
    /// The caller dropped the body before its end.
    Dropped,
}

/// The server's health, as judged from an outcome.
///
/// The health is independent of the [`Verdict`](crate::Verdict): after a 404 the verdict is permanent, but the server
/// is healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Health {
    /// The server did its work, even if the response is a client error (404).
    Served,
    /// The server failed (500, INTERNAL).
    Failed,
    /// The connection was lost, or another cause failed all attempts that share it. Failures of attempts that were sent
    /// before the first of them was seen are one [event](crate::Evidence#events), which counts as one failure.
    Lost,
    /// The server accepted no connection. Each one counts as a failure.
    NotConnected,
    /// The server refused the work because it is overloaded (429, RESOURCE_EXHAUSTED).
    Overloaded,
    /// The server did not accept the work, or did not finish it in time (503, UNAVAILABLE, a timeout).
    ///
    /// A circuit breaker counts it as a failure, and an adaptive limit as overload.
    Unavailable,
    /// This machine or the way to the server failed: no free port or file descriptor, no answer from a resolver. The
    /// outcome shows nothing about the server.
    Local,
    /// The outcome is the caller's matter, such as an error in its own body.
    Ignored,
}
