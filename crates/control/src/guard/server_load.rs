//! Counts of a server's calls in the last two seconds, and the resulting advice to refused clients.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use reattempt_core::Random;
use reattempt_core::guard::Refused;

use super::time::nanos;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

const SECOND: Duration = Duration::from_secs(1);
/// The bounds of the advised wait, before jitter.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// The minimum number of arrivals before the share of retries is considered.
const ENOUGH: u32 = 20;

/// The advice to a client whose call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The time after which the client may retry.
    pub after: Duration,
    /// `true` if the client must not retry.
    pub stop: bool,
}

/// Counts of a server's calls, in two one-second buckets.
///
/// Arrivals and ends are added to the current bucket without a lock. The lock is taken once a second, and by refusals.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::ServerLoad;
/// # use reattempt_core::Random;
/// # use reattempt_core::guard::{GuardKind, Reason, Refused};
/// # struct Lowest;
/// # impl Random for Lowest { fn next_u64(&mut self) -> u64 { 0 } }
///
/// let load = ServerLoad::new(Duration::ZERO);
/// for _ in 0..5 {
///     load.record_arrival(false, Duration::ZERO);
/// }
/// let now = Duration::from_millis(500);
/// load.record_end(now);
/// // One call ended in half a second, and two were refused. So two more calls will end within one second.
/// let full = Refused::new(GuardKind::BULKHEAD, Reason::Full);
/// load.advise(&full, now, &mut Lowest);
/// assert_eq!(load.advise(&full, now, &mut Lowest).after, Duration::from_secs(1));
/// ```
pub struct ServerLoad {
    /// The nanosecond at which the current bucket began.
    began: AtomicU64,
    /// Calls that arrived; the upper half counts the retries among them.
    arrivals: AtomicU64,
    /// Calls that ended; the upper half counts refused calls.
    ends: AtomicU64,
    state: Mutex<OlderBucket>,
}

#[derive(Clone, Copy)]
pub(crate) struct OlderBucket {
    /// The start of the older bucket.
    since: Duration,
    pub(crate) before: LoadCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LoadCounts {
    pub(crate) arrived: u32,
    pub(crate) retries: u32,
    pub(crate) ended: u32,
    pub(crate) refused: u32,
}

/// One call in the upper half of a word.
const UPPER: u64 = 1 << 32;

impl ServerLoad {
    /// Creates the counts for a server that has not received any calls yet. The first bucket begins at `now`.
    pub fn new(now: Duration) -> Self {
        Self {
            began: AtomicU64::new(nanos(now)),
            arrivals: AtomicU64::new(0),
            ends: AtomicU64::new(0),
            state: Mutex::new(OlderBucket { since: now, before: LoadCounts::default() }),
        }
    }

    /// Records an arriving call.
    pub fn record_arrival(&self, retry: bool, now: Duration) {
        self.roll_buckets(now);
        self.arrivals.fetch_add(if retry { UPPER + 1 } else { 1 }, Ordering::Relaxed);
    }

    /// Records a call that the server has responded to.
    pub fn record_end(&self, now: Duration) {
        self.roll_buckets(now);
        self.ends.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a refused call, and returns the advice to its client.
    ///
    /// The delay is the wait that the refusal states. If the refusal states none, the delay is the time in which as
    /// many calls end as were refused in both buckets. It is clamped to 100 ms to 30 s, and randomly lengthened by up
    /// to 100 %. The client must not retry if both buckets contain at least 20 arrivals in total and more than half of
    /// them are retries.
    pub fn advise(&self, refused: &Refused, now: Duration, random: &mut impl Random) -> Advice {
        self.roll_buckets(now);
        self.ends.fetch_add(UPPER, Ordering::Relaxed);
        let (current, OlderBucket { since, before }) = self.buckets();
        let LoadCounts { arrived, retries, ended, refused: waiting } = before.and(current);
        let span = now.saturating_sub(since);
        let drained = span.saturating_mul(waiting).checked_div(ended).unwrap_or(SECOND);
        let wait = refused.wait().unwrap_or(drained).clamp(SHORTEST, LONGEST);
        let after = wait + random.between(Duration::ZERO, wait);
        Advice { after, stop: arrived >= ENOUGH && retries > arrived / 2 }
    }

    /// Returns the current bucket and the previous one. The lock ensures that no call moves between them.
    pub(crate) fn buckets(&self) -> (LoadCounts, OlderBucket) {
        let state = self.lock();
        let words = [&self.arrivals, &self.ends].map(|word| word.load(Ordering::Relaxed));
        (LoadCounts::of(words), *state)
    }

    /// Begins a new bucket if the current one is a second old.
    pub fn roll_buckets(&self, now: Duration) {
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
        let words = [&self.arrivals, &self.ends].map(|word| word.swap(0, Ordering::Relaxed));
        let current = LoadCounts::of(words);
        (state.before, state.since) =
            if open < 2 * SECOND { (current, now.saturating_sub(open)) } else { (LoadCounts::default(), now) };
        self.began.store(nanos(now), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, OlderBucket> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoadCounts {
    fn of(words: [u64; 2]) -> Self {
        let [(arrived, retries), (ended, refused)] = words.map(halves);
        Self { arrived, retries, ended, refused }
    }

    fn and(self, other: Self) -> Self {
        Self {
            arrived: self.arrived + other.arrived,
            retries: self.retries + other.retries,
            ended: self.ended + other.ended,
            refused: self.refused + other.refused,
        }
    }
}

/// Returns the lower and the upper half.
#[allow(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Shows the buckets as of the last call. To update them, call [`roll_buckets`](ServerLoad::roll_buckets) first.
impl fmt::Debug for ServerLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (current, OlderBucket { before, .. }) = self.buckets();
        f.debug_struct("ServerLoad").field("current", &current).field("before", &before).finish()
    }
}
