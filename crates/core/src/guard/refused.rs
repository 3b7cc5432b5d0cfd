//! A guard's refusal: its kind, its reason and the known wait, in 16 bytes.

use core::fmt;
use core::time::Duration;

use crate::Rounded;

/// A guard's refusal of an attempt: nothing was sent, and the server has not failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    guard: GuardKind,
    /// The wait in nanoseconds; the low [`REASON_BITS`] hold the reason.
    wait_and_reason: u64,
}

/// The kind of guard that refused, identified by its name.
///
/// ```
/// use reattempt_core::guard::{GuardKind, Reason, Refused};
///
/// const MAINTENANCE: GuardKind = GuardKind::named(&"maintenance window");
/// let refused = Refused::new(MAINTENANCE, Reason::Isolated);
/// assert_eq!(refused.to_string(), "not sent: the maintenance window is isolated");
/// assert_eq!(refused.guard(), MAINTENANCE);
/// ```
// A thin pointer, so that a refusal is 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GuardKind(&'static &'static str);

impl GuardKind {
    /// A circuit breaker.
    pub const CIRCUIT_BREAKER: Self = Self::named(&"circuit breaker");
    /// A rate limit.
    pub const RATE_LIMIT: Self = Self::named(&"rate limit");
    /// A bulkhead.
    pub const BULKHEAD: Self = Self::named(&"bulkhead");
    /// An adaptive limit on calls in flight.
    pub const ADAPTIVE_LIMIT: Self = Self::named(&"adaptive limit");
    /// A throttle, which refuses some calls while the server refuses many.
    pub const THROTTLE: Self = Self::named(&"throttle");
    /// A send rate that adapts to the server's refusals.
    pub const SEND_RATE: Self = Self::named(&"send rate");
    /// An interval between calls that adapts to the server.
    pub const PACE: Self = Self::named(&"pace");
    /// A pause, which a server has asked for.
    pub const PAUSE: Self = Self::named(&"pause");
    /// A set of endpoints.
    pub const ENDPOINTS: Self = Self::named(&"set of endpoints");
    /// A guard without a name of its own.
    pub const UNNAMED: Self = Self::named(&"guard");

    /// Creates a custom kind of guard. The name should be a few lower-case words. It appears in error texts and, joined
    /// with `_` or `-`, in metrics and gRPC metadata.
    pub const fn named(name: &'static &'static str) -> Self {
        Self(name)
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// The reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The circuit breaker is open.
    Open,
    /// The circuit breaker is half-open, and all its probes are in flight.
    TooManyRequests,
    /// An operator has closed the guard to all traffic.
    Isolated,
    /// All places are taken, or the queue is full.
    Full,
    /// The rate is exceeded.
    RateExceeded,
    /// The wait was too long: it exceeded, or would exceed, the deadline or the guard's own limit.
    WaitTooLong,
    /// The request needs more than the guard ever grants at once.
    TooLarge,
    /// The throttle refuses some calls, because the server is refusing many.
    Shed,
    /// There is no endpoint to send to.
    Empty,
    /// The server has asked the client to wait, and the wait is not over.
    Paused,
    /// The request's idempotency key may be known in one tier of the endpoints, and no endpoint of it is in service.
    TierDown,
}

/// The number of low bits that hold the reason.
const REASON_BITS: u32 = 8;

const REASONS: [Reason; 11] = [
    Reason::Open,
    Reason::TooManyRequests,
    Reason::Isolated,
    Reason::Full,
    Reason::RateExceeded,
    Reason::WaitTooLong,
    Reason::TooLarge,
    Reason::Shed,
    Reason::Empty,
    Reason::Paused,
    Reason::TierDown,
];

impl Refused {
    const UNKNOWN: u64 = u64::MAX >> REASON_BITS;

    /// Creates a refusal without a known wait.
    pub const fn new(guard: GuardKind, reason: Reason) -> Self {
        Self { guard, wait_and_reason: Self::UNKNOWN << REASON_BITS | reason as u64 }
    }

    /// Sets the wait after which the guard may admit the attempt. A wait of more than two years is treated as unknown.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        self.after_nanos(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sets the time after which the guard may admit the attempt, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn after_nanos(self, wait: u64) -> Self {
        let wait = if wait < Self::UNKNOWN { wait } else { Self::UNKNOWN };
        let reason = self.wait_and_reason & !(u64::MAX << REASON_BITS);
        Self { wait_and_reason: wait << REASON_BITS | reason, ..self }
    }

    /// Returns the kind of guard that refused.
    pub const fn guard(&self) -> GuardKind {
        self.guard
    }

    /// Returns the reason.
    pub const fn reason(&self) -> Reason {
        let [number, ..] = self.wait_and_reason.to_le_bytes();
        REASONS[number as usize % REASONS.len()]
    }

    /// Returns the wait after which the guard may admit the attempt, if it is known.
    pub const fn wait(&self) -> Option<Duration> {
        match self.wait_and_reason >> REASON_BITS {
            Self::UNKNOWN => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("guard", &self.guard)
            .field("reason", &self.reason())
            .field("wait", &self.wait())
            .finish()
    }
}

impl fmt::Display for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
            Self::Empty => "is empty",
            Self::Paused => "is not over",
            Self::TierDown => "has nothing in service in the tier that may know the request's key",
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not sent: the {} {}", self.guard, self.reason())?;
        match self.wait() {
            Some(wait) => write!(f, " (try again in {})", Rounded(wait)),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Refused {}
