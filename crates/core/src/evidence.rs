//! The evidence in an outcome: what it shows about the request, the server, and other attempts.
//!
//! One pure function, [`Evidence::of`], makes it from plain values. Retry decisions, budgets, guards, endpoints and
//! reports read the result, so no two of them judge the same outcome differently.

use core::fmt;
use core::time::Duration;

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

/// What the outcome of one attempt is evidence of.
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
    /// Whose matter the outcome is: the server's, or that of this machine, the way or the caller.
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
            FailureKind::Timeout | FailureKind::Throttled => false,
        }
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
    match (signs.fault, signs.verdict) {
        (Some(Fault::Caller), _) => Health::Ignored,
        (Some(Fault::Local), _) => Health::Local,
        (None, Verdict::Success) => Health::Served,
        (None, Verdict::Permanent) => signs.permanent,
        (None, Verdict::Transient(failure) | Verdict::NotProcessed(failure)) => of_failure(&failure, signs),
    }
}

fn of_failure(failure: &Failure, signs: &Signs) -> Health {
    let code = failure.code();
    match failure.kind() {
        FailureKind::Throttled => Health::Overloaded,
        FailureKind::Timeout => Health::Unavailable,
        FailureKind::Stale => Health::Served,
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
