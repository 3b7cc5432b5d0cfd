//! The refusal of a guard: its kind, its reason and the known wait, in 16 bytes.

use core::fmt;
use core::time::Duration;

use crate::Rounded;

/// A refusal by a guard: nothing was sent, and the server has not failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The wait in nanoseconds. The maximum value stands for "unknown".
    wait: u64,
    guard: GuardKind,
    reason: Reason,
}

/// The kind of guard that refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardKind {
    /// A circuit breaker.
    CircuitBreaker,
    /// A rate limit.
    RateLimit,
    /// A bulkhead.
    Bulkhead,
    /// An adaptive limit on calls in flight.
    AdaptiveLimit,
    /// A throttle, which refuses some calls while the server refuses many.
    Throttle,
    /// A send rate that adapts to the server.
    SendRate,
    /// An interval between calls that adapts to the server.
    Pace,
    /// A custom guard.
    Custom,
}

/// The reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The circuit breaker is open.
    Open,
    /// The circuit breaker is half-open, and all its probes are under way.
    TooManyRequests,
    /// An operator has closed the guard to all traffic.
    Isolated,
    /// All places are taken, or the queue is full.
    Full,
    /// The rate is exceeded.
    RateExceeded,
    /// The wait was too long: it passed, or would pass, the deadline or the guard's own limit.
    WaitTooLong,
    /// The request is for more than the guard ever grants at once.
    TooLarge,
    /// The server refuses so many calls that the throttle drops a part of them.
    Shed,
}

impl Refused {
    const UNKNOWN: u64 = u64::MAX;

    /// Creates a refusal without a known wait.
    pub const fn new(guard: GuardKind, reason: Reason) -> Self {
        Self { wait: Self::UNKNOWN, guard, reason }
    }

    /// Sets the wait after which the guard may admit the attempt. A wait of more than 584 years counts as unknown.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self { wait: u64::try_from(wait.as_nanos()).unwrap_or(Self::UNKNOWN), ..self }
    }

    /// Returns the kind of guard that refused.
    pub const fn guard(&self) -> GuardKind {
        self.guard
    }

    /// Returns the reason.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the wait after which the guard may admit the attempt, if it is known.
    pub const fn wait(&self) -> Option<Duration> {
        match self.wait {
            Self::UNKNOWN => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("guard", &self.guard)
            .field("reason", &self.reason)
            .field("wait", &self.wait())
            .finish()
    }
}

impl fmt::Display for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CircuitBreaker => "circuit breaker",
            Self::RateLimit => "rate limit",
            Self::Bulkhead => "bulkhead",
            Self::AdaptiveLimit => "adaptive limit",
            Self::Throttle => "throttle",
            Self::SendRate => "send rate",
            Self::Pace => "pace",
            Self::Custom => "guard",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "is open",
            Self::TooManyRequests => "has all its probes under way",
            Self::Isolated => "is isolated",
            Self::Full => "is full",
            Self::RateExceeded => "is exceeded",
            Self::WaitTooLong => "makes the call wait too long",
            Self::TooLarge => "never grants as much at once",
            Self::Shed => "sheds part of the calls",
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not sent: the {} {}", self.guard, self.reason)?;
        match self.wait() {
            Some(wait) => write!(f, " (try again in {})", Rounded(wait)),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Refused {}
