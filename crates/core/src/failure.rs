//! What kind of thing went wrong: the little of it that schedules and budgets look at.

use core::fmt;

/// How one attempt failed: a kind, and the protocol's own code where there is one.
///
/// Schedules that wait differently for each kind, and budgets that charge more for some, decide by
/// this value; it is `Copy` and knows no protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failure {
    kind: FailureKind,
    code: Option<u16>,
}

/// The kinds of failure that can be worth a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection was made, or the request was never handed to one.
    Connect,
    /// A connection was lost, or refused the request, after it had been made.
    Network,
    /// No answer came in time.
    Timeout,
    /// The server asked for fewer requests (HTTP 429, gRPC RESOURCE_EXHAUSTED).
    Throttled,
    /// The server answered that it failed (HTTP 5xx, gRPC UNAVAILABLE).
    Server,
    /// Anything else that a classifier holds to be worth a retry.
    Other,
}

impl Failure {
    /// A failure of this kind without a protocol's code.
    pub const fn new(kind: FailureKind) -> Self {
        Self { kind, code: None }
    }

    /// The same failure with the protocol's code: an HTTP status or a gRPC code.
    pub const fn with_code(self, code: u16) -> Self {
        Self { kind: self.kind, code: Some(code) }
    }

    /// The kind of failure.
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The HTTP status or the gRPC code; `None` when no answer came.
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
            FailureKind::Other => "other",
        })
    }
}
