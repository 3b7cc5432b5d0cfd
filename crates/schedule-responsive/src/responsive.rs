//! The shared interval with its settings, for use as a schedule or for turns.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use reattempt_core::{Delays, Failure, FailureKind, Limits, NextRetry, Random, Schedule, SentAt, Warning};

use crate::ResponsiveMetrics;
use crate::metrics::Counters;
use crate::pace::{Pace, ReservedTurn};
use crate::rule::{INITIAL_OF_TURNS, LONGEST_RUN, RANDOMISATION_OF_TURNS, Rule, nanos};

/// A single interval for all calls to a service, which follows the service's capacity.
///
/// It suits a service whose capacity grows with the load, such as a table that scales up under several writers. Clients
/// slow down while the capacity grows, and speed up again once it has grown.
///
/// | event | effect |
/// |---|---|
/// | a call is throttled | the interval becomes `initial` if it was 0, or else `randomise(interval · up)`, but at most `max`; the run of successes restarts at 0 |
/// | a call succeeds, the interval is 0 | none |
/// | a call succeeds, the interval is above 0 | the run grows by one; at `threshold`, it restarts at 0, and the interval becomes `randomise(interval · down)`, or 0 if that is below `initial` |
/// | any other outcome | none |
///
/// `randomise(x)` is a random duration from `x − d` to `x + d`, where `d` is `randomisation · x`, at most
/// `max_randomisation`. The result is the next interval, from which the next move starts.
///
/// | setting | default | allowed |
/// |---|---|---|
/// | [`initial`](Self::initial) | 500 ms; 10 µs for turns | above 0, at most `max` |
/// | [`max`](Self::max) | 15 min | from `initial` to 584 years |
/// | [`up`](Self::up) | 1.5 | from 1 to 1000 |
/// | [`down`](Self::down) | 0.9 | from 0.001 to 0.999 |
/// | [`randomisation`](Self::randomisation) | 0.3; 0.1 for turns | from 0 to 1 |
/// | [`max_randomisation`](Self::max_randomisation) | 2 min | any |
/// | [`threshold`](Self::threshold) | 10 | from 1 to 8,388,607 |
///
/// # Throttled calls
///
/// A call is throttled if its failure has the kind [`Throttled`](FailureKind::Throttled): by default HTTP 429 and gRPC
/// RESOURCE_EXHAUSTED. **503 and UNAVAILABLE do not count**, and neither do other 5xx, lost connections and timeouts,
/// because they often mean an outage rather than overload. After an outage, the interval would be long: with default
/// settings, it takes about 640 successes to get from 15 min to 0.
///
/// If a service throttles with such a status, map the status to `Throttled` in the layer (with `on_status` or a
/// classifier).
///
/// # Many calls at once
///
/// Twenty calls refused at the same time move the interval only once. An outcome moves the interval, or counts in the
/// run of successes, only if its call was sent after the last move in that direction.
///
/// # As a schedule
///
/// The delay before each retry is the interval, at least `initial`. Calls that succeed are not delayed. To delay every
/// call, use the guard `Pace` in `reattempt`.
///
/// **Set [`max`](Self::max) below the call's limit on elapsed time** (30 s by default). Only retries are delayed, so a
/// longer interval does not lower the rate of first attempts. If more than about one call in forty is throttled, the
/// interval grows to `max`. An interval longer than the remaining time is not shortened; instead, the call ends with
/// [`StopReason::IntervalTooLong`](reattempt_core::StopReason::IntervalTooLong).
///
/// # As turns
///
/// A guard (`Pace` in `reattempt`) admits each call one interval after the previous one, across all callers. The rate
/// is therefore at most 1/interval, regardless of the number of callers. The interval then follows these rules, and the
/// rate approaches the service's capacity:
///
/// | event | effect |
/// |---|---|
/// | a call admitted after a step down is throttled | the step is undone, and the interval does not grow |
/// | any other call is throttled | as in the table above. The first throttled call after a success multiplies the time between the last two turns instead of the interval, if that time is longer. That time counts as at most `interval · up⁴` |
/// | a call succeeds | the success counts only if the call was admitted after the last move in either direction |
/// | a call succeeds after several refusals | the interval is halved, but not below `up` times the interval at which the refusals began |
///
/// Two defaults differ. `initial` is 10 µs, because with 500 ms there would be no rate between 2/s and unlimited.
/// `randomisation` is 0.1, because all callers already take turns.
///
/// # Sharing
///
/// Clones share their interval. Each setter creates a *new* interval of 0, and existing clones keep the old one. Share
/// one value among all clients of the service, but report each outcome only once (see `Pace` for its use with a retry
/// layer).
///
/// ```
/// use core::time::Duration;
/// # use reattempt_core::{Failure, FailureKind, Random, Schedule};
/// # use reattempt_schedule_responsive::Responsive;
/// # struct Nothing;
/// # impl Random for Nothing { fn next_u64(&mut self) -> u64 { 0 } }
/// # let random = &mut Nothing;
///
/// let pace = Responsive::new().initial(Duration::from_millis(100)).up(2.0).randomisation(0.0);
/// let throttled = Failure::new(FailureKind::Throttled).with_code(429);
///
/// // Two concurrent calls are refused, and then a call that was sent after the first refusal.
/// let (first, second) = (pace.on_send(), pace.on_send());
/// pace.on_failure(first, &throttled, random);
/// let third = pace.on_send();
/// pace.on_failure(second, &throttled, random);
/// assert_eq!(pace.interval(), Duration::from_millis(100));
/// pace.on_failure(third, &throttled, random);
/// assert_eq!(pace.interval(), Duration::from_millis(200));
/// assert_eq!(pace.metrics().times_up, 2);
/// ```
#[derive(Clone)]
pub struct Responsive {
    shared: Arc<ResponsiveState>,
}

struct ResponsiveState {
    rule: Rule,
    /// The settings for turns.
    rule_of_turns: Rule,
    by_turns: AtomicBool,
    pace: Pace,
    counters: Counters,
}

impl ResponsiveState {
    fn is_by_turns(&self) -> bool {
        self.by_turns.load(Ordering::Relaxed)
    }
}

impl Responsive {
    /// Creates an interval of 0 with default settings.
    pub fn new() -> Self {
        let rule = Rule::DEFAULT;
        let initial = INITIAL_OF_TURNS;
        Self::build(rule, Rule { initial, randomisation: RANDOMISATION_OF_TURNS, ..rule })
    }

    fn build(rule: Rule, rule_of_turns: Rule) -> Self {
        Self {
            shared: Arc::new(ResponsiveState {
                rule,
                rule_of_turns,
                by_turns: AtomicBool::new(false),
                pace: Pace::new(),
                counters: Counters::default(),
            }),
        }
    }

    fn set(self, change: impl Fn(Rule) -> Rule) -> Self {
        Self::build(change(self.shared.rule), change(self.shared.rule_of_turns))
    }

    /// Sets the interval after the first refusal, which is also the shortest one above 0. Default: 500 ms, or 10 µs for
    /// turns.
    ///
    /// Zero is raised to a nanosecond. A value above [`max`](Self::max) also raises `max`.
    #[must_use = "the setting is in the one that is returned"]
    pub fn initial(self, initial: Duration) -> Self {
        let initial = nanos(initial).max(1);
        self.set(|rule| Rule { initial, max: rule.max.max(initial), ..rule })
    }

    /// Sets the longest interval. Default: 15 min.
    ///
    /// The value is clamped to 1 ns to 584 years. A value below [`initial`](Self::initial) also lowers `initial`.
    #[must_use = "the setting is in the one that is returned"]
    pub fn max(self, max: Duration) -> Self {
        let max = nanos(max).max(1);
        self.set(|rule| Rule { max, initial: rule.initial.min(max), ..rule })
    }

    /// Sets the factor by which each refusal lengthens the interval. Default: 1.5.
    ///
    /// The value is clamped to 1 to 1000, and NaN is treated as 1.
    #[must_use = "the setting is in the one that is returned"]
    pub fn up(self, up: f64) -> Self {
        let up = if up > 1.0 { up.min(1000.0) } else { 1.0 };
        self.set(|rule| Rule { up, ..rule })
    }

    /// Sets the factor by which each run of successes shortens the interval. Default: 0.9.
    ///
    /// The value is clamped to 0.001 to 0.999, and NaN is treated as 0.999.
    #[must_use = "the setting is in the one that is returned"]
    pub fn down(self, down: f64) -> Self {
        let down = if down < 0.999 { down.max(0.001) } else { 0.999 };
        self.set(|rule| Rule { down, ..rule })
    }

    /// Sets the jitter of a move, as a fraction of the new interval. Default: 0.3, or 0.1 for turns. With 0, no random
    /// numbers are drawn.
    ///
    /// The value is clamped to 0 to 1, and NaN is treated as 0.
    #[must_use = "the setting is in the one that is returned"]
    pub fn randomisation(self, randomisation: f64) -> Self {
        let randomisation = if randomisation > 0.0 { randomisation.min(1.0) } else { 0.0 };
        self.set(|rule| Rule { randomisation, ..rule })
    }

    /// Sets the maximum jitter of a move, in either direction. Default: 2 min.
    #[must_use = "the setting is in the one that is returned"]
    pub fn max_randomisation(self, longest: Duration) -> Self {
        self.set(|rule| Rule { max_randomisation: nanos(longest), ..rule })
    }

    /// Sets the number of successes, without a throttled call in between, that shorten the interval. Default: 10.
    ///
    /// The value is clamped to 1 to 8,388,607, the maximum of a 23-bit counter.
    #[must_use = "the setting is in the one that is returned"]
    pub fn threshold(self, threshold: u32) -> Self {
        let threshold = threshold.clamp(1, LONGEST_RUN);
        self.set(|rule| Rule { threshold, ..rule })
    }

    /// Returns the current interval: zero, or a value from `initial` to `max`.
    #[inline]
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.shared.pace.interval())
    }

    /// Switches this value and all its clones to [turns](#as-turns).
    ///
    /// A guard that admits calls one interval apart calls this method on creation, and then
    /// [`reserve_turn`](Self::reserve_turn) for each call.
    pub fn give_turns(&self) {
        self.shared.by_turns.store(true, Ordering::Relaxed);
    }

    /// Takes the next turn behind `ahead` waiting callers.
    ///
    /// `now` comes from a monotonic clock shared by all callers. A turn is available one interval after the previous
    /// turn. A turn taken up to 2 ms late does not delay the next, because timers have a resolution of 1 ms.
    ///
    /// # Errors
    ///
    /// If the turn is not available yet, returns the time at which it will be. The interval may change before then.
    pub fn take_turn(&self, now: Duration, ahead: usize) -> Result<(), Duration> {
        self.reserve_turn(now, ahead).map(drop)
    }

    /// Takes a turn like [`take_turn`](Self::take_turn). The turn can be [given back](Self::give_back).
    ///
    /// # Errors
    ///
    /// If the turn is not available yet, returns the time at which it will be.
    pub fn reserve_turn(&self, now: Duration, ahead: usize) -> Result<ReservedTurn, Duration> {
        self.shared.pace.reserve_turn(nanos(now), count(ahead)).map_err(Duration::from_nanos)
    }

    /// Returns the time of the next turn behind `ahead` waiting callers, at the current interval.
    pub fn turn_due(&self, now: Duration, ahead: usize) -> Duration {
        Duration::from_nanos(self.shared.pace.turn_due(nanos(now), count(ahead)))
    }

    /// Gives back a reserved turn whose call will not be sent. Returns `true` if the next turn is now due earlier, or
    /// `false` if another turn was taken after this one.
    pub fn give_back(&self, turn: ReservedTurn) -> bool {
        self.shared.pace.give_back(turn)
    }

    /// Corrects the [metrics](Self::metrics) for a call that was counted as sent but is not sent.
    pub fn not_sent(&self) {
        self.shared.counters.not_invoked();
    }

    /// Returns the event counts so far.
    pub fn metrics(&self) -> ResponsiveMetrics {
        let shared = &*self.shared;
        shared.counters.snapshot(shared.pace.ups(), shared.pace.downs())
    }

    /// Counts a delay in the [metrics](Self::metrics). A guard that delays calls reports each delay here. Retry delays
    /// returned by the schedule are counted automatically.
    pub fn slept(&self, wait: Duration) {
        self.shared.counters.slept(wait);
    }
}

fn count(ahead: usize) -> u64 {
    u64::try_from(ahead).unwrap_or(u64::MAX)
}

/// Returns the value of [`Responsive::new`].
impl Default for Responsive {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule for Responsive {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn on_send(&self) -> SentAt {
        self.shared.counters.invoked();
        SentAt(self.shared.pace.note())
    }

    #[inline]
    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        let shared = &*self.shared;
        match shared.is_by_turns() {
            true => shared.pace.accepted_in_turn(sent_at.0, &shared.rule_of_turns, random),
            false => shared.pace.accepted(sent_at.0, &shared.rule, random),
        }
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        if failure.kind() != FailureKind::Throttled {
            return;
        }
        let shared = &*self.shared;
        match shared.is_by_turns() {
            true => shared.pace.refused_in_turn(sent_at.0, &shared.rule_of_turns, random),
            false => shared.pace.refused(sent_at.0, &shared.rule, random),
        }
    }

    /// Returns a warning if `max` reaches the elapsed-time limit, because an interval of `max` would then prevent every
    /// retry.
    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        let max = Duration::from_nanos(self.shared.rule.max);
        let is_above = limits.max_elapsed.is_some_and(|elapsed| max >= elapsed);
        let warning = || Warning::new("max", format_args!("{max:?}"), "below `max_elapsed`");
        is_above.then(warning).into_iter().collect()
    }
}

impl Delays for Responsive {
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        let delay = self.interval().max(Duration::from_nanos(self.shared.rule.initial));
        self.slept(delay);
        Some(delay)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Shows the interval, the metrics and the settings.
impl fmt::Debug for Responsive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = &*self.shared;
        let rule = if shared.is_by_turns() { &shared.rule_of_turns } else { &shared.rule };
        f.debug_struct("Responsive")
            .field("interval", &self.interval())
            .field("metrics", &self.metrics())
            .field("initial", &Duration::from_nanos(rule.initial))
            .field("max", &Duration::from_nanos(rule.max))
            .field("up", &rule.up)
            .field("down", &rule.down)
            .field("randomisation", &rule.randomisation)
            .field("max_randomisation", &Duration::from_nanos(rule.max_randomisation))
            .field("threshold", &rule.threshold)
            .finish()
    }
}
