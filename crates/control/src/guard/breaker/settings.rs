//! The constructors and setters of a circuit breaker.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::Health;

use super::rules::{Rate, Rules, Trip};
use super::{CircuitBreaker, Counts, StateChange};
use crate::guard::per_destination::PerDestination;
use crate::millionths::millionths;

const MINUTE: Duration = Duration::from_secs(60);

/// The default of `first_open_time`.
pub(super) const FIRST_OPEN_TIME: Duration = Duration::from_secs(1);

/// The valid values of `min_calls` while `consecutive_failures` has its default.
pub(super) const MIN_CALLS: &str = "at most 20, unless `consecutive_failures` is set too";

/// Each setter returns a new breaker with its own state.
impl CircuitBreaker {
    /// Creates the default breaker. If calls have failed for 2.5 s, it opens as soon as half of at least 20 calls in a
    /// minute have failed, or 20 calls in a row.
    pub fn rate() -> Self {
        Self(PerDestination::new(Arc::new(Rules {
            interval: MINUTE,
            bucket_period: MINUTE / 10,
            open_time: MINUTE / 6,
            first_open_time: FIRST_OPEN_TIME,
            spread: 10,
            trip: Trip::Rate(Rate::default()),
            ..rules()
        })))
    }

    /// Creates a breaker with the rules and defaults of sony/gobreaker.
    pub fn counting() -> Self {
        Self(PerDestination::new(Arc::new(rules())))
    }

    /// Sets the name that appears in state changes. Default: empty.
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        self.set(|rules| rules.name = name.into())
    }

    /// Sets the maximum number of probes in the half-open state. The same number of successes closes the breaker. 0
    /// means 1, the default.
    #[doc(alias("max_requests", "permittedNumberOfCallsInHalfOpenState"))]
    pub fn probes(self, most: u32) -> Self {
        self.set(|rules| rules.probes = most.max(1))
    }

    /// Sets the share of failed [`probes`](Self::probes) at which the breaker reopens.
    ///
    /// If fewer fail, the breaker closes once all probes have ended. Default: 0, so the first failed probe reopens it.
    /// In resilience4j, `failureRateThreshold` sets this share too.
    ///
    /// ```
    /// # use reattempt_control::CircuitBreaker;
    /// // Closes if at most four of ten probes fail.
    /// let breaker = CircuitBreaker::rate().probes(10).probe_failure_ratio(0.5);
    /// ```
    ///
    /// The share is clamped to 0 to 1, and NaN is treated as 0.
    pub fn probe_failure_ratio(self, ratio: f64) -> Self {
        self.set(|rules| rules.probe_ratio = millionths(ratio, 0.0, 1.0))
    }

    /// Sets the period over which a closed breaker counts calls. With zero, the counts are never cleared.
    ///
    /// Default: 60 s, long enough even for a quiet client to make 20 calls. The default of a
    /// [`counting`](Self::counting) breaker is zero.
    pub fn interval(self, interval: Duration) -> Self {
        self.set(|rules| (rules.interval, rules.last_calls) = (interval, 0))
    }

    /// Uses a window of the last `calls` calls that succeeded or failed, instead of the [`interval`](Self::interval). 0
    /// means 1.
    ///
    /// [`Counts`] then excludes calls in flight. A [`min_calls`](Self::min_calls) above `calls` is lowered to `calls`.
    /// Every call takes its destination's lock, and each of the first 1000 calls in the window needs 24 bytes. Prefer a
    /// time-based window for clients with variable load, because old failures remain in a window of calls until other
    /// calls replace them.
    #[doc(alias("sliding_window_size", "COUNT_BASED"))]
    pub fn last_calls(self, calls: u32) -> Self {
        self.set(|rules| (rules.interval, rules.last_calls) = (Duration::ZERO, calls.max(1)))
    }

    /// Sets the length of one bucket of a sliding window. If the period is zero, or at least the interval, the window
    /// is fixed: all its counts are cleared at the same time.
    ///
    /// The interval is rounded up to whole buckets, at most 1000. Default: 6 s, or zero for a
    /// [`counting`](Self::counting) breaker.
    pub fn bucket_period(self, period: Duration) -> Self {
        self.set(|rules| rules.bucket_period = period)
    }

    /// Sets the time for which the breaker stays open in an outage. Zero means 60 s, as in gobreaker, and
    /// [`validate`](Self::validate) warns about it.
    ///
    /// Open times begin with the [`first_open_time`](Self::first_open_time) and double with each opening, up to this
    /// time. They begin anew after 20 successes in a row, or under a counting rule once the breaker closes.
    ///
    /// Default: 10 s, the shortest recommended time, or 60 s for a [`counting`](Self::counting) breaker. On average, a
    /// recovered server waits half of the open time for its next call.
    #[doc(alias("timeout", "waitDurationInOpenState"))]
    pub fn open_time(self, time: Duration) -> Self {
        self.set(|rules| rules.open_time = time)
    }

    /// Sets the first open time of an outage. With zero, or a value above the [`open_time`](Self::open_time), it is the
    /// `open_time`.
    ///
    /// Default: 1 s, because a server that restarts is often back by then, and retries can wait that long. A
    /// [`counting`](Self::counting) breaker has none.
    pub fn first_open_time(self, time: Duration) -> Self {
        self.set(|rules| rules.first_open_time = time)
    }

    /// Sets the maximum open time. Open times then go on doubling above the [`open_time`](Self::open_time), up to this
    /// maximum. By default, or with a value below `open_time`, they do not.
    ///
    /// Doubling saves a dead server a few probes, but keeps callers away from a recovered one for longer.
    pub fn max_open_time(self, most: Duration) -> Self {
        self.set(|rules| rules.max_open_time = most)
    }

    /// Sets the percentage by which the open time varies randomly in either direction. Values above 50 are lowered to
    /// 50.
    ///
    /// Default: 10, or 0 for a [`counting`](Self::counting) breaker.
    pub fn spread(self, percent: u32) -> Self {
        self.set(|rules| rules.spread = percent.min(50))
    }

    /// Sets the random seed for open times. Default: a different seed for each breaker.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|rules| rules.seed = seed)
    }

    /// Sets the failure ratio at which the breaker opens. Default: 0.5, because retries still help below that.
    ///
    /// This is part of the rate rule, which replaces an earlier [`counting`](Self::counting) or
    /// [`ready_to_trip`](Self::ready_to_trip) rule. resilience4j calls it `failureRateThreshold`.
    ///
    /// ```
    /// # use reattempt_control::CircuitBreaker;
    /// let breaker = CircuitBreaker::rate().failure_ratio(0.3).min_calls(50).consecutive_failures(10);
    /// ```
    ///
    /// The ratio is clamped to 0.000001 to 1, and NaN is treated as 0.000001.
    pub fn failure_ratio(self, ratio: f64) -> Self {
        self.set_rate(|rate| rate.ratio = millionths(ratio, 1e-6, 1.0))
    }

    /// Sets the minimum number of finished calls in the window before the [`failure_ratio`](Self::failure_ratio)
    /// applies.
    ///
    /// Default: 20. With 1, a single failure could open the breaker. 0 means 1. This is part of the rate rule.
    ///
    /// [`consecutive_failures`](Self::consecutive_failures) may open the breaker after fewer calls, so set it too.
    pub fn min_calls(self, calls: u32) -> Self {
        self.set_rate(|rate| rate.calls = calls.max(1))
    }

    /// Sets the number of consecutive failures that opens the breaker, regardless of the number of calls. 0 turns this
    /// off.
    ///
    /// The run continues from one window to the next, so even a client with one call per minute is protected. Default:
    /// 20, so that a busy client detects a dead server although most calls in its window have succeeded. With 5, a
    /// failure ratio of 30 % would open the breaker within seconds. The [`min_failing_time`](Self::min_failing_time)
    /// applies. This is part of the rate rule.
    pub fn consecutive_failures(self, failures: u32) -> Self {
        self.set_rate(|rate| rate.consecutive = failures)
    }

    /// Sets the time for which calls must have failed before the breaker opens. Zero turns this off.
    ///
    /// Default: 2.5 s. A server that restarts in less time fails many calls, but a breaker would only make its outage
    /// longer. The time begins when the first of the failed calls was sent, or when its connection was lost. It ends
    /// with 20 successes in a row. This is part of the rate rule.
    pub fn min_failing_time(self, time: Duration) -> Self {
        self.set_rate(|rate| rate.time = time)
    }

    /// Sets the trip rule to a predicate on the counts, called after each failure in the closed state.
    ///
    /// No lock is held while the predicate runs. By default, a [`counting`](Self::counting) breaker opens after more
    /// than 5 consecutive failures.
    pub fn ready_to_trip(self, rule: impl Fn(&Counts) -> bool + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.trip = Trip::Counts(Arc::new(rule)))
    }

    /// Counts served calls that took longer than `threshold` as failures. Default: no threshold.
    pub fn slow_after(self, threshold: Duration) -> Self {
        self.set(|rules| rules.slow = Some(threshold))
    }

    /// Sets which outcomes are successes. Default: [`Health::Served`].
    ///
    /// A failure with [`Health::Lost`] still counts once for each event.
    pub fn is_successful(self, is: impl Fn(Health) -> bool + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.is_successful = Some(Arc::new(is)))
    }

    /// Sets which outcomes are neither successes nor failures. Default: [`Health::Ignored`] and [`Health::Local`].
    pub fn is_excluded(self, is: impl Fn(Health) -> bool + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.is_excluded = Some(Arc::new(is)))
    }

    /// Sets the callback for state changes. It is called once per change, in order and without holding a lock, so it
    /// may use the breaker. Default: none.
    pub fn on_state_change(self, notify: impl Fn(&StateChange) + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.on_state_change = Some(Arc::new(notify)))
    }

    fn set_rate(&self, change: impl FnOnce(&mut Rate)) -> Self {
        self.set(|rules| {
            let mut rate = match rules.trip {
                Trip::Rate(rate) => rate,
                Trip::Counts(_) => Rate::default(),
            };
            change(&mut rate);
            rules.trip = Trip::Rate(rate);
        })
    }

    fn set(&self, change: impl FnOnce(&mut Rules)) -> Self {
        Self(self.0.changed(|rules| {
            let rules = Arc::make_mut(rules);
            rules.changes = Arc::default();
            change(rules);
        }))
    }
}

/// Converts millionths to a ratio, at most 1.
pub(super) fn ratio_of(millionths: u64) -> f64 {
    f64::from(u32::try_from(millionths).unwrap_or(u32::MAX)) / 1e6
}

/// The defaults of a counting breaker.
fn rules() -> Rules {
    Rules {
        name: "".into(),
        probes: 1,
        interval: Duration::ZERO,
        bucket_period: Duration::ZERO,
        last_calls: 0,
        probe_ratio: 0,
        lease: MINUTE / 2,
        open_time: MINUTE,
        first_open_time: Duration::ZERO,
        max_open_time: Duration::ZERO,
        spread: 0,
        seed: RandomState::new().hash_one(0),
        trip: Trip::Counts(Arc::new(|counts| counts.consecutive_failures > 5)),
        slow: None,
        is_successful: None,
        is_excluded: None,
        on_state_change: None,
        changes: Arc::default(),
    }
}
