//! The schedule of a policy, from its fields.

use std::time::Duration;

use reattempt::error::ConfigError;
use reattempt::schedule::{
    Constant, Exponential, Jitter, Linear, List, ScheduleExt, SharedSchedule, TruncatedExponential,
};

use super::fields::{Fields, Limit};

pub(super) const KINDS: [&str; 6] = ["exponential", "decorrelated", "constant", "linear", "truncated", "list"];

/// The fields of a schedule.
pub(super) const FIELDS: [&str; 11] = [
    "base",
    "factor",
    "cap",
    "jitter",
    "randomisation",
    "clamp_jitter",
    "step",
    "retries",
    "random_part",
    "delays",
    "repeat_last",
];

const BASE: Duration = Duration::from_millis(100);

/// Creates the schedule of this kind; `None` if a problem was reported.
pub(super) fn of_kind(kind: &str, fields: &mut Fields<'_, '_>) -> Option<SharedSchedule> {
    match kind {
        "decorrelated" => decorrelated(fields),
        "constant" => {
            let schedule = Constant::new(fields.duration("base").unwrap_or(BASE));
            Some(SharedSchedule::new(schedule.jittered(jitter(fields, "none"))))
        }
        "linear" => linear(fields),
        "truncated" => {
            let base = fields.duration("base").unwrap_or(Duration::from_secs(1));
            let part = fields.duration("random_part").unwrap_or(Duration::from_secs(1));
            let retries = match fields.count("retries") {
                Some(Limit::To(retries)) => retries,
                Some(Limit::Unlimited) => u32::MAX,
                None => 5,
            };
            Some(SharedSchedule::new(TruncatedExponential::new(base, retries, part)))
        }
        "list" => {
            let delays = fields.durations("delays").unwrap_or_default();
            let list = match fields.flag("repeat_last") {
                Some(true) if delays.is_empty() => {
                    fields.problem("delays", "must be a list of at least one delay, but it is empty");
                    return None;
                }
                Some(true) => List::repeating_last(delays),
                _ => List::ending(delays),
            };
            Some(SharedSchedule::new(list.jittered(jitter(fields, "none"))))
        }
        _ => exponential(fields),
    }
}

fn exponential(fields: &mut Fields<'_, '_>) -> Option<SharedSchedule> {
    let base = fields.duration("base").unwrap_or(BASE);
    let clamp_jitter = fields.flag("clamp_jitter") == Some(true);
    let schedule = match jitter_word(fields, "full") {
        "none" => Exponential::no_jitter(base),
        "equal" => Exponential::equal_jitter(base),
        "symmetric" => Exponential::symmetric(base, randomisation(fields)),
        _ => Exponential::full_jitter(base),
    };
    let is_legal = |factor: f64| factor.is_finite() && factor > 0.0;
    let factor = fields.number_within("factor", "a finite number above 0", is_legal).unwrap_or(2.0);
    let schedule = schedule.factor(factor);
    let schedule = match fields.duration_or_none("cap") {
        Some(Limit::To(cap)) => schedule.max_delay(fields.accepted(bounded(base, cap))?),
        Some(Limit::Unlimited) => schedule.no_max_delay(),
        None => schedule,
    };
    Some(SharedSchedule::new(if clamp_jitter { schedule.clamp_jitter() } else { schedule }))
}

/// Returns the cap of a schedule with this base. The library would lower the base; in a file that
/// is a mistake.
pub(crate) fn bounded(base: Duration, cap: Duration) -> Result<Duration, ConfigError> {
    if cap >= base {
        return Ok(cap);
    }
    Err(ConfigError::new("cap", format_args!("{cap:?}"), "at least the base delay"))
}

fn decorrelated(fields: &mut Fields<'_, '_>) -> Option<SharedSchedule> {
    let base = fields.duration("base").unwrap_or(BASE);
    let schedule = Exponential::decorrelated(base);
    let schedule = match fields.duration_or_none("cap") {
        Some(Limit::To(cap)) => schedule.max_delay(fields.accepted(bounded(base, cap))?),
        Some(Limit::Unlimited) => schedule.no_max_delay(),
        None => schedule,
    };
    Some(SharedSchedule::new(schedule))
}

fn linear(fields: &mut Fields<'_, '_>) -> Option<SharedSchedule> {
    let base = fields.duration("base").unwrap_or(BASE);
    let schedule = Linear::new(base).step(fields.duration("step").unwrap_or(base));
    let schedule = match fields.duration_or_none("cap") {
        Some(Limit::To(cap)) => schedule.max_delay(fields.accepted(bounded(base, cap))?),
        Some(Limit::Unlimited) | None => schedule,
    };
    Some(SharedSchedule::new(schedule.jittered(jitter(fields, "none"))))
}

fn jitter_word(fields: &mut Fields<'_, '_>, usual: &'static str) -> &'static str {
    fields.word("jitter", &["none", "full", "equal", "symmetric"]).unwrap_or(usual)
}

fn jitter(fields: &mut Fields<'_, '_>, usual: &'static str) -> Jitter {
    match jitter_word(fields, usual) {
        "full" => Jitter::full(),
        "equal" => Jitter::equal(),
        "symmetric" => Jitter::symmetric(randomisation(fields)),
        _ => Jitter::none(),
    }
}

fn randomisation(fields: &mut Fields<'_, '_>) -> f64 {
    fields.number_from("randomisation", (0.0, 1.0)).unwrap_or(0.5)
}
