//! The counts of the last two seconds, and the advice to refused clients that follows from them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt_core::Random;
use reattempt_core::guard::Refused;

use crate::call::random::CallRandom;
use crate::guard::now;

const SECOND: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// The fewest arrivals for which the share of retries counts.
const ENOUGH: u32 = 20;

/// The advice to a client whose call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The time after which the client may retry.
    pub(crate) after: Duration,
    /// `true` if the client must not retry.
    pub(crate) stop: bool,
}

/// The counts of the calls to one server, in two buckets of a second.
///
/// An arrival and an end add to the current bucket without a lock. The lock is taken once a second, and by refusals.
pub struct Gauge {
    /// The nanosecond at which the current bucket began.
    began: AtomicU64,
    /// Calls that arrived, and in the upper half the retries among them.
    arrivals: AtomicU64,
    /// Calls that ended, and in the upper half those refused.
    ends: AtomicU64,
    state: Mutex<State>,
}

struct State {
    /// The start of the older bucket.
    since: Duration,
    before: Counts,
    random: CallRandom,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    arrived: u32,
    retries: u32,
    ended: u32,
    refused: u32,
}

/// One call in the upper half of a word.
const UPPER: u64 = 1 << 32;

impl Gauge {
    pub(super) fn new() -> Self {
        let now = now();
        Self {
            began: AtomicU64::new(nanos(now)),
            arrivals: AtomicU64::new(0),
            ends: AtomicU64::new(0),
            state: Mutex::new(State {
                since: now,
                before: Counts::default(),
                random: CallRandom::unseeded(None),
            }),
        }
    }

    pub(super) fn arrived(&self, retry: bool) {
        self.turn(now());
        self.arrivals.fetch_add(if retry { UPPER + 1 } else { 1 }, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) {
        self.turn(now());
        self.ends.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn advise(&self, refused: &Refused) -> Advice {
        let now = now();
        self.turn(now);
        self.ends.fetch_add(UPPER, Ordering::Relaxed);
        let mut state = self.lock();
        let (current, before) = (self.current(), state.before);
        let (arrived, retries) =
            (before.arrived + current.arrived, before.retries + current.retries);
        let (ended, waiting) = (before.ended + current.ended, before.refused + current.refused);
        let span = now.saturating_sub(state.since);
        let drained = span.saturating_mul(waiting).checked_div(ended).unwrap_or(SECOND);
        let wait = refused.wait().unwrap_or(drained).clamp(SHORTEST, LONGEST);
        let after = wait + state.random.between(Duration::ZERO, wait);
        Advice { after, stop: arrived >= ENOUGH && retries > arrived / 2 }
    }

    fn current(&self) -> Counts {
        Counts::of(self.arrivals.load(Ordering::Relaxed), self.ends.load(Ordering::Relaxed))
    }

    /// Begins a new bucket if the current one is a second old.
    fn turn(&self, now: Duration) {
        if self.open_at(now) >= SECOND {
            self.begin_bucket(now);
        }
    }

    /// Returns how long the current bucket has been open.
    fn open_at(&self, now: Duration) -> Duration {
        Duration::from_nanos(nanos(now).saturating_sub(self.began.load(Ordering::Relaxed)))
    }

    #[cold]
    fn begin_bucket(&self, now: Duration) {
        let mut state = self.lock();
        let open = self.open_at(now);
        // Another thread may have begun it.
        if open < SECOND {
            return;
        }
        let current = Counts::of(
            self.arrivals.swap(0, Ordering::Relaxed),
            self.ends.swap(0, Ordering::Relaxed),
        );
        (state.before, state.since) = match open < 2 * SECOND {
            true => (current, now.saturating_sub(open)),
            false => (Counts::default(), now),
        };
        self.began.store(nanos(now), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn of(arrivals: u64, ends: u64) -> Self {
        let [(arrived, retries), (ended, refused)] = [arrivals, ends].map(halves);
        Self { arrived, retries, ended, refused }
    }
}

/// Returns the lower and the upper half.
#[allow(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.turn(now());
        f.debug_struct("Gauge")
            .field("current", &self.current())
            .field("before", &self.lock().before)
            .finish()
    }
}
