//! The evidence in an outcome: what it shows about the request, the server, and other attempts.
//!
//! One pure function, [`Evidence::of`], makes it from plain values. Retry decisions, budgets, guards, endpoints and
//! reports read the result, so no two of them judge the same outcome differently.

use core::fmt;
use core::time::Duration;

use crate::event::is_member;
use crate::guard::Health;
use crate::{Failure, FailureKind, Undone, Verdict};

/// The work that a failed attempt may have caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// The server provably did no work.
    None,
    /// The server may have done the work.
    Maybe,
}

/// The proof that a failed attempt was not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Proof {
    /// A guard of this client refused to send the attempt.
    NotSent,
    /// No connection was established.
    NotConnected,
    /// The request waited for a connection that another call was opening, and that call gave up or failed.
    OtherConnection,
    /// The request was never passed to its connection.
    NotDispatched,
    /// The server refused the stream (REFUSED_STREAM).
    RefusedStream,
    /// The server's GOAWAY excluded the request.
    GoAway,
    /// The server, or a classifier, rejected the request before any work was done (425, 429).
    Rejected,
}

impl Proof {
    /// Returns the name, as in the labels of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::NotConnected => "not_connected",
            Self::OtherConnection => "other_connection",
            Self::NotDispatched => "not_dispatched",
            Self::RefusedStream => "refused_stream",
            Self::GoAway => "goaway",
            Self::Rejected => "rejected",
        }
    }
}

impl From<Undone> for Proof {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::NoConnection => Self::OtherConnection,
            Undone::NotDispatched => Self::NotDispatched,
            Undone::Refused => Self::RefusedStream,
            Undone::Excluded => Self::GoAway,
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSent => "a guard did not send it",
            Self::NotConnected => "no connection was established",
            Self::OtherConnection => "another call's connection was not established",
            Self::NotDispatched => "the request was not passed to its connection",
            Self::RefusedStream => "the server refused the stream",
            Self::GoAway => "a GOAWAY excluded the request",
            Self::Rejected => "the server rejected the request before any work",
        })
    }
}

/// The party whose fault an error is, if that is not the server or the connection to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The caller: its request body failed or was not sent in time, or the request could not be built.
    Caller,
    /// This machine or the way to the server: no free port, file descriptor or memory, or no answer from a resolver or
    /// proxy.
    Local,
}

/// The signs in an outcome from which [`Evidence`] is made.
///
/// [`new`](Signs::new) sets the fields to the values of an outcome without special signs.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    /// The meaning of the outcome.
    pub verdict: Verdict,
    /// The stage at which the attempt ended, if it provably was not processed.
    pub undone: Option<Undone>,
    /// The party whose fault it is, if the outcome shows that it is not the server's.
    pub fault: Option<Fault>,
    /// The health of a server whose outcome is a permanent failure. By default, it has failed.
    pub permanent: Health,
    /// The codes of a server that does not accept calls, or does not finish them in time.
    pub unavailable: &'static [u16],
}

impl Signs {
    /// Creates the signs of an outcome with this verdict.
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, undone: None, fault: None, permanent: Health::Failed, unavailable: &[] }
    }
}

/// The evidence in the outcome of one attempt.
///
/// # Events
///
/// A lost connection fails every call on it, and an expired token every call that carried it. Such failures have one
/// cause, so they are one *event*: the first failure and all failures of attempts that were [sent](Self::sent) before
/// it was seen. Budgets, breakers and endpoints count an event once. A failure of an attempt that was sent later is the
/// next event. TCP does the same: it reacts to one congestion event per flight (RFC 6582).
///
/// Timeouts, 429 and 5xx are the signs of overload. They are never [shared](Self::is_shared), so each one counts.
///
/// ```
/// use core::time::Duration;
/// use reattempt_core::{Evidence, Failure, FailureKind, Verdict};
///
/// let lost = Verdict::Transient(Failure::new(FailureKind::Network));
/// let lost = Evidence::from(lost).sent_at(Duration::from_millis(20));
/// assert!(lost.is_shared());
/// assert!(!Evidence::from(Verdict::transient()).is_shared(), "a server error stands alone");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// The failure. For an outcome that is not retryable, it is of the kind [`Other`](FailureKind::Other).
    pub failure: Failure,
    /// The work that the attempt may have caused.
    pub work: Work,
    /// The party that the outcome concerns: the server, this machine or the way to the server, or the caller.
    pub health: Health,
    /// The stage at which the attempt ended, if it provably was not processed.
    pub undone: Option<Undone>,
    /// The monotonic time at which the attempt was sent. If it is unknown, it is the maximum, and the failure is an
    /// event of its own.
    pub sent: Duration,
}

impl Evidence {
    /// Makes the evidence from the signs in an outcome. The time of sending is added with [`sent_at`](Self::sent_at).
    #[must_use]
    pub fn of(signs: &Signs) -> Self {
        let Signs { verdict, undone, .. } = *signs;
        let failure = verdict.failure().copied();
        let work = match verdict {
            Verdict::NotProcessed(_) => Work::None,
            _ if undone.is_some() => Work::None,
            _ => Work::Maybe,
        };
        Self {
            failure: failure.unwrap_or(Failure::new(FailureKind::Other)),
            work,
            health: health(signs),
            undone,
            sent: Duration::MAX,
        }
    }

    /// Sets the time at which the attempt was sent.
    #[must_use]
    pub const fn sent_at(self, sent: Duration) -> Self {
        Self { sent, ..self }
    }

    /// Returns `true` if other attempts that were sent before this failure was seen may fail of the same cause.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match self.failure.kind() {
            FailureKind::Network | FailureKind::Connect | FailureKind::Stale => true,
            FailureKind::Server | FailureKind::Other => is_client_error(&self.failure),
            FailureKind::Timeout | FailureKind::Throttled | FailureKind::Pending => false,
        }
    }

    /// Returns the proof that the attempt was not processed, if there is one.
    #[must_use]
    pub fn proof(&self) -> Option<Proof> {
        let rejected = || match self.failure.kind() {
            FailureKind::Connect => Proof::NotConnected,
            _ => Proof::Rejected,
        };
        (self.work == Work::None).then(|| self.undone.map_or_else(rejected, Proof::from))
    }

    /// Returns `true` if the failure belongs to the event whose first failure was seen at `seen`.
    #[must_use]
    pub fn is_of_event(&self, seen: Duration) -> bool {
        self.is_shared() && is_member(self.sent, seen)
    }

    /// Returns `true` if time ran out while the attempt waited for its caller, so that the failure shows nothing about
    /// the server.
    #[must_use]
    pub fn is_callers_time(&self) -> bool {
        self.health == Health::Ignored && self.failure.kind() == FailureKind::Timeout
    }

    /// Returns `true` if the failure is due to this machine or the way to the server, so that nothing reached it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.health == Health::Local && self.undone.is_none()
    }
}

impl From<Verdict> for Evidence {
    fn from(verdict: Verdict) -> Self {
        Self::of(&Signs::new(verdict))
    }
}

impl From<Failure> for Evidence {
    /// Makes the evidence of a failed attempt that may have been processed.
    fn from(failure: Failure) -> Self {
        Verdict::Transient(failure).into()
    }
}

/// Shows the failure.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

/// Returns `true` for an HTTP status 4xx that a classifier made retryable. The next request may differ, for example by
/// a new token. 408 and 429 are signs of the server's load.
fn is_client_error(failure: &Failure) -> bool {
    failure.code().is_some_and(|code| matches!(code, 400..=499) && !matches!(code, 408 | 429))
}

/// Returns the health of the server. Each kind of failure has one.
fn health(signs: &Signs) -> Health {
    let failure = match (signs.fault, &signs.verdict) {
        (Some(Fault::Caller), _) => return Health::Ignored,
        (Some(Fault::Local), _) => return Health::Local,
        (None, Verdict::Success) => return Health::Served,
        (None, Verdict::Permanent) => return signs.permanent,
        (None, Verdict::Transient(failure) | Verdict::NotProcessed(failure)) => failure,
    };
    let code = failure.code();
    match failure.kind() {
        FailureKind::Throttled => Health::Overloaded,
        FailureKind::Timeout => Health::Unavailable,
        FailureKind::Stale | FailureKind::Pending => Health::Served,
        // The connection ended before it could take the request, or another call gave it up.
        FailureKind::Connect if signs.undone.is_some() => Health::Local,
        FailureKind::Connect => Health::NotConnected,
        FailureKind::Network => Health::Lost,
        // The request did not arrive in time (RFC 9110 §15.5.9), because its body was slow or the connection idle. This
        // is not a success either, because some proxies send a 408 on behalf of their servers.
        FailureKind::Server if code == Some(408) => Health::Ignored,
        FailureKind::Server if code.is_some_and(|code| signs.unavailable.contains(&code)) => Health::Unavailable,
        FailureKind::Server | FailureKind::Other if is_client_error(failure) => Health::Lost,
        FailureKind::Server | FailureKind::Other => Health::Failed,
    }
}
