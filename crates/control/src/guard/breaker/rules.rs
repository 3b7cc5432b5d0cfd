//! A circuit breaker's settings, as used by its state machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::{End, Health};

use super::changes::{Callback, Changes};
use super::counts::{Counts, Outcome};
use super::failing::Failing;

/// The maximum number of buckets in a window. More would cost memory per destination without adding precision.
const MOST_BUCKETS: u32 = 1000;

/// The longest server delay that the rate form always respects, however short its open time.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

/// The open time if none is set.
const UNSET_OPEN_TIME: Duration = Duration::from_secs(60);

pub(crate) type Predicate<T> = Arc<dyn Fn(T) -> bool + Send + Sync>;
type ReadyToTrip = Arc<dyn Fn(&Counts) -> bool + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) name: Arc<str>,
    pub(crate) probes: u32,
    /// The share of failed probes that reopens the breaker, in millionths. If zero, the first failed probe does.
    pub(crate) probe_ratio: u64,
    /// The time for which a probe holds its place, unless the attempt timeout is longer.
    pub(crate) lease: Duration,
    /// If zero, the counts of the closed state are never cleared.
    pub(crate) interval: Duration,
    /// If zero, there is one fixed window.
    pub(crate) bucket_period: Duration,
    /// The number of calls in a call-based window, whose interval is zero. If zero, the window is time-based.
    pub(crate) last_calls: u32,
    /// If zero, the open time is 60 s, as in gobreaker.
    pub(crate) open_time: Duration,
    /// If zero, the first open time is [`open_time`](Self::open_time).
    pub(crate) first_open_time: Duration,
    pub(crate) max_open_time: Duration,
    /// The open time varies by this percentage in either direction.
    pub(crate) spread: u32,
    pub(crate) seed: u64,
    pub(crate) trip: Trip,
    pub(crate) slow: Option<Duration>,
    pub(crate) is_successful: Option<Predicate<Health>>,
    pub(crate) is_excluded: Option<Predicate<Health>>,
    pub(crate) on_state_change: Option<Callback>,
    /// Changes waiting for the callback, for all destinations of the breaker.
    pub(crate) changes: Arc<Changes>,
}

/// The rule that opens a closed breaker, checked after each failure.
#[derive(Clone)]
pub(crate) enum Trip {
    /// A predicate on the counts: the user's, or a counting breaker's default of more than 5 consecutive failures.
    Counts(ReadyToTrip),
    Rate(Rate),
}

/// The rate rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// In millionths.
    pub(crate) ratio: u64,
    pub(crate) calls: u32,
    /// If zero, this condition is off.
    pub(crate) consecutive: u32,
    /// The minimum time for which calls have failed.
    pub(crate) time: Duration,
}

impl Rate {
    /// Returns `true` if the latest failure opens the breaker. Both shares are rounded to millionths, so two failures
    /// in three calls reach a ratio of ⅔.
    pub(crate) fn opens(&self, counts: &Counts, failing: &Failing, now: Duration, last_calls: u32) -> bool {
        let is_run = self.consecutive > 0 && failing.run >= self.consecutive;
        failing.time(now) >= self.time && (is_run || self.reaches_ratio(counts, last_calls))
    }

    fn reaches_ratio(&self, counts: &Counts, last_calls: u32) -> bool {
        let most = if last_calls > 0 { last_calls } else { u32::MAX };
        let judged = counts.total_failures.saturating_add(counts.total_successes);
        judged >= self.calls.min(most) && share(counts.total_failures, judged) >= self.ratio
    }
}

/// Returns `part / calls` in millionths, rounded.
pub(crate) fn share(part: u32, calls: u32) -> u64 {
    let calls = u64::from(calls.max(1));
    (u64::from(part) * 1_000_000 + calls / 2) / calls
}

impl Default for Rate {
    fn default() -> Self {
        Self { ratio: 500_000, calls: 20, consecutive: 20, time: Duration::from_millis(2500) }
    }
}

impl Rules {
    /// Returns the number of buckets in the window, which is 1 for a fixed window.
    pub(crate) fn buckets(&self) -> usize {
        if let Some(calls) = self.calls_of_bucket() {
            return usize::try_from(self.last_calls.div_ceil(calls)).unwrap_or(1);
        }
        match self.period() {
            Duration::ZERO => 1,
            period => {
                let buckets = self.interval.as_nanos().div_ceil(period.as_nanos());
                usize::try_from(buckets).unwrap_or(1).max(1)
            }
        }
    }

    /// Returns the calls per bucket, or `None` for a time-based window.
    pub(crate) fn calls_of_bucket(&self) -> Option<u32> {
        (self.last_calls > 0).then(|| self.last_calls.div_ceil(MOST_BUCKETS))
    }

    /// Returns the length of one bucket, at least 1/1000 of the interval, or zero for a fixed window.
    pub(crate) fn period(&self) -> Duration {
        if self.bucket_period.is_zero() || self.bucket_period >= self.interval {
            return Duration::ZERO;
        }
        let least = (self.interval / MOST_BUCKETS).saturating_add(Duration::from_nanos(1));
        if self.bucket_period.saturating_mul(MOST_BUCKETS) < self.interval { least } else { self.bucket_period }
    }

    /// Returns `true` if every served call is a success.
    pub(crate) fn has_plain_successes(&self) -> bool {
        self.slow.is_none() && self.is_successful.is_none() && self.is_excluded.is_none()
    }

    /// Classifies the end of a call without holding a lock, because the predicates are user code.
    pub(crate) fn outcome(&self, end: &End) -> Outcome {
        let asked = |predicate: &Option<Predicate<Health>>, health, default: fn(Health) -> bool| {
            predicate.as_ref().map_or_else(|| default(health), |predicate| predicate(health))
        };
        match *end {
            End::Judged { health, after, .. } => {
                if asked(&self.is_excluded, health, shows_nothing) {
                    Outcome::Excluded
                } else if asked(&self.is_successful, health, |health| health == Health::Served) {
                    let slow = self.slow.is_some_and(|threshold| after > threshold);
                    if slow { Outcome::Failure } else { Outcome::Success }
                } else {
                    match (health, &self.trip) {
                        (Health::Lost, _) => Outcome::Lost,
                        (Health::Overloaded, Trip::Rate(_)) => Outcome::Overload,
                        _ => Outcome::Failure,
                    }
                }
            }
            End::Abandoned { .. } => Outcome::Abandoned,
            End::Unsent => Outcome::Unsent,
            _ => Outcome::Excluded,
        }
    }

    /// Returns the open time after `openings` others in the same failing. `number` counts all generations.
    pub(crate) fn next_open_time(&self, openings: u32, number: u64, asked: Duration) -> Duration {
        let open_time = if self.open_time.is_zero() { UNSET_OPEN_TIME } else { self.open_time };
        let most = self.max_open_time.max(open_time);
        let first = if self.first_open_time.is_zero() { open_time } else { self.first_open_time.min(open_time) };
        let doubled = first.saturating_mul(2_u32.saturating_pow(openings)).min(most);
        let range = u64::from(self.spread) * 2000;
        let shift = if range == 0 { 0 } else { mixed(self.seed ^ number) % (range + 1) };
        let part = 100_000 - range / 2 + shift;
        let varied = doubled.as_nanos() * u128::from(part) / 100_000;
        let varied = Duration::from_nanos(u64::try_from(varied).unwrap_or(u64::MAX));
        let open = if range == 0 { doubled } else { varied };
        let longest = match self.trip {
            Trip::Rate(_) => most.max(LONGEST_ASKED),
            Trip::Counts(_) => most,
        };
        open.max(asked.min(longest))
    }
}

/// Returns `true` for an outcome that shows nothing about the server.
fn shows_nothing(health: Health) -> bool {
    matches!(health, Health::Ignored | Health::Local)
}

/// Mixes the bits of a number (SplitMix64's finaliser).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl fmt::Debug for Trip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts(_) => f.write_str("Counts(..)"),
            Self::Rate(Rate { ratio, calls, consecutive, time }) => f
                .debug_struct("Rate")
                .field("ratio", &(*ratio as f64 / 1e6))
                .field("calls", calls)
                .field("consecutive", consecutive)
                .field("time", time)
                .finish(),
        }
    }
}
