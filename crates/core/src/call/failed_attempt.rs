//! The facts about a failed attempt.

use core::time::Duration;

use crate::{Admission, Judgement};

/// How far an attempt came on a connection that was there, if it was not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Undone {
    /// The request was never handed to the connection.
    NotDispatched,
    /// The server refused it before its application saw any of it: HTTP/2's GOAWAY that left the request
    /// out, or a reset with REFUSED_STREAM. Some proxies send the latter after their backend has processed
    /// the request.
    Refused,
}

/// A failed attempt, as its driver saw it.
///
/// [`new`](FailedAttempt::new) sets the fields so that nothing stands in the way of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt<'a> {
    /// How the attempt ended.
    pub judgement: Judgement,
    /// How far it came, if it was not processed and the protocol resends such attempts at once.
    pub undone: Option<Undone>,
    /// Whether the caller's own request body has failed.
    pub source_failed: bool,
    /// Whether the request can be sent again: its body was kept.
    pub replayable: bool,
    /// What the schedule noted when the attempt was sent.
    pub admission: Admission,
    /// Time since the call started.
    pub elapsed: Duration,
    /// Time left until the call's deadline; `None` without one.
    pub until_deadline: Option<Duration>,
    /// The server that the request is for: the key of the budget.
    pub destination: &'a str,
    /// Monotonic time, for the budget.
    pub now: Duration,
}

impl<'a> FailedAttempt<'a> {
    /// Creates an attempt that failed at `now`, at once after the call started.
    pub fn new(judgement: impl Into<Judgement>, destination: &'a str, now: Duration) -> Self {
        Self {
            judgement: judgement.into(),
            undone: None,
            source_failed: false,
            replayable: true,
            admission: Admission::default(),
            elapsed: Duration::ZERO,
            until_deadline: None,
            destination,
            now,
        }
    }

    /// Sets the time since the call started.
    pub const fn elapsed(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }

    /// Sets what the schedule noted when the attempt was sent.
    pub const fn admitted(self, admission: Admission) -> Self {
        Self { admission, ..self }
    }
}
