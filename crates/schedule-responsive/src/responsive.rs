//! The schedule that users name.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use reattempt_core::{
    ConfigError, Delays, Failure, FailureKind, NextRetry, Random, Schedule, SentAt,
};

use crate::ResponsiveMetrics;
use crate::metrics::Counters;
use crate::pace::Pace;
use crate::rule::{INITIAL_OF_TURNS, LONGEST_RUN, RANDOMISATION_OF_TURNS, Rule, nanos};

/// The longest interval that can be asked for: what 64 bits hold in nanoseconds.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// One interval for all calls to a service, which follows what the service can take.
///
/// It suits a service whose capacity grows with the load (a table that scales up under several
/// writers, say): clients are slowed down while it grows, and let go again when it has.
///
/// | event | what happens |
/// |---|---|
/// | a call is throttled | the interval becomes `initial` if it was 0, else `randomise(interval · up)`, at most `max`; the run of successes starts again at 0 |
/// | a call succeeds, interval 0 | nothing |
/// | a call succeeds, else | the run grows by one; at `threshold` it goes back to 0 and the interval becomes `randomise(interval · down)`, or 0 where that is below `initial` |
/// | anything else | nothing |
///
/// `randomise(x) = x − d + U[0, 2d]`, where `d` is `randomisation · x` but at most
/// `max_randomisation`. What it gives is the next interval, so it is fed back; and at `max` nothing
/// is left of it: both are so by definition.
///
/// | setting | default | allowed |
/// |---|---|---|
/// | [`initial`](Self::initial) | 500 ms | above 0, at most `max` |
/// | [`max`](Self::max) | 15 min | from `initial` to 584 years |
/// | [`up`](Self::up) | 1.5 | 1 or above |
/// | [`down`](Self::down) | 0.9 | above 0 and below 1 |
/// | [`randomisation`](Self::randomisation) | 0.3 | from 0 to 1 |
/// | [`max_randomisation`](Self::max_randomisation) | 2 min | any |
/// | [`threshold`](Self::threshold) | 10 | from 1 to 8388607 |
///
/// # What counts as throttled
///
/// A failure of the kind [`Throttled`](FailureKind::Throttled), by which the server asks for fewer
/// requests, and no other. By the tables that is HTTP 429 and gRPC RESOURCE_EXHAUSTED. **503 and
/// UNAVAILABLE are not**, nor are other 5xx, lost connections and timeouts: they tell of an outage at
/// least as often as of too much load, and the interval that an outage leaves behind takes long to
/// come down (by the defaults, from 15 min to 0, 25 hours for one caller: ten calls to each step).
/// Where a service throttles by such a status, say so to the layer: `on_status(status, verdict)` or
/// a classifier, with a failure of this kind.
///
/// # Many calls at once
///
/// Twenty calls refused at one moment are one piece of news. So an outcome moves the interval, or
/// counts in the run of successes, only if its call was sent after the last move in that direction;
/// a call alone never notices this. The interval is always 0 or from `initial` to `max`.
///
/// # As a schedule
///
/// A retry waits as long as the interval then is, but never less than `initial`: after a failure
/// that is not throttled it may be 0, and no retry goes at once. Calls that succeed are not paced;
/// the layer that waits before each call (`PaceLayer` in `reattempt`) does that.
///
/// **Set [`max`](Self::max) below the call's limit on elapsed time** (30 s by default). Only retries
/// wait here, so a longer interval does not lower the rate of first attempts. If more than one call in
/// forty is throttled, the interval therefore grows to `max`. An interval longer than what is left of
/// the elapsed time ends the call with
/// [`StopReason::IntervalTooLong`](reattempt_core::StopReason::IntervalTooLong); it is never shortened.
/// Successes of calls that need no retry bring the interval down again: ten for each step, and some
/// 320 from 15 min to 30 s.
///
/// # As turns
///
/// A layer (`PaceLayer` in `reattempt`) admits each call one interval after the one before it,
/// across all callers, so that the rate falls to 1/interval however many there are. The interval then
/// moves so, that it settles near what the service can take:
///
/// | event | what happens |
/// |---|---|
/// | a call is throttled | as above; but if its call was admitted after a step down, that step is undone and nothing more |
/// | a call succeeds | counts only if its call was admitted after the last move in either direction |
/// | ... after several refusals | the interval is halved, down to `up` times that at which the refusals began |
///
/// Two defaults differ, unless they are set: `initial` is 10 µs and `randomisation` 0.1.
///
/// # Sharing
///
/// Clones share their interval, separate builds never do. A setter makes a *new* one, with an
/// interval of 0, and leaves clones taken before as they are. Share one among everything that calls
/// the service, but let each call tell of its outcome once: the pacing layer says how it goes
/// together with a retry layer.
///
/// ```
/// use core::time::Duration;
/// use reattempt_core::{Failure, FailureKind, Random, Schedule};
/// use reattempt_schedule_responsive::Responsive;
/// # struct Nothing;
/// # impl Random for Nothing { fn next_u64(&mut self) -> u64 { 0 } }
/// # let random = &mut Nothing;
///
/// let pace = Responsive::new().initial(Duration::from_millis(100))?.up(2.0)?.randomisation(0.0)?;
/// let throttled = Failure::new(FailureKind::Throttled).with_code(429);
///
/// // Two calls under way at once are refused, and then one that was sent after the first refusal.
/// let (first, second) = (pace.on_send(), pace.on_send());
/// pace.on_failure(first, &throttled, random);
/// let third = pace.on_send();
/// pace.on_failure(second, &throttled, random);
/// assert_eq!(pace.interval(), Duration::from_millis(100));
/// pace.on_failure(third, &throttled, random);
/// assert_eq!(pace.interval(), Duration::from_millis(200));
/// assert_eq!(pace.metrics().times_up, 2);
/// # Ok::<_, reattempt_core::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Responsive {
    shared: Arc<Shared>,
}

struct Shared {
    rule: Rule,
    /// The rule where the interval is that between turns.
    rule_of_turns: Rule,
    by_turns: AtomicBool,
    pace: Pace,
    counters: Counters,
}

impl Shared {
    fn is_by_turns(&self) -> bool {
        self.by_turns.load(Ordering::Relaxed)
    }
}

impl Responsive {
    /// Every setting at its default, and an interval of 0.
    pub fn new() -> Self {
        let rule = Rule::DEFAULT;
        let initial = INITIAL_OF_TURNS;
        Self::build(rule, Rule { initial, randomisation: RANDOMISATION_OF_TURNS, ..rule })
    }

    fn build(rule: Rule, rule_of_turns: Rule) -> Self {
        Self {
            shared: Arc::new(Shared {
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

    /// The interval after a first refusal, and the shortest but 0. Default 500 ms.
    ///
    /// # Errors
    ///
    /// `initial` must be above 0 and at most `max`; to raise it past that, set `max` first.
    pub fn initial(self, initial: Duration) -> Result<Self, ConfigError> {
        let rule = self.shared.rule;
        if initial.is_zero() || initial > Duration::from_nanos(rule.max) {
            let allowed = "above 0 and at most `max`";
            return Err(ConfigError::new("initial", format_args!("{initial:?}"), allowed));
        }
        Ok(self.set(|rule| Rule { initial: nanos(initial), ..rule }))
    }

    /// The longest interval. Default 15 min.
    ///
    /// # Errors
    ///
    /// `max` must be from `initial` to 584 years; to lower it past that, set `initial` first.
    pub fn max(self, max: Duration) -> Result<Self, ConfigError> {
        let rule = self.shared.rule;
        if max < Duration::from_nanos(rule.initial) || max > LONGEST {
            let allowed = "from `initial` to 584 years";
            return Err(ConfigError::new("max", format_args!("{max:?}"), allowed));
        }
        Ok(self.set(|rule| Rule { max: nanos(max), ..rule }))
    }

    /// By what a refusal multiplies the interval. Default 1.5.
    ///
    /// # Errors
    ///
    /// `up` must be a finite number, 1 or above.
    pub fn up(self, up: f64) -> Result<Self, ConfigError> {
        if up.is_finite() && up >= 1.0 {
            Ok(self.set(|rule| Rule { up, ..rule }))
        } else {
            Err(ConfigError::new("up", up, "a finite number, 1 or above"))
        }
    }

    /// By what a run of successes multiplies the interval. Default 0.9.
    ///
    /// # Errors
    ///
    /// `down` must be above 0 and below 1.
    pub fn down(self, down: f64) -> Result<Self, ConfigError> {
        if down > 0.0 && down < 1.0 {
            Ok(self.set(|rule| Rule { down, ..rule }))
        } else {
            Err(ConfigError::new("down", down, "a number above 0 and below 1"))
        }
    }

    /// Sets the jitter of a move, as a share of the new interval. Default 0.3. With 0 there is no jitter, and no
    /// random number is drawn.
    ///
    /// # Errors
    ///
    /// `randomisation` (`r`) must lie within 0 and 1, both allowed.
    pub fn randomisation(self, randomisation: f64) -> Result<Self, ConfigError> {
        if (0.0..=1.0).contains(&randomisation) {
            Ok(self.set(|rule| Rule { randomisation, ..rule }))
        } else {
            Err(ConfigError::new("randomisation", randomisation, "a number from 0 to 1"))
        }
    }

    /// The longest way that a move is scattered to either side. Default 2 min.
    #[must_use = "the setting is in the one that is returned"]
    pub fn max_randomisation(self, longest: Duration) -> Self {
        self.set(|rule| Rule { max_randomisation: nanos(longest), ..rule })
    }

    /// Sets the number of successes in a row that shorten the interval. Default 10.
    ///
    /// # Errors
    ///
    /// `threshold` must be from 1 to 8388607.
    pub fn threshold(self, threshold: u32) -> Result<Self, ConfigError> {
        if (1..=LONGEST_RUN).contains(&threshold) {
            Ok(self.set(|rule| Rule { threshold, ..rule }))
        } else {
            Err(ConfigError::new("threshold", threshold, "a number from 1 to 8388607"))
        }
    }

    /// The interval as it is now: zero, or from `initial` to `max`.
    #[inline]
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.shared.pace.interval())
    }

    /// Makes the interval that between turns, for this pace and all its clones.
    ///
    /// A layer that admits calls one interval apart calls this when it is built. The rule of turns then
    /// moves the interval, and a call is admitted by [`take_turn`](Self::take_turn).
    pub fn give_turns(&self) {
        self.shared.by_turns.store(true, Ordering::Relaxed);
    }

    /// Takes the turn behind those of `ahead` waiting callers.
    ///
    /// `now` is any monotonic time, the same clock for all callers. A turn is one interval after the one
    /// before it. It may be taken up to 2 ms late without delaying the next.
    ///
    /// # Errors
    ///
    /// Returns when the turn is due, if it is not yet. The interval may move before that.
    pub fn take_turn(&self, now: Duration, ahead: usize) -> Result<(), Duration> {
        self.shared.pace.take_turn(nanos(now), count(ahead)).map_err(Duration::from_nanos)
    }

    /// Returns when the turn behind those of `ahead` waiting callers is due, by the interval as it is.
    pub fn turn_due(&self, now: Duration, ahead: usize) -> Duration {
        Duration::from_nanos(self.shared.pace.turn_due(nanos(now), count(ahead)))
    }

    /// Returns the counters of the events so far.
    pub fn metrics(&self) -> ResponsiveMetrics {
        let shared = &*self.shared;
        shared.counters.snapshot(shared.pace.ups(), shared.pace.downs())
    }

    /// Counts a wait that is over, for whoever waits before each call. The delays of the schedule
    /// count themselves.
    pub fn slept(&self, wait: Duration) {
        self.shared.counters.slept(wait);
    }
}

fn count(ahead: usize) -> u64 {
    u64::try_from(ahead).unwrap_or(u64::MAX)
}

/// [`Responsive::new`].
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

/// The interval, what was counted, and the settings.
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
