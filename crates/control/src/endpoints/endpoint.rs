//! One endpoint: its service, and the state that attempts read and change without a lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::{End, Health};

use super::names::Named;
use super::words::{FailureWord, LatencyWord, Stamp, WindowWord};
use crate::sync::{AtomicU64, Ordering};

/// The most calls in flight that a price tells apart, so that a price fits in 64 bits.
const MOST_IN_FLIGHT: usize = 1 << 16;

/// An endpoint of a set.
pub(crate) struct Endpoint<T> {
    pub(crate) named: Named,
    pub(crate) latency: LatencyWord,
    pub(crate) failures: FailureWord,
    window: WindowWord,
    pub(crate) picks: AtomicU64,
    pub(crate) service: T,
}

/// The reason for which an endpoint was put out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EjectReason {
    /// Five failures in a row, or one after a return, before a success.
    InARow,
    /// At least half of 20 calls or more in 10 s.
    FailureRate,
}

impl fmt::Display for EjectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InARow => "failures in a row",
            Self::FailureRate => "failure rate",
        })
    }
}

/// A failure for which its endpoint should be put out of service.
pub(crate) struct Decisive {
    pub(crate) reason: EjectReason,
    /// The time since the attempt was sent.
    pub(crate) after: Duration,
}

impl<T> Endpoint<T> {
    pub(crate) fn new(name: Arc<str>, service: T) -> Self {
        Self {
            named: Named::new(name),
            latency: LatencyWord::default(),
            failures: FailureWord::default(),
            window: WindowWord::default(),
            picks: AtomicU64::new(0),
            service,
        }
    }

    /// Records that an attempt is sent to it.
    #[inline]
    pub(crate) fn on_pick(&self) {
        self.picks.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the end of an attempt. Returns a failure for which the endpoint should be put out of service.
    #[inline]
    pub(crate) fn record(&self, end: &End, now: Stamp) -> Option<Decisive> {
        match end {
            End::Judged { health: Health::Served, after, .. } => {
                self.latency.served(*after, now);
                self.failures.served(now);
                self.window.served(now);
                None
            }
            End::Judged { health, after, .. } => self.unserved(*health, *after, now),
            End::Abandoned { after } => {
                self.latency.abandoned(*after, now);
                None
            }
            _ => None,
        }
    }

    #[cold]
    fn unserved(&self, health: Health, after: Duration, now: Stamp) -> Option<Decisive> {
        match health {
            Health::Overloaded => {
                self.latency.failed(after, now);
                self.failures.overloaded(now);
                None
            }
            Health::Failed | Health::Unavailable => {
                self.latency.failed(after, now);
                // Both count.
                let (row, rate) = (self.failures.failed(now), self.window.failed(now));
                let in_a_row = row.then_some(EjectReason::InARow);
                let reason = in_a_row.or(rate.then_some(EjectReason::FailureRate))?;
                Some(Decisive { reason, after })
            }
            _ => None,
        }
    }

    /// Marks the endpoint as out, and forgets the window that led to it.
    pub(crate) fn put_out(&self) {
        self.failures.put_out();
        self.window.close();
    }
}

/// The place of an endpoint in its set: the one reference that is no attempt in flight.
///
/// A set and its rosters share this value. Each attempt has a reference to the endpoint itself. So the references are
/// the count of attempts in flight, which a ticket cannot forget to end.
pub(crate) struct Member<T>(Arc<Endpoint<T>>);

impl<T> Member<T> {
    pub(crate) fn new(endpoint: Endpoint<T>) -> Self {
        Self(Arc::new(endpoint))
    }

    #[inline]
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint<T>> {
        &self.0
    }

    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// Returns `true` if this endpoint has a lower price than the other one.
    ///
    /// The price is latency × (in flight + 1) × (1 + 32 f). An unknown latency is that of the other endpoint while no
    /// attempt is in flight. One attempt is then enough to measure it.
    #[inline]
    pub(crate) fn is_cheaper(&self, other: &Self, now: Stamp) -> bool {
        let (own, others) = (self.in_flight(), other.in_flight());
        let (latency, rival) = match (self.0.latency.read(now), other.0.latency.read(now)) {
            (0, 0) => (1, 1),
            (0, _) if own > 0 => return false,
            (_, 0) if others > 0 => return true,
            (0, rival) => (rival, rival),
            (latency, 0) => (latency, latency),
            both => both,
        };
        self.price(latency, own, now) < other.price(rival, others, now)
    }

    /// Returns the price. It fits, because its factors are below 2³², at most 2¹⁶, and below 34 × 1,024.
    #[inline]
    fn price(&self, latency: u32, in_flight: usize, now: Stamp) -> u64 {
        let load = (in_flight + 1).min(MOST_IN_FLIGHT) as u64;
        u64::from(latency) * load * self.0.failures.factor(now)
    }
}
