//! The arrival of an attempt at a guard, and the guard's decisions.

use core::time::Duration;

use super::Refused;

/// An attempt that arrives at a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival<'a> {
    /// The request's server, such as `https://example.com`. A guard without per-destination state ignores it.
    pub destination: &'a str,
    /// The monotonic time since some fixed instant.
    pub now: Duration,
    /// The call's deadline on the same clock, if it has one. An attempt that would wait past the deadline is refused
    /// immediately.
    pub latest: Option<Duration>,
    /// `true` if the attempt may wait. Hedges may not.
    pub patient: bool,
    /// The time limit for the attempt once it is sent, if the guard's layer has one.
    pub timeout: Option<Duration>,
}

impl<'a> Arrival<'a> {
    /// Creates an arrival that may wait and has no deadline.
    pub const fn new(destination: &'a str, now: Duration) -> Self {
        Self { destination, now, latest: None, patient: true, timeout: None }
    }

    /// Sets the deadline.
    #[must_use]
    pub const fn latest(self, latest: Duration) -> Self {
        Self { latest: Some(latest), ..self }
    }

    /// Returns this arrival with `patient` set to `false`.
    #[must_use]
    pub const fn impatient(self) -> Self {
        Self { patient: false, ..self }
    }
}

/// A guard's decision about an arriving attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admit<T> {
    /// The attempt may be sent.
    Admitted(T),
    /// The attempt is queued; [`Guard::resume`](super::Guard::resume) decides later.
    Waiting(T),
    /// The attempt may not be sent.
    Refused(Refused),
}

impl<T> Admit<T> {
    /// Converts the ticket, if there is one.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Admit<U> {
        match self {
            Self::Admitted(ticket) => Admit::Admitted(convert(ticket)),
            Self::Waiting(ticket) => Admit::Waiting(convert(ticket)),
            Self::Refused(refused) => Admit::Refused(refused),
        }
    }
}

/// A guard's decision about a waiting attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// The attempt may be sent.
    Admitted,
    /// The attempt keeps waiting.
    Waiting {
        /// The time at which to poll again, unless the attempt is woken earlier.
        until: Option<Duration>,
    },
    /// The attempt may not be sent, and its ticket is no longer valid.
    Refused(Refused),
}
