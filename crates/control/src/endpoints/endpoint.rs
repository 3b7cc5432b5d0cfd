//! One endpoint: its service, and the lock-free state that attempts read and update.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::ServerHint;
use reattempt_core::guard::{End, Health};

use super::ejection_rules::FailureLimits;
use super::event_word::EventWord;
use super::latency_word::LatencyWord;
use super::names::Named;
use super::words::{FailureWord, Stamp, WindowWord};
use crate::millionths::MILLION;
use crate::sync::{AtomicU64, Ordering};

/// An endpoint in a set.
pub(crate) struct Endpoint<T> {
    pub(crate) named: Named,
    pub(crate) latency: LatencyWord,
    pub(crate) failures: FailureWord,
    window: WindowWord,
    event: EventWord,
    limits: FailureLimits,
    pub(crate) picks: AtomicU64,
    pub(crate) service: T,
}

/// The reason why an endpoint was ejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EjectReason {
    /// Five consecutive failures, or as many as the [rules](super::EjectionRules) say. A lost connection counts as two
    /// of them, however many calls it has ended. After an ejection, a single failure is enough until the first success.
    InARow,
    /// At least half of 20 or more calls failed within 10 s, or as the rules say.
    FailureRate,
    /// The endpoint accepted no connection. A single failure is enough.
    NoConnection,
    /// The endpoint asked its clients to wait, in a 503 response with a `Retry-After`.
    Asked,
}

impl fmt::Display for EjectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InARow => "failures in a row",
            Self::FailureRate => "failure rate",
            Self::NoConnection => "no connection",
            Self::Asked => "it asked for a wait",
        })
    }
}

/// A failure that should eject its endpoint.
pub(crate) struct Decisive {
    /// The reason, if the failure itself ejects the endpoint.
    pub(crate) reason: Option<EjectReason>,
    /// The wait that the server asked for, if any.
    pub(crate) wait: Option<Duration>,
    /// The time since the attempt was sent.
    pub(crate) after: Duration,
}

impl Decisive {
    /// Returns the failure if it should eject its endpoint.
    fn of(reason: Option<EjectReason>, wait: Option<Duration>, after: Duration) -> Option<Self> {
        (reason.is_some() || wait.is_some()).then_some(Self { reason, wait, after })
    }

    /// Returns the time at which the attempt was sent, in milliseconds.
    pub(crate) fn sent(&self, now: u64) -> u64 {
        now.saturating_sub(u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX))
    }
}

impl<T> Endpoint<T> {
    pub(crate) fn new(name: Arc<str>, limits: FailureLimits, service: T) -> Self {
        Self {
            named: Named::new(name),
            latency: LatencyWord::default(),
            failures: FailureWord::default(),
            window: WindowWord::default(),
            event: EventWord::default(),
            limits,
            picks: AtomicU64::new(0),
            service,
        }
    }

    /// Records that an attempt is being sent to the endpoint.
    #[inline]
    pub(crate) fn on_pick(&self) {
        self.picks.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the end of an attempt at `now`, which is `at` as a stamp. Returns the failure if it should eject the
    /// endpoint.
    #[inline]
    pub(crate) fn record(&self, end: &End, now: Duration, at: Stamp) -> Option<Decisive> {
        match end {
            End::Judged { health: Health::Served, after, .. } => {
                self.latency.served(*after, at);
                self.failures.served(at);
                self.window.served(at);
                None
            }
            End::Judged { health, hint, after, .. } => self.unserved((*health, *hint), *after, now, at),
            End::Abandoned { after } => {
                self.latency.abandoned(*after, at);
                None
            }
            _ => None,
        }
    }

    #[cold]
    fn unserved(
        &self,
        (health, hint): (Health, ServerHint),
        after: Duration,
        now: Duration,
        at: Stamp,
    ) -> Option<Decisive> {
        match health {
            Health::Overloaded => {
                self.latency.failed(after, at);
                self.failures.overloaded(at);
                None
            }
            Health::Failed | Health::Unavailable => {
                self.latency.failed(after, at);
                let reason = self.reason(self.failures.failed(self.limits.row, at), self.window.failed(at));
                let wait = if health == Health::Unavailable { wait(hint) } else { None };
                Decisive::of(reason, wait, after)
            }
            Health::Lost if self.event.opens(now.saturating_sub(after), now) => {
                self.latency.failed(after, at);
                let in_a_row = self.failures.lost(self.limits.row, at);
                Decisive::of(self.reason(in_a_row, self.window.failed(at)), None, after)
            }
            Health::NotConnected => {
                self.latency.failed(after, at);
                let reason = self.failures.not_connected(at).then_some(EjectReason::NoConnection);
                Decisive::of(reason, None, after)
            }
            _ => None,
        }
    }

    /// Records that the body of a successful response failed. Its connection is lost, so failures of bodies that began
    /// before this one was seen are one event. The latency is still that of the head, which arrived at `head`.
    #[cold]
    pub(crate) fn broke(&self, head: Duration, now: Duration, at: Stamp) -> Option<Decisive> {
        if !self.event.opens(head, now) {
            return None;
        }
        let reason = self.reason(self.failures.lost(self.limits.row, at), self.window.broke(at));
        Decisive::of(reason, None, now.saturating_sub(head))
    }

    /// Returns the reason for an ejection, if one of the two counts requests it. Both must have recorded the failure.
    fn reason(&self, in_a_row: bool, (calls, failures): (u32, u32)) -> Option<EjectReason> {
        let FailureLimits { calls: enough, share, .. } = self.limits;
        let by_rate = calls >= enough && u64::from(failures) * MILLION >= u64::from(calls) * share;
        let reason = in_a_row.then_some(EjectReason::InARow);
        reason.or(by_rate.then_some(EjectReason::FailureRate))
    }

    /// Forgets the latency and the failure rate of an endpoint that returns with this many calls in flight (P-5).
    pub(crate) fn forget(&self, in_flight: usize, at: Stamp) {
        self.latency.forget(in_flight, at);
        self.failures.forget();
    }

    /// Marks the endpoint as out of service, and clears its window of calls.
    pub(crate) fn put_out(&self) {
        self.failures.put_out();
        self.window.close();
    }
}

/// Returns the wait that a server asked for. A pushback binds the call instead of the endpoint.
fn wait(hint: ServerHint) -> Option<Duration> {
    match hint {
        ServerHint::After(wait) | ServerHint::AtLeast(wait) => (!wait.is_zero()).then_some(wait),
        _ => None,
    }
}

/// An endpoint's place in its set, which holds the only reference that is not an attempt in flight.
///
/// A set and its rosters share this value, and each attempt has a reference to the endpoint itself. The reference count
/// is thus the number of attempts in flight, and no ticket can forget to decrement it.
pub(crate) struct Member<T> {
    endpoint: Arc<Endpoint<T>>,
    /// The load of a call in flight in a tier with weights, in parts of [`IDLE`].
    call: AtomicU64,
}

/// The load of an idle endpoint in a tier with weights.
pub(crate) const IDLE: u64 = 8;

impl<T> Member<T> {
    pub(crate) fn new(endpoint: Endpoint<T>) -> Self {
        Self { endpoint: Arc::new(endpoint), call: AtomicU64::new(IDLE) }
    }

    #[inline]
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint<T>> {
        &self.endpoint
    }

    /// Sets the ratio of the tier's largest weight to that of the endpoint, in parts of [`IDLE`].
    pub(crate) fn set_call(&self, call: u64) {
        self.call.store(call, Ordering::Relaxed);
    }

    /// Returns (in flight ÷ weight + 1 ÷ largest weight), in parts of [`IDLE`] and of the largest weight (W-1).
    pub(crate) fn weighted_load(&self) -> u64 {
        let calls = (self.in_flight() as u64).saturating_mul(self.call.load(Ordering::Relaxed));
        calls.saturating_add(IDLE)
    }

    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        Arc::strong_count(&self.endpoint) - 1
    }

    /// Forgets the price of an endpoint that returns (P-5).
    pub(crate) fn forget(&self, at: Stamp) {
        self.endpoint.forget(self.in_flight(), at);
    }
}
