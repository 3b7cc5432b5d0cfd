//! A guard in a word, such as `breaker`, `breaker:open_time=5s,consecutive_failures=0` or `bulkhead:limit=8`.
//!
//! The words are rewritten as a table, as policies are. The fields have the names of the library's setters.

use reattempt::error::Warning;
use reattempt::guard::contract::LimitRule;
use reattempt::guard::{self, AdaptiveLimit, Aimd, Bulkhead, CircuitBreaker, Gradient2, RateLimit, Throttle, Vegas};
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Limit};
use super::{in_a_word, word};

/// The kinds of guard.
pub(crate) const KINDS: [&str; 8] =
    ["breaker", "counting", "rate-limit", "bulkhead", "aimd", "vegas", "gradient2", "throttle"];

/// A guard with its settings. A setter makes state of its own, so clients of one word share nothing.
#[derive(Debug, Clone)]
pub(crate) struct GuardWord {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The kind of a guard, with one that has its settings.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Breaker(CircuitBreaker),
    RateLimit(RateLimit),
    Bulkhead(Bulkhead),
    Aimd(AdaptiveLimit<Aimd>),
    Vegas(AdaptiveLimit<Vegas>),
    Gradient2(AdaptiveLimit<Gradient2>),
    Throttle(Throttle),
}

impl GuardWord {
    /// Parses a word: the name of a kind, with changes.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        let (kind, _) = word::split(word);
        if !KINDS.contains(&kind) {
            return Err(format!("{kind:?} is no kind of guard ({})", KINDS.join(", ")));
        }
        let text = word::table_of("guard", word);
        let (mut problems, mut seen) = (Vec::new(), Vec::new());
        let (document, errors) = DeTable::parse_recoverable(&text);
        let table = document.get_ref().values().next().map(toml::Spanned::get_ref);
        let Some(DeValue::Table(table)) = table.filter(|_| errors.is_empty()) else {
            return Err("it cannot be read".to_owned());
        };
        let mut fields = Fields::new(&text, word::TABLE.to_owned(), table, &mut problems, &mut seen);
        let made = fields.word("guard", &KINDS).and_then(|kind| of_kind(kind, &mut fields));
        fields.finish();
        match made.filter(|_| problems.is_empty()) {
            Some(kind) => Ok(Self { name: word.to_owned(), kind }),
            None => Err(in_a_word(problems)),
        }
    }
}

impl GuardWord {
    /// Returns a warning for each setting outside of its recommended range.
    pub(crate) fn validate(&self) -> Vec<Warning> {
        match &self.kind {
            Kind::Breaker(breaker) => breaker.validate(),
            Kind::Bulkhead(bulkhead) => bulkhead.validate(),
            _ => Vec::new(),
        }
    }
}

/// Returns the guard of this kind; `None` if a problem was reported.
fn of_kind(kind: &str, fields: &mut Fields<'_, '_>) -> Option<Kind> {
    Some(match kind {
        "breaker" => Kind::Breaker(breaker(fields)),
        "counting" => Kind::Breaker(counting(fields)),
        "rate-limit" => Kind::RateLimit(rate_limit(fields)),
        "bulkhead" => Kind::Bulkhead(Bulkhead::new(count(fields, "limit").unwrap_or(64))),
        "aimd" => {
            let backoff = |factor: f64| (0.5..1.0).contains(&factor);
            let backoff = fields.number_within("backoff", "from 0.5 to below 1", backoff);
            let rule = with(Aimd::new(), backoff, Aimd::backoff);
            Kind::Aimd(limit(AdaptiveLimit::new(rule), fields))
        }
        "vegas" => Kind::Vegas(limit(AdaptiveLimit::vegas(), fields)),
        "gradient2" => Kind::Gradient2(limit(AdaptiveLimit::gradient2(), fields)),
        _ => Kind::Throttle(throttle(fields)),
    })
}

fn breaker(fields: &mut Fields<'_, '_>) -> CircuitBreaker {
    let breaker = CircuitBreaker::rate();
    let is_ratio = |ratio: f64| (0.0..=1.0).contains(&ratio);
    let wanted = "a number above 0 and at most 1";
    let ratio = fields.number_within("failure_ratio", wanted, |ratio| is_ratio(ratio) && ratio > 0.0);
    let breaker = with(breaker, ratio, CircuitBreaker::failure_ratio);
    let calls = count(fields, "min_calls");
    if calls == Some(0) {
        fields.problem("min_calls", "must be at least 1, but it is 0");
    }
    let breaker = with(breaker, calls, CircuitBreaker::min_calls);
    let ratio = fields.number_within("probe_failure_ratio", "a number from 0 to 1", is_ratio);
    let breaker = with(breaker, ratio, CircuitBreaker::probe_failure_ratio);
    let consecutive = count(fields, "consecutive_failures");
    let breaker = with(breaker, consecutive, CircuitBreaker::consecutive_failures);
    let breaker = with(breaker, count(fields, "last_calls"), CircuitBreaker::last_calls);
    let breaker = with(breaker, fields.duration("max_open_time"), CircuitBreaker::max_open_time);
    let breaker = with(breaker, count(fields, "spread"), CircuitBreaker::spread);
    let breaker = with(breaker, fields.duration("slow_after"), CircuitBreaker::slow_after);
    timed(breaker, fields)
}

fn counting(fields: &mut Fields<'_, '_>) -> CircuitBreaker {
    let breaker = CircuitBreaker::counting();
    let breaker = with(breaker, count(fields, "consecutive_failures"), |breaker, most| {
        breaker.ready_to_trip(move |counts| counts.consecutive_failures > most)
    });
    timed(breaker, fields)
}

/// Sets the times of both forms of breaker.
fn timed(breaker: CircuitBreaker, fields: &mut Fields<'_, '_>) -> CircuitBreaker {
    let breaker = with(breaker, fields.duration("interval"), CircuitBreaker::interval);
    let breaker = with(breaker, fields.duration("bucket_period"), CircuitBreaker::bucket_period);
    let breaker = with(breaker, fields.duration("open_time"), CircuitBreaker::open_time);
    with(breaker, count(fields, "probes"), CircuitBreaker::probes)
}

/// Two calls for each second unless the word states another rate, and a second's calls as the burst.
fn rate_limit(fields: &mut Fields<'_, '_>) -> RateLimit {
    let is_legal = |rate: f64| rate == 0.0 || rate == f64::INFINITY || (1e-6..=1e9).contains(&rate);
    let rate = fields.number_within("rate", "0, from 10⁻⁶ to 10⁹, or infinite", is_legal).unwrap_or(2.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let burst = count(fields, "burst").unwrap_or(rate.ceil().max(1.0) as u32);
    RateLimit::new(guard::Limit::of(rate), burst)
}

fn limit<R: LimitRule>(limit: AdaptiveLimit<R>, fields: &mut Fields<'_, '_>) -> AdaptiveLimit<R> {
    let (least, most) = (count(fields, "least").unwrap_or(1), count(fields, "most").unwrap_or(200));
    if least == 0 || least > most {
        let wanted = "at least 1 and at most the highest limit";
        fields.problem("least", format!("must be {wanted}, but it is {least}"));
    }
    with(limit.bounds(least, most), count(fields, "initial"), AdaptiveLimit::initial)
}

fn throttle(fields: &mut Fields<'_, '_>) -> Throttle {
    let k = |k: f64| (1.0..=100.0).contains(&k);
    let k = fields.number_within("multiplier", "from 1 to 100", k);
    let most = |most: f64| (0.0..=1.0).contains(&most);
    let most = fields.number_within("max_probability", "from 0 to 1", most);
    let throttle = with(Throttle::new(), k, Throttle::multiplier);
    let throttle = with(throttle, most, Throttle::max_probability);
    with(throttle, fields.duration("window"), Throttle::window)
}

fn with<G, V>(guard: G, value: Option<V>, set: impl FnOnce(G, V) -> G) -> G {
    match value {
        Some(value) => set(guard, value),
        None => guard,
    }
}

/// Takes a count; "none" is the highest.
fn count(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<u32> {
    match fields.count(key)? {
        Limit::To(count) => Some(count),
        Limit::Unlimited => Some(u32::MAX),
    }
}
