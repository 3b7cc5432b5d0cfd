//! The failure of an attempt, as passed to schedules and budgets.

use core::fmt;

/// The failure of one attempt: a kind, and the protocol's code if the server has responded.
///
/// A schedule may wait longer after some kinds of failure, and a budget may charge more for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failure {
    kind: FailureKind,
    code: Option<u16>,
    after_hop: bool,
}

/// The kinds of retryable failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection was established, or the request was never passed to one.
    Connect,
    /// The connection was lost, or the server refused the request on it.
    Network,
    /// No response came in time.
    Timeout,
    /// The server asked for a lower request rate (HTTP 429, gRPC RESOURCE_EXHAUSTED).
    Throttled,
    /// The server responded with a server error (HTTP 5xx, gRPC UNAVAILABLE).
    Server,
    /// The request carried something out of date that the caller renews, such as an expired token
    /// ([`Verdict::renew`](crate::Verdict::renew)).
    Stale,
    /// The server has accepted the work and asks the client to come back for its result
    /// ([`Verdict::pending`](crate::Verdict::pending)). It is no failure.
    Pending,
    /// Any other failure that a classifier marks as retryable.
    Other,
}

impl Failure {
    /// Creates a failure of this kind without a code.
    pub const fn new(kind: FailureKind) -> Self {
        Self { kind, code: None, after_hop: false }
    }

    /// Sets the protocol's code: an HTTP status or a gRPC code.
    pub const fn with_code(self, code: u16) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Marks the failure as having occurred at a later hop of a redirect. Even if that hop processed nothing, an
    /// earlier hop may have processed the request.
    pub const fn after_hop(self) -> Self {
        Self { after_hop: true, ..self }
    }

    /// Returns `true` if an earlier hop may have processed the request.
    pub const fn is_after_hop(&self) -> bool {
        self.after_hop
    }

    /// Returns the kind of failure.
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the HTTP status or the gRPC code, or `None` if there was no response.
    pub const fn code(&self) -> Option<u16> {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} ({code})", self.kind),
            None => write!(f, "{}", self.kind),
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::Connect => "connect",
            FailureKind::Network => "network",
            FailureKind::Timeout => "timeout",
            FailureKind::Throttled => "throttled",
            FailureKind::Server => "server",
            FailureKind::Stale => "stale",
            FailureKind::Pending => "pending",
            FailureKind::Other => "other",
        })
    }
}
