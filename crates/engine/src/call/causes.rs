//! The shared causes of failures: how many calls one lost connection, or one expired token, has failed.
//!
//! The failures of one [event](reattempt_core::Evidence#events) have one [`Cause`], whose number of calls grows while
//! they are seen. Reports and observers show it. Nothing decides by it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reattempt_core::{Evidence, FailureKind, Proof};

/// The number of destinations whose last event is kept. Others replace them, and are then counted anew.
const KEPT: usize = 16;

/// The cause that several calls of a client failed of.
///
/// Clones share the number of calls. It grows while failures of this cause are seen, so a report that is read later may
/// show more calls.
#[derive(Clone)]
pub struct Cause {
    what: What,
    calls: Arc<AtomicU32>,
    /// `true` if this failure was the first of its event.
    is_first: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Connection,
    NoConnection,
    RefusedStream,
    GoAway,
    Stale,
    Other,
}

impl Cause {
    /// Returns the number of failed attempts of this cause so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns `true` if this failure was the first of its cause. Count these to count causes instead of calls.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns the name, as in the labels of metrics.
    pub fn name(&self) -> &'static str {
        match self.what {
            What::Connection => "lost_connection",
            What::NoConnection => "no_connection",
            What::RefusedStream => "refused_stream",
            What::GoAway => "goaway",
            What::Stale => "stale",
            What::Other => "other",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls();
        match self.what {
            What::Connection => write!(f, "one of {calls} attempts that were lost with their connection"),
            What::NoConnection => write!(f, "one of {calls} attempts that got no connection"),
            What::RefusedStream => write!(f, "one of {calls} attempts whose streams the server refused"),
            What::GoAway => write!(f, "one of {calls} attempts that a GOAWAY ended"),
            What::Stale => write!(f, "one of {calls} attempts that carried what had expired"),
            What::Other => write!(f, "one of {calls} attempts that failed of one cause"),
        }
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cause").field("name", &self.name()).field("calls", &self.calls()).finish_non_exhaustive()
    }
}

/// Two causes are equal if they are the same event.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.calls, &other.calls)
    }
}

impl Eq for Cause {}

impl What {
    fn of(evidence: &Evidence) -> Self {
        match (evidence.proof(), evidence.failure.kind()) {
            (Some(Proof::GoAway), _) => Self::GoAway,
            (Some(Proof::RefusedStream), _) => Self::RefusedStream,
            (_, FailureKind::Stale) => Self::Stale,
            (_, FailureKind::Connect) => Self::NoConnection,
            (_, FailureKind::Network) => Self::Connection,
            _ => Self::Other,
        }
    }
}

/// The last events of a client, by destination.
///
/// They are allocated at the first lost connection. A clone starts without events.
#[derive(Default)]
pub(crate) struct Causes(OnceLock<Box<Kept>>);

struct Kept {
    hasher: RandomState,
    events: [Mutex<Option<LastEvent>>; KEPT],
}

struct LastEvent {
    destination: u64,
    seen: Duration,
    cause: Cause,
}

impl Clone for Causes {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Causes {
    /// Records a failure that was seen at `now`. Returns its cause, if it may share one with others.
    pub(crate) fn record(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Cause> {
        if evidence.is_shared() { Some(self.record_shared(destination, evidence, now)) } else { None }
    }

    #[cold]
    fn record_shared(&self, destination: &str, evidence: &Evidence, now: Duration) -> Cause {
        let kept = self.0.get_or_init(|| {
            Box::new(Kept { hasher: RandomState::new(), events: std::array::from_fn(|_| Mutex::new(None)) })
        });
        let destination = kept.hasher.hash_one(destination);
        let what = What::of(evidence);
        #[allow(clippy::cast_possible_truncation, reason = "only the low bits choose the place")]
        let mut last = kept.events[destination as usize % KEPT].lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|last| {
            last.destination == destination && last.cause.what == what && evidence.is_of_event(last.seen)
        });
        if let Some(known) = known {
            known.cause.calls.fetch_add(1, Ordering::Relaxed);
            return Cause { is_first: false, ..known.cause.clone() };
        }
        let cause = Cause { what, calls: Arc::new(AtomicU32::new(1)), is_first: true };
        *last = Some(LastEvent { destination, seen: now, cause: cause.clone() });
        cause
    }
}
