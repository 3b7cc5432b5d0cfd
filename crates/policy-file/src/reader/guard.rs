//! The one-line form of a guard, such as `breaker`, `breaker:open_time=5s,consecutive_failures=0` or
//! `bulkhead:limit=8`.
//!
//! It is converted to a table, like the one-line form of a policy. The fields have the names of the library's setters.

use reattempt::error::Warning;
use reattempt::guard::contract::LimitRule;
use reattempt::guard::{
    self, AdaptiveLimit, Aimd, Bulkhead, CircuitBreaker, Gradient2, Pause, RateLimit, Throttle, Vegas,
};

use super::field::{Field, Kind, Range, did_you_mean, field};
use super::fields::{Fields, Limit};
use super::{in_a_word, word};

/// The kinds of guard.
pub(super) static KINDS: [&str; 9] =
    ["breaker", "counting", "rate-limit", "bulkhead", "aimd", "vegas", "gradient2", "throttle", "pause"];

field! {
    GUARD = "guard": Kind::Word(&KINDS), "";
    FAILURE_RATIO = "failure_ratio": Kind::Number(Range {
        above: true,
        ..Range::new(0.0, 1.0).words("a number above 0 and at most 1")
    }), "The share of failed calls at which the breaker opens. Default 0.5.";
    PROBE_FAILURE_RATIO = "probe_failure_ratio": Kind::Number(Range::new(0.0, 1.0)),
        "The share of failed probes at which the breaker opens again. Default 0: the first one.";
    MIN_CALLS = "min_calls": Kind::CountFromOne,
        "The finished calls in the window from which the ratio applies. Default 20.";
    CONSECUTIVE = "consecutive_failures": Kind::Count,
        "The failures in a row that open the breaker; a counting breaker opens after more. Default 20; 5 for \
         counting.";
    MIN_FAILING_TIME = "min_failing_time": Kind::Duration,
        "The time for which calls must have failed before the breaker opens. Default \"2500ms\".";
    LAST_CALLS = "last_calls": Kind::Count, "A window of this many calls, instead of the interval. Default: none.";
    FIRST_OPEN_TIME = "first_open_time": Kind::Duration,
        "The time for which the breaker is open at first in an outage. It doubles up to the open time. Default \
         \"1s\".";
    MAX_OPEN_TIME = "max_open_time": Kind::Duration,
        "The longest open time, if it goes on doubling. Default: the open time.";
    SPREAD = "spread": Kind::Count, "The percentage by which the open time varies at random, at most 50. Default 10.";
    SLOW_AFTER = "slow_after": Kind::Duration, "The time after which a served call is a failure. Default: none.";
    INTERVAL = "interval": Kind::Duration,
        "The window in which calls are counted. Default \"60s\"; for counting none, so nothing is forgotten \
         while the breaker is closed.";
    BUCKET_PERIOD = "bucket_period": Kind::Duration,
        "The steps in which the window moves. Default \"6s\"; for counting none, so all counts are cleared at once.";
    OPEN_TIME = "open_time": Kind::Duration,
        "The time for which the breaker is open. Default \"10s\"; \"60s\" for counting.";
    PROBES = "probes": Kind::Count, "The calls that test the server after the open time. Default 1.";
    RATE = "rate": Kind::Number(Range {
        or_extremes: true,
        ..Range::new(1e-6, 1e9).words("from 10⁻⁶ to 10⁹, or infinite")
    }), "The calls per second. Default 2.";
    BURST = "burst": Kind::Count, "The calls that may be sent at once. Default: those of one second, at least 1.";
    LIMIT = "limit": Kind::Count, "The calls in flight, for each destination. Default 64.";
    BACKOFF = "backoff": Kind::Number(Range { below: true, ..Range::new(0.5, 1.0).words("from 0.5 to below 1") }),
        "The factor for the limit after a window with dropped calls. Default 0.9.";
    INITIAL = "initial": Kind::Count, "The limit at the start. Default 20.";
    LEAST = "least": Kind::Count, "The lowest limit. Default 1.";
    MOST = "most": Kind::Count, "The highest limit. Default 200.";
    MULTIPLIER = "multiplier": Kind::Number(Range::new(1.0, 100.0).words("from 1 to 100")),
        "The requests that are sent for each one that the server accepts. Default 2.";
    MAX_PROBABILITY = "max_probability": Kind::Number(Range::new(0.0, 1.0).words("from 0 to 1")),
        "The highest probability of a refusal. Default 0.9.";
    WINDOW = "window": Kind::Duration, "The time over which requests are counted. Default \"120s\".";
    LONGEST = "longest": Kind::Duration, "The longest pause. Default \"1h\".";
    RETURN_SPREAD = "spread": Kind::Duration,
        "The time over which calls return after a pause. Default: as long as the pause, from \"1s\" to \"10s\".";
}

/// The fields of each kind, in the order of [`KINDS`].
static FIELDS: [&[&Field]; 9] = [
    &[
        &FAILURE_RATIO,
        &MIN_CALLS,
        &PROBE_FAILURE_RATIO,
        &CONSECUTIVE,
        &MIN_FAILING_TIME,
        &LAST_CALLS,
        &FIRST_OPEN_TIME,
        &MAX_OPEN_TIME,
        &SPREAD,
        &SLOW_AFTER,
        &INTERVAL,
        &BUCKET_PERIOD,
        &OPEN_TIME,
        &PROBES,
    ],
    &[&CONSECUTIVE, &INTERVAL, &BUCKET_PERIOD, &OPEN_TIME, &PROBES],
    &[&RATE, &BURST],
    &[&LIMIT],
    &[&BACKOFF, &LEAST, &MOST, &INITIAL],
    &[&LEAST, &MOST, &INITIAL],
    &[&LEAST, &MOST, &INITIAL],
    &[&MULTIPLIER, &MAX_PROBABILITY, &WINDOW],
    &[&LONGEST, &RETURN_SPREAD],
];

/// A guard with its settings.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GuardWord {
    /// The text from which the guard was parsed, such as `bulkhead:limit=8`.
    pub name: String,
    /// The guard with its settings.
    pub kind: GuardKind,
}

/// The kind of a guard. Each variant contains the configured guard.
///
/// The enum is exhaustive, because a tool that ignored a guard would show wrong results.
#[derive(Debug, Clone)]
pub enum GuardKind {
    /// `breaker` or `counting`.
    Breaker(CircuitBreaker),
    /// `rate-limit`.
    RateLimit(RateLimit),
    /// `bulkhead`.
    Bulkhead(Bulkhead),
    /// `aimd`.
    Aimd(AdaptiveLimit<Aimd>),
    /// `vegas`.
    Vegas(AdaptiveLimit<Vegas>),
    /// `gradient2`.
    Gradient2(AdaptiveLimit<Gradient2>),
    /// `throttle`.
    Throttle(Throttle),
    /// `pause`.
    Pause(Pause),
}

/// Returns each kind of guard with its fields.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static [&'static Field])> {
    KINDS.iter().copied().zip(FIELDS.iter().copied())
}

impl GuardWord {
    /// Parses the one-line form of a guard: its kind, optionally followed by settings.
    ///
    /// # Errors
    /// Returns all problems as one line of text.
    pub fn parse(word: &str) -> Result<Self, String> {
        let (kind, _) = word::split(word);
        if !KINDS.contains(&kind) {
            let hint = did_you_mean(kind, KINDS);
            return Err(format!("{kind:?} is no kind of guard ({}){hint}", KINDS.join(", ")));
        }
        let (mut problems, mut seen) = (Vec::new(), Vec::new());
        let table = word::table_of("guard", word).map_err(in_a_word)?;
        let mut fields = Fields::new(word::TABLE.to_owned(), &table, &mut problems, &mut seen);
        let made = fields.word(&GUARD).and_then(|kind| of_kind(kind, &mut fields));
        let known = all().find(|(own, _)| *own == kind).map(|(_, fields)| fields).unwrap_or_default();
        fields.finish(&[known]);
        match made.filter(|_| problems.is_empty()) {
            Some(kind) => Ok(Self { name: word.to_owned(), kind }),
            None => Err(in_a_word(problems)),
        }
    }
}

impl GuardWord {
    /// Returns `true` if both guards are of the same kind.
    pub(crate) fn is_of_kind(&self, other: &Self) -> bool {
        word::split(&self.name).0 == word::split(&other.name).0
    }

    /// Gives this guard the settings of another guard of the same kind, and keeps its state.
    pub(crate) fn adopt(&self, other: &Self) {
        match (&self.kind, &other.kind) {
            (GuardKind::Breaker(own), GuardKind::Breaker(new)) => own.replace_settings(new),
            (GuardKind::RateLimit(own), GuardKind::RateLimit(new)) => own.replace_settings(new),
            (GuardKind::Bulkhead(own), GuardKind::Bulkhead(new)) => own.replace_settings(new),
            (GuardKind::Aimd(own), GuardKind::Aimd(new)) => own.replace_settings(new),
            (GuardKind::Vegas(own), GuardKind::Vegas(new)) => own.replace_settings(new),
            (GuardKind::Gradient2(own), GuardKind::Gradient2(new)) => own.replace_settings(new),
            (GuardKind::Throttle(own), GuardKind::Throttle(new)) => own.replace_settings(new),
            (GuardKind::Pause(own), GuardKind::Pause(new)) => own.replace_settings(new),
            _ => {}
        }
    }

    /// Returns a warning for each setting outside its recommended range.
    pub fn validate(&self) -> Vec<Warning> {
        match &self.kind {
            GuardKind::Breaker(guard) => guard.validate(),
            GuardKind::RateLimit(guard) => guard.validate(),
            GuardKind::Bulkhead(guard) => guard.validate(),
            GuardKind::Aimd(guard) => guard.validate(),
            GuardKind::Vegas(guard) => guard.validate(),
            GuardKind::Gradient2(guard) => guard.validate(),
            GuardKind::Throttle(guard) => guard.validate(),
            GuardKind::Pause(guard) => guard.validate(),
        }
    }
}

/// Returns the guard of this kind, or `None` if a problem was reported.
fn of_kind(kind: &str, fields: &mut Fields<'_>) -> Option<GuardKind> {
    Some(match kind {
        "breaker" => GuardKind::Breaker(breaker(fields)),
        "counting" => GuardKind::Breaker(counting(fields)),
        "rate-limit" => GuardKind::RateLimit(rate_limit(fields)),
        "bulkhead" => {
            let limit = count(fields, &LIMIT).unwrap_or(64);
            admits(limit > 0, "limit", fields);
            GuardKind::Bulkhead(Bulkhead::new(limit))
        }
        "aimd" => {
            let rule = with(Aimd::new(), fields.number(&BACKOFF), Aimd::backoff);
            GuardKind::Aimd(limit(AdaptiveLimit::new(rule), fields))
        }
        "vegas" => GuardKind::Vegas(limit(AdaptiveLimit::vegas(), fields)),
        "gradient2" => GuardKind::Gradient2(limit(AdaptiveLimit::gradient2(), fields)),
        "pause" => {
            let pause = with(Pause::new(), fields.duration(&LONGEST), Pause::longest);
            GuardKind::Pause(with(pause, fields.duration(&RETURN_SPREAD), Pause::spread))
        }
        _ => GuardKind::Throttle(throttle(fields)),
    })
}

fn breaker(fields: &mut Fields<'_>) -> CircuitBreaker {
    let breaker = CircuitBreaker::rate();
    let breaker = with(breaker, fields.number(&FAILURE_RATIO), CircuitBreaker::failure_ratio);
    let breaker = with(breaker, count(fields, &MIN_CALLS), CircuitBreaker::min_calls);
    let breaker = with(breaker, fields.number(&PROBE_FAILURE_RATIO), CircuitBreaker::probe_failure_ratio);
    let breaker = with(breaker, count(fields, &CONSECUTIVE), CircuitBreaker::consecutive_failures);
    let breaker = with(breaker, fields.duration(&MIN_FAILING_TIME), CircuitBreaker::min_failing_time);
    let breaker = with(breaker, count(fields, &LAST_CALLS), CircuitBreaker::last_calls);
    let breaker = with(breaker, fields.duration(&FIRST_OPEN_TIME), CircuitBreaker::first_open_time);
    let breaker = with(breaker, fields.duration(&MAX_OPEN_TIME), CircuitBreaker::max_open_time);
    let breaker = with(breaker, count(fields, &SPREAD), CircuitBreaker::spread);
    let breaker = with(breaker, fields.duration(&SLOW_AFTER), CircuitBreaker::slow_after);
    timed(breaker, fields)
}

fn counting(fields: &mut Fields<'_>) -> CircuitBreaker {
    let breaker = CircuitBreaker::counting();
    let breaker = with(breaker, count(fields, &CONSECUTIVE), |breaker, most| {
        breaker.ready_to_trip(move |counts| counts.consecutive_failures > most)
    });
    timed(breaker, fields)
}

/// Sets the durations that both kinds of breaker have.
fn timed(breaker: CircuitBreaker, fields: &mut Fields<'_>) -> CircuitBreaker {
    let breaker = with(breaker, fields.duration(&INTERVAL), CircuitBreaker::interval);
    let breaker = with(breaker, fields.duration(&BUCKET_PERIOD), CircuitBreaker::bucket_period);
    let breaker = with(breaker, fields.duration(&OPEN_TIME), CircuitBreaker::open_time);
    with(breaker, count(fields, &PROBES), CircuitBreaker::probes)
}

/// Returns a rate limit. Default: two calls per second, with a burst of one second's calls.
fn rate_limit(fields: &mut Fields<'_>) -> RateLimit {
    let rate = fields.number(&RATE).unwrap_or(2.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let burst = count(fields, &BURST).unwrap_or(rate.ceil().max(1.0) as u32);
    admits(rate > 0.0, "rate", fields);
    admits(burst > 0 || rate.is_infinite(), "burst", fields);
    RateLimit::new(guard::Limit::of(rate), burst)
}

/// Reports a setting with which the guard would refuse every call.
fn admits(admits: bool, key: &str, fields: &mut Fields<'_>) {
    if !admits {
        fields.problem(key, "must be above 0, because the guard would refuse every call");
    }
}

fn limit<R: LimitRule>(limit: AdaptiveLimit<R>, fields: &mut Fields<'_>) -> AdaptiveLimit<R> {
    let (least, most) = (count(fields, &LEAST).unwrap_or(1), count(fields, &MOST).unwrap_or(200));
    if least == 0 || least > most {
        let wanted = "at least 1 and at most the highest limit";
        fields.problem("least", format!("must be {wanted}, but it is {least}"));
    }
    with(limit.bounds(least, most), count(fields, &INITIAL), AdaptiveLimit::initial)
}

fn throttle(fields: &mut Fields<'_>) -> Throttle {
    let throttle = with(Throttle::new(), fields.number(&MULTIPLIER), Throttle::multiplier);
    let throttle = with(throttle, fields.number(&MAX_PROBABILITY), Throttle::max_probability);
    with(throttle, fields.duration(&WINDOW), Throttle::window)
}

fn with<G, V>(guard: G, value: Option<V>, set: impl FnOnce(G, V) -> G) -> G {
    match value {
        Some(value) => set(guard, value),
        None => guard,
    }
}

/// Takes a count. "none" means the maximum.
fn count(fields: &mut Fields<'_>, field: &'static Field) -> Option<u32> {
    match fields.count(field)? {
        Limit::To(count) => Some(count),
        Limit::Unlimited => Some(u32::MAX),
    }
}
