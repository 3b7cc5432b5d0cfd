//! The schedule of a policy, from its fields.

use std::time::Duration;

use reattempt::error::ConfigError;
use reattempt::schedule::{
    Constant, Exponential, Jitter, Linear, List, ScheduleExt, SharedSchedule, TruncatedExponential,
};

use super::field::{Field, Kind, Range, field};
use super::fields::{Fields, Limit};

pub(super) static KINDS: [&str; 6] = ["exponential", "decorrelated", "constant", "linear", "truncated", "list"];

field! {
    BASE = "base": Kind::Duration, "The first delay. Default \"100ms\"; \"1s\" for truncated.";
    FACTOR = "factor": Kind::Number(Range { above: true, ..Range::new(0.0, f64::MAX).words("a finite number above 0") }),
        "The growth from one delay to the next. Default 2.";
    CAP = "cap": Kind::DurationOrNone, "The longest delay, or \"none\". Default \"5s\"; none for linear.";
    JITTER = "jitter": Kind::Word(&["none", "full", "equal", "symmetric"]),
        "The random part of a delay. Default \"full\" for exponential, else \"none\".";
    RANDOMISATION = "randomisation": Kind::Number(Range::new(0.0, 1.0)),
        "The share by which a symmetric jitter changes a delay. Default 0.5.";
    CLAMP_JITTER = "clamp_jitter": Kind::Flag, "Applies the cap after the jitter too. Default false.";
    STEP = "step": Kind::Duration, "The growth from one delay to the next. Default: the base.";
    RETRIES = "retries": Kind::Count, "The number of retries with a delay. Default 5.";
    RANDOM_PART = "random_part": Kind::Duration, "The most that is added at random to a delay. Default \"1s\".";
    DELAYS = "delays": Kind::Durations, "The delays, in their order.";
    REPEAT_LAST = "repeat_last": Kind::Flag, "Repeats the last delay without end. Default false.";
}

/// The fields of each kind, in the order of [`KINDS`].
pub(super) static FIELDS: [&[&Field]; 6] = [
    &[&BASE, &FACTOR, &CAP, &JITTER, &RANDOMISATION, &CLAMP_JITTER],
    &[&BASE, &CAP],
    &[&BASE, &JITTER, &RANDOMISATION],
    &[&BASE, &STEP, &CAP, &JITTER, &RANDOMISATION],
    &[&BASE, &RANDOM_PART, &RETRIES],
    &[&DELAYS, &REPEAT_LAST, &JITTER, &RANDOMISATION],
];

const DEFAULT_BASE: Duration = Duration::from_millis(100);

/// Returns the fields of the schedules of this kind.
pub(super) fn fields_of(kind: &str) -> &'static [&'static Field] {
    KINDS.iter().position(|own| *own == kind).and_then(|place| FIELDS.get(place)).copied().unwrap_or_default()
}

/// Returns the fields of all kinds, without duplicates.
pub(super) fn all_fields() -> Vec<&'static Field> {
    let mut all: Vec<&Field> = Vec::new();
    for field in FIELDS.iter().copied().flatten().copied() {
        if !all.iter().any(|known| known.name == field.name) {
            all.push(field);
        }
    }
    all
}

/// Creates a schedule of this kind, or returns `None` if a problem was reported.
pub(super) fn of_kind(kind: &str, fields: &mut Fields<'_>) -> Option<SharedSchedule> {
    match kind {
        "decorrelated" => decorrelated(fields),
        "constant" => {
            let schedule = Constant::new(fields.duration(&BASE).unwrap_or(DEFAULT_BASE));
            Some(SharedSchedule::new(schedule.jittered(jitter(fields, "none"))))
        }
        "linear" => linear(fields),
        "truncated" => {
            let base = fields.duration(&BASE).unwrap_or(Duration::from_secs(1));
            let part = fields.duration(&RANDOM_PART).unwrap_or(Duration::from_secs(1));
            let retries = match fields.count(&RETRIES) {
                Some(Limit::To(retries)) => retries,
                Some(Limit::Unlimited) => u32::MAX,
                None => 5,
            };
            Some(SharedSchedule::new(TruncatedExponential::new(base, retries, part)))
        }
        "list" => {
            let delays = fields.durations(&DELAYS).unwrap_or_default();
            let list = match fields.flag(&REPEAT_LAST) {
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

fn exponential(fields: &mut Fields<'_>) -> Option<SharedSchedule> {
    let base = fields.duration(&BASE).unwrap_or(DEFAULT_BASE);
    let clamp_jitter = fields.flag(&CLAMP_JITTER) == Some(true);
    let schedule = match jitter_word(fields, "full") {
        "none" => Exponential::no_jitter(base),
        "equal" => Exponential::equal_jitter(base),
        "symmetric" => Exponential::symmetric(base, randomisation(fields)),
        _ => Exponential::full_jitter(base),
    };
    let schedule = schedule.factor(fields.number(&FACTOR).unwrap_or(2.0));
    let schedule = match fields.duration_or_none(&CAP) {
        Some(Limit::To(cap)) => schedule.max_delay(fields.accepted(cap_of(base, cap))?),
        Some(Limit::Unlimited) => schedule.no_max_delay(),
        None => schedule,
    };
    Some(SharedSchedule::new(if clamp_jitter { schedule.clamp_jitter() } else { schedule }))
}

/// Returns the cap of a schedule with this base. The library would lower a base above the cap, but in a file, such a
/// base is a mistake.
///
/// # Errors
/// Returns an error for a cap below the base.
pub fn cap_of(base: Duration, cap: Duration) -> Result<Duration, ConfigError> {
    if cap >= base {
        return Ok(cap);
    }
    Err(ConfigError::new("cap", format_args!("{cap:?}"), "at least the base delay"))
}

fn decorrelated(fields: &mut Fields<'_>) -> Option<SharedSchedule> {
    let base = fields.duration(&BASE).unwrap_or(DEFAULT_BASE);
    let schedule = Exponential::decorrelated(base);
    let schedule = match fields.duration_or_none(&CAP) {
        Some(Limit::To(cap)) => schedule.max_delay(fields.accepted(cap_of(base, cap))?),
        Some(Limit::Unlimited) => schedule.no_max_delay(),
        None => schedule,
    };
    Some(SharedSchedule::new(schedule))
}

fn linear(fields: &mut Fields<'_>) -> Option<SharedSchedule> {
    let base = fields.duration(&BASE).unwrap_or(DEFAULT_BASE);
    let schedule = Linear::new(base).step(fields.duration(&STEP).unwrap_or(base));
    let schedule = match fields.duration_or_none(&CAP) {
        Some(Limit::To(cap)) => schedule.max_delay(fields.accepted(cap_of(base, cap))?),
        Some(Limit::Unlimited) | None => schedule,
    };
    Some(SharedSchedule::new(schedule.jittered(jitter(fields, "none"))))
}

fn jitter_word(fields: &mut Fields<'_>, usual: &'static str) -> &'static str {
    fields.word(&JITTER).unwrap_or(usual)
}

fn jitter(fields: &mut Fields<'_>, usual: &'static str) -> Jitter {
    match jitter_word(fields, usual) {
        "full" => Jitter::full(),
        "equal" => Jitter::equal(),
        "symmetric" => Jitter::symmetric(randomisation(fields)),
        _ => Jitter::none(),
    }
}

fn randomisation(fields: &mut Fields<'_>) -> f64 {
    fields.number(&RANDOMISATION).unwrap_or(0.5)
}
