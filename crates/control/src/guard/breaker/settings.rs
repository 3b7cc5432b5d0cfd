//! The constructors and setters of a circuit breaker, and its `Debug`.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::Health;
use reattempt_core::{ConfigError, Recommended, Warning};

use super::rules::{Rate, Rules, Trip};
use super::{BreakerState, CircuitBreaker, Counts, StateChange};
use crate::destination_table::{DEFAULT_DESTINATIONS, checked_destinations};

/// The most destinations that `Debug` lists.
const LISTED: usize = 16;

const MINUTE: Duration = Duration::from_secs(60);

/// The values of `min_calls` beside the default of the other rule.
const MIN_CALLS: &str = "at most 20, unless `consecutive_failures` is set too";

/// A setter returns a new breaker, whose state is its own.
impl CircuitBreaker {
    /// Creates the default breaker, which opens at a rate of failures.
    pub fn rate() -> Self {
        Self::build(Rules {
            interval: MINUTE,
            bucket_period: MINUTE / 10,
            timeout: MINUTE / 6,
            spread: 10,
            trip: Trip::Rate(Rate::default()),
            ..rules()
        })
    }

    /// Creates a breaker with the rules and defaults of sony/gobreaker.
    pub fn counting() -> Self {
        Self::build(rules())
    }

    /// Sets the name, which state changes carry. Default: empty.
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        self.set(|rules| rules.name = name.into())
    }

    /// Sets the most probes in the half-open state, and the successes that close it. 0 means 1, the default.
    pub fn max_requests(self, most: u32) -> Self {
        self.set(|rules| rules.max_requests = most.max(1))
    }

    /// Sets the share of the [`max_requests`](Self::max_requests) probes that may fail before the breaker opens again.
    ///
    /// Below that share it closes once all of them have ended. Default: 0, so the first failed probe opens it. In
    /// resilience4j the share is that of the `failureRateThreshold`.
    ///
    /// ```
    /// # use reattempt_control::CircuitBreaker;
    /// // Closes if at most four of ten probes fail.
    /// let breaker = CircuitBreaker::rate().max_requests(10).probe_failure_ratio(0.5)?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error unless `ratio` is a number from 0 to 1.
    pub fn probe_failure_ratio(self, ratio: f64) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&ratio) {
            return Err(ConfigError::new("probe_failure_ratio", ratio, "a number from 0 to 1"));
        }
        Ok(self.set(|rules| rules.probe_ratio = millionths(ratio)))
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
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|rules| rules.timeout = timeout)
    }

    /// Sets the longest open time: open times double after each failed probe up to it. A value below
    /// [`timeout`](Self::timeout) has no effect, which is the default.
    ///
    /// Doubling saves a server that is down a few probes, and keeps callers from one that is well again.
    pub fn max_timeout(self, most: Duration) -> Self {
        self.set(|rules| rules.max_timeout = most)
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
    /// let breaker = CircuitBreaker::rate().failure_ratio(0.3)?.min_calls(50)?.consecutive_failures(10);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error unless `ratio` is above 0 and at most 1.
    pub fn failure_ratio(self, ratio: f64) -> Result<Self, ConfigError> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(ConfigError::new("failure_ratio", ratio, "a number above 0 and at most 1"));
        }
        Ok(self.set_rate(|rate| rate.ratio = millionths(ratio).max(1)))
    }

    /// Sets the calls that must have ended in the window before the [`failure_ratio`](Self::failure_ratio) counts.
    ///
    /// Default: 20. With 1, a single failure would open the breaker. Also a part of the rate rule.
    ///
    /// [`consecutive_failures`](Self::consecutive_failures) may open it at fewer calls: set that too.
    ///
    /// # Errors
    ///
    /// Returns an error for 0: the first failure would open the breaker.
    pub fn min_calls(self, calls: u32) -> Result<Self, ConfigError> {
        if calls == 0 {
            return Err(ConfigError::new("min_calls", calls, "at least 1"));
        }
        Ok(self.set_rate(|rate| rate.calls = calls))
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

    /// Sets the most destinations with a breaker of their own. Default: 1024, which take 1.6 MB; in the counting form
    /// 1.3 MB. Four counts with cache lines of their own are a third of that.
    ///
    /// # Errors
    ///
    /// Returns an error unless `most` is a number from 1 to 65536.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        let most = checked_destinations(most)?;
        Ok(self.set(|rules| rules.max_destinations = Some(most)))
    }

    /// Keeps one state for all destinations. Use it for a client of one server.
    pub fn shared(self) -> Self {
        self.set(|rules| rules.max_destinations = None)
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

    /// Returns a warning for each setting outside its recommended range: the open time and, in the rate form, the
    /// share of failures and the window. It also warns of a `min_calls` above the default of `consecutive_failures`,
    /// which opens the breaker before.
    pub fn validate(&self) -> Vec<Warning> {
        let rules = self.shared.rules.load();
        let consecutive = Rate::default().consecutive;
        let (ratio, calls, window) = match rules.trip {
            Trip::Counts(_) => (None, None, None),
            Trip::Rate(rate) => (
                Recommended::FAILURE_RATIO.number("failure_ratio", ratio_of(rate.ratio)),
                (rate.calls > consecutive && rate.consecutive == consecutive)
                    .then(|| Warning::new("min_calls", rate.calls, MIN_CALLS)),
                Recommended::WINDOW
                    .time("interval", rules.interval)
                    .filter(|_| rules.last_calls == 0),
            ),
        };
        let open = Recommended::OPEN_TIME.time("timeout", rules.timeout);
        [ratio, calls, window, open].into_iter().flatten().collect()
    }

    fn set(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = Rules::clone(&self.shared.rules.load());
        change(&mut rules);
        Self::build(rules)
    }
}

/// Returns a share, from 0 to 1, in millionths.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the share is from 0 to 1"
)]
fn millionths(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

/// Returns the share of so many millionths, at most a million.
fn ratio_of(millionths: u64) -> f64 {
    f64::from(u32::try_from(millionths).unwrap_or(u32::MAX)) / 1e6
}

/// The defaults of the counting form.
fn rules() -> Rules {
    Rules {
        name: "".into(),
        max_requests: 1,
        interval: Duration::ZERO,
        bucket_period: Duration::ZERO,
        last_calls: 0,
        probe_ratio: 0,
        lease: MINUTE / 2,
        timeout: MINUTE,
        max_timeout: Duration::ZERO,
        spread: 0,
        seed: RandomState::new().hash_one(0),
        trip: Trip::Counts(Arc::new(|counts| counts.consecutive_failures > 5)),
        slow: None,
        is_successful: None,
        is_excluded: None,
        on_state_change: None,
        max_destinations: Some(DEFAULT_DESTINATIONS),
    }
}

/// The settings, and the destinations that are not closed, as the last call left them.
impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.shared.rules.load();
        let mut not_closed: Vec<_> = self
            .circuits
            .all()
            .iter()
            .filter_map(|tenant| {
                let state = tenant.step(|_, machine| machine.state);
                (state != BreakerState::Closed)
                    .then(|| (Arc::clone(&tenant.circuit.destination), state))
            })
            .collect();
        not_closed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let more = not_closed.len().saturating_sub(LISTED);
        not_closed.truncate(LISTED);
        f.debug_struct("CircuitBreaker")
            .field("name", &rules.name)
            .field("trip", &rules.trip)
            .field("max_requests", &rules.max_requests)
            .field("interval", &rules.interval)
            .field("last_calls", &rules.last_calls)
            .field("timeout", &rules.timeout)
            .field("destinations", &self.circuits.len())
            .field("not_closed", &not_closed)
            .field("more", &more)
            .finish_non_exhaustive()
    }
}
