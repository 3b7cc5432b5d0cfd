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

/// The values of `min_calls` beside the default of the other rule.
pub(super) const MIN_CALLS: &str = "at most 20, unless `consecutive_failures` is set too";

/// A setter returns a new breaker, whose state is its own.
impl CircuitBreaker {
    /// Creates the default breaker, which opens at a rate of failures.
    pub fn rate() -> Self {
        Self(PerDestination::new(Arc::new(Rules {
            interval: MINUTE,
            bucket_period: MINUTE / 10,
            open_time: MINUTE / 6,
            spread: 10,
            trip: Trip::Rate(Rate::default()),
            ..rules()
        })))
    }

    /// Creates a breaker with the rules and defaults of sony/gobreaker.
    pub fn counting() -> Self {
        Self(PerDestination::new(Arc::new(rules())))
    }

    /// Sets the name, which state changes carry. Default: empty.
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        self.set(|rules| rules.name = name.into())
    }

    /// Sets the most probes in the half-open state, and the successes that close it. 0 means 1, the default.
    #[doc(alias("max_requests", "permittedNumberOfCallsInHalfOpenState"))]
    pub fn probes(self, most: u32) -> Self {
        self.set(|rules| rules.probes = most.max(1))
    }

    /// Sets the share of the [`probes`](Self::probes) probes that may fail before the breaker opens again.
    ///
    /// Below that share it closes once all of them have ended. Default: 0, so the first failed probe opens it. In
    /// resilience4j the share is that of the `failureRateThreshold`.
    ///
    /// ```
    /// # use reattempt_control::CircuitBreaker;
    /// // Closes if at most four of ten probes fail.
    /// let breaker = CircuitBreaker::rate().probes(10).probe_failure_ratio(0.5);
    /// ```
    ///
    /// The share is clamped to 0 to 1, and not a number counts as 0.
    pub fn probe_failure_ratio(self, ratio: f64) -> Self {
        self.set(|rules| rules.probe_ratio = millionths(ratio, 0.0, 1.0))
    }

    /// Sets the time over which the closed state counts. With zero the counts are never cleared.
    ///
    /// Default: 60 s, long enough to see 20 calls of a quiet client; for the counting form zero.
    pub fn interval(self, interval: Duration) -> Self {
        self.set(|rules| (rules.interval, rules.last_calls) = (interval, 0))
    }

    /// Sets a window of the last `calls` that succeeded or failed, in place of the [`interval`](Self::interval).
    /// 0 means 1.
    ///
    /// Calls under way do not count in [`Counts`]. A [`min_calls`](Self::min_calls) above `calls` means `calls`. Every
    /// call takes the lock of its destination, and each of the first 1000 calls takes 24 bytes. A window of time is
    /// better for clients whose load varies: here old failures remain until other calls replace them.
    #[doc(alias("sliding_window_size", "COUNT_BASED"))]
    pub fn last_calls(self, calls: u32) -> Self {
        self.set(|rules| (rules.interval, rules.last_calls) = (Duration::ZERO, calls.max(1)))
    }

    /// Sets the time of one bucket of a sliding window. With zero, or a time not below the interval, the window is
    /// fixed: its counts are cleared all at once.
    ///
    /// The interval is rounded up to whole buckets; there are at most 1000. Default: 6 s; for the counting form zero.
    pub fn bucket_period(self, period: Duration) -> Self {
        self.set(|rules| rules.bucket_period = period)
    }

    /// Sets the open time. Zero means 60 s, as in gobreaker, and [`validate`](Self::validate) warns of it.
    ///
    /// Default: 10 s, the shortest time recommended; for the counting form 60 s. The server is well again for half of
    /// that time, on average, before a call reaches it.
    #[doc(alias("timeout", "waitDurationInOpenState"))]
    pub fn open_time(self, time: Duration) -> Self {
        self.set(|rules| rules.open_time = time)
    }

    /// Sets the longest open time: open times double after each failed probe up to it. A value below
    /// [`open_time`](Self::open_time) has no effect, which is the default.
    ///
    /// Doubling saves a server that is down a few probes, and keeps callers from one that is well again.
    pub fn max_open_time(self, most: Duration) -> Self {
        self.set(|rules| rules.max_open_time = most)
    }

    /// Sets by how many percent the open time varies in either direction, 50 at most. Default: 10; for the counting
    /// form 0.
    pub fn spread(self, percent: u32) -> Self {
        self.set(|rules| rules.spread = percent.min(50))
    }

    /// Seeds the variation of open times. Default: a seed of its own for each breaker.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|rules| rules.seed = seed)
    }

    /// Sets the share of failures at which the breaker opens. Default: 0.5, above every rate at which retries still
    /// help.
    ///
    /// It is a part of the rate rule, which replaces the rule of [`counting`](Self::counting) or
    /// [`ready_to_trip`](Self::ready_to_trip) if that was set before. resilience4j's word is `failureRateThreshold`.
    ///
    /// ```
    /// # use reattempt_control::CircuitBreaker;
    /// let breaker = CircuitBreaker::rate().failure_ratio(0.3).min_calls(50).consecutive_failures(10);
    /// ```
    ///
    /// The share is clamped to one millionth to 1, and not a number counts as one millionth.
    pub fn failure_ratio(self, ratio: f64) -> Self {
        self.set_rate(|rate| rate.ratio = millionths(ratio, 1e-6, 1.0))
    }

    /// Sets the calls that must have ended in the window before the [`failure_ratio`](Self::failure_ratio) counts.
    ///
    /// Default: 20. With 1, a single failure would open the breaker. 0 means 1. Also a part of the rate rule.
    ///
    /// [`consecutive_failures`](Self::consecutive_failures) may open it at fewer calls: set that too.
    pub fn min_calls(self, calls: u32) -> Self {
        self.set_rate(|rate| rate.calls = calls.max(1))
    }

    /// Sets the failures in a row at which the breaker opens, however few the calls are. 0: never.
    ///
    /// The run goes on from one window to the next, so a client of a call a minute is protected too. Default: 20, so
    /// that a busy client notices a server that is down. With 5, failures of 30 % open it within seconds. Also a part
    /// of the rate rule.
    pub fn consecutive_failures(self, failures: u32) -> Self {
        self.set_rate(|rate| rate.consecutive = failures)
    }

    /// Sets the trip rule to a predicate on the counts, called after each failure in the closed state.
    ///
    /// It is called without any lock held. Default of the counting form: more than 5 consecutive failures.
    pub fn ready_to_trip(self, rule: impl Fn(&Counts) -> bool + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.trip = Trip::Counts(Arc::new(rule)))
    }

    /// Counts served calls that took longer than `threshold` as failures. Default: none.
    pub fn slow_after(self, threshold: Duration) -> Self {
        self.set(|rules| rules.slow = Some(threshold))
    }

    /// Sets the outcomes that are successes. Default: [`Health::Served`].
    pub fn is_successful(self, is: impl Fn(Health) -> bool + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.is_successful = Some(Arc::new(is)))
    }

    /// Sets the outcomes that are neither success nor failure. Default: [`Health::Ignored`].
    pub fn is_excluded(self, is: impl Fn(Health) -> bool + Send + Sync + 'static) -> Self {
        self.set(|rules| rules.is_excluded = Some(Arc::new(is)))
    }

    /// Sets the callback for state changes. It is called once for each change, in order and without any lock held, so
    /// it may use the breaker. Default: none.
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

/// Returns the share of so many millionths, at most a million.
pub(super) fn ratio_of(millionths: u64) -> f64 {
    f64::from(u32::try_from(millionths).unwrap_or(u32::MAX)) / 1e6
}

/// The defaults of the counting form.
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
