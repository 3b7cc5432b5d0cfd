//! The checks of a gRPC service config.

use std::time::Duration;

use reattempt::error::Recommended;
use reattempt::profile::Profile;
use reattempt::schedule::{Exponential, Failure, FailureKind, SharedSchedule};
use reattempt_grpc::{
    Code, CodeSet, MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy, RetryThrottling, ServiceConfig,
    ServiceConfigError, UnappliedSetting,
};
use serde_json::Value;

use super::ranges;
use super::{Description, Findings, words};
use crate::plan::Course;
use crate::policy::{Policy, Problem};
use crate::text;

/// The most attempts of a call, unless the client sets another limit (rule CALL-8).
const CLIENTS_CAP: u32 = 5;

const NEITHER: &str = "Neither retried nor hedged.";

pub(super) fn check(text: &str, lenient: bool, seed: u64) -> Findings {
    let parsed = if lenient { ServiceConfig::lenient().parse(text) } else { ServiceConfig::parse(text) };
    let config = match parsed {
        Ok(config) => config,
        Err(errors) => {
            let errors = errors.iter().map(problem).collect();
            return Findings { errors, ..Findings::default() };
        }
    };
    let mut findings = Findings::default();
    // The library has accepted the document; it is read again for the places of its entries.
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let entries = document["methodConfig"].as_array().map_or(&[][..], Vec::as_slice);
    for (number, entry) in entries.iter().enumerate() {
        let path = format!("methodConfig[{number}]");
        let names = entry["name"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(method) = names.first().and_then(|name| config.for_method(&method_path(name))) else {
            let reason = "names no method, so it is never used".to_owned();
            findings.warnings.push(Problem::new(None, path, reason));
            continue;
        };
        findings.warnings.extend(unapplied(&path, &names[0], &config));
        let course = course(method, seed);
        warn(&path, method, course.as_ref(), &mut findings.warnings);
        let of = words::list(&names.iter().map(in_words).collect::<Vec<_>>());
        findings.descriptions.push(Description { of, sentences: describe(method, course.as_ref()) });
    }
    if config.for_method("/").is_none() {
        let of = if entries.is_empty() { "all methods" } else { "all other methods" };
        findings.descriptions.push(Description { of: of.to_owned(), sentences: vec![NEITHER.to_owned()] });
    }
    if let Some(throttling) = config.retry_throttling() {
        let ratio = thousandths(throttling.token_ratio_thousandths());
        let path = "retryThrottling.tokenRatio";
        let warning = Recommended::BUDGET.number("", ratio);
        findings.warnings.extend(ranges::at(None, path, warning));
        findings.descriptions.push(throttled(throttling));
    }
    findings
}

fn problem(error: &ServiceConfigError) -> Problem {
    let path = if error.path().is_empty() { "the document" } else { error.path() };
    Problem::new(error.position().map(|(line, _)| line), path, error.reason())
}

/// Returns the path of a method (`/service/method`), of a service (`/service/`) or of all (`/`).
fn method_path(name: &Value) -> String {
    let part = |key: &str| name[key].as_str().unwrap_or_default();
    match (part("service"), part("method")) {
        ("", _) => "/".to_owned(),
        (service, method) => format!("/{service}/{method}"),
    }
}

fn in_words(name: &Value) -> String {
    match method_path(name) {
        path if path == "/" => "all other methods".to_owned(),
        path => match path.strip_suffix('/') {
            Some(service) => format!("all other methods of {}", service.trim_start_matches('/')),
            None => path.trim_start_matches('/').to_owned(),
        },
    }
}

/// Returns a warning for each setting of an entry that no layer applies, by the entry's first name.
fn unapplied(path: &str, name: &Value, config: &ServiceConfig) -> Vec<Problem> {
    let name = method_path(name);
    let of_entry = config.unapplied().filter(|setting| match setting.methods() {
        "" => name == "/",
        methods => name == methods,
    });
    let problem = |setting: UnappliedSetting<'_>| {
        let reason = "is not applied: the channel and the generated client have such settings";
        Problem::new(None, format!("{path}.{}", setting.field()), reason)
    };
    of_entry.map(problem).collect()
}

fn warn(path: &str, method: &MethodConfig, course: Option<&Course>, warnings: &mut Vec<Problem>) {
    if let Some(timeout) = method.timeout {
        let warning = ranges::time(Recommended::DEADLINE, timeout.as_secs_f64());
        warnings.extend(ranges::at(None, format!("{path}.timeout"), warning));
    }
    let too_many = |at: &str, attempts: u32| {
        let reason = format!("is {attempts}; a client makes no more than {CLIENTS_CAP} unless told so");
        (attempts > CLIENTS_CAP).then(|| Problem::new(None, format!("{path}.{at}"), reason))
    };
    if course.is_some_and(|course| course.bands().is_empty()) {
        let reason = "leaves no time for a retry".to_owned();
        warnings.push(Problem::new(None, format!("{path}.timeout"), reason));
    }
    match &method.policy {
        MethodPolicy::Retry(policy) => {
            let at = |field: &str| format!("{path}.retryPolicy.{field}");
            let (base, cap) = (policy.initial_backoff(), policy.max_backoff());
            warnings.extend(too_many("retryPolicy.maxAttempts", policy.max_attempts()));
            let factor = policy.backoff_multiplier();
            let time = |range, time: Duration| ranges::time(range, time.as_secs_f64());
            for (field, warning) in [
                ("initialBackoff", time(Recommended::BASE, base)),
                ("maxBackoff", time(Recommended::CAP, cap)),
                ("backoffMultiplier", Recommended::FACTOR.number("", factor)),
            ] {
                warnings.extend(ranges::at(None, at(field), warning));
            }
            if base > cap {
                let reason = "is above maxBackoff, which cuts it".to_owned();
                warnings.push(Problem::new(None, at("initialBackoff"), reason));
            }
        }
        MethodPolicy::Hedging(policy) => {
            warnings.extend(too_many("hedgingPolicy.maxAttempts", policy.max_attempts()));
            if policy.hedging_delay().is_zero() {
                let reason = "is 0: every call is sent several times at once".to_owned();
                let path = format!("{path}.hedgingPolicy.hedgingDelay");
                warnings.push(Problem::new(None, path, reason));
            }
        }
        _ => {}
    }
}

fn describe(method: &MethodConfig, course: Option<&Course>) -> Vec<String> {
    let mut sentences = match (&method.policy, course) {
        (MethodPolicy::Retry(policy), Some(course)) => retried(policy, course),
        (MethodPolicy::Hedging(policy), _) => hedged(policy),
        _ => vec![NEITHER.to_owned()],
    };
    if let Some(timeout) = method.timeout {
        let timeout = text::brief(timeout);
        sentences.push(format!("A call ends after {timeout}, with all its attempts and delays."));
    }
    sentences
}

fn retried(policy: &MethodRetryPolicy, course: &Course) -> Vec<String> {
    if course.bands().is_empty() {
        return vec!["Not retried: the timeout leaves no time for it.".to_owned()];
    }
    let codes = words::list(&codes(policy.retryable_codes()));
    let times = words::times(course.most_retries(policy.max_attempts().min(CLIENTS_CAP)));
    let delays = words::delays(course);
    let mut sentences = vec![format!("Retried after {codes}, {times}, after {delays}.")];
    sentences.extend(course.ending());
    sentences
}

/// Returns the course of calls of a method with a retry policy. The library draws each delay within
/// a fifth of the interval, which is capped first (rule BK-4).
fn course(method: &MethodConfig, seed: u64) -> Option<Course> {
    let MethodPolicy::Retry(policy) = &method.policy else { return None };
    let schedule = Exponential::symmetric(policy.initial_backoff(), 0.2).factor(policy.backoff_multiplier());
    let schedule = schedule.max_delay(policy.max_backoff());
    let mut profile = Profile::new(SharedSchedule::new(schedule));
    profile.max_attempts = policy.max_attempts().min(CLIENTS_CAP);
    profile.max_elapsed = method.timeout;
    let policy = Policy::new("", profile);
    let failure = Failure::new(FailureKind::Server).with_code(Code::Unavailable.number());
    Some(Course::of(&policy, failure, seed))
}

fn hedged(policy: &MethodHedgingPolicy) -> Vec<String> {
    let attempts = policy.max_attempts().min(CLIENTS_CAP);
    let sent = match policy.hedging_delay() {
        Duration::ZERO => {
            format!("Hedged: sent {attempts} times at once; the first answer counts.")
        }
        delay => format!(
            "Hedged: sent up to {attempts} times, once more after each {} without an answer; the first \
             answer counts.",
            text::brief(delay)
        ),
    };
    let codes = codes(policy.non_fatal_codes());
    let errors = match codes.is_empty() {
        true => "Any error ends the call.".to_owned(),
        false => format!("After {} the next is sent at once; any other error ends the call.", words::list(&codes)),
    };
    vec![sent, errors]
}

fn throttled(throttling: RetryThrottling) -> Description {
    let most = thousandths(throttling.max_tokens_thousandths());
    let ratio = thousandths(throttling.token_ratio_thousandths());
    let half = most / 2.0;
    let sentence = format!(
        "Each retryable failure takes 1 of {most} tokens, and each success adds {ratio}. While {half} or \
         fewer are left, nothing is retried or hedged."
    );
    Description { of: "throttling, for all methods together".to_owned(), sentences: vec![sentence] }
}

fn thousandths(number: u32) -> f64 {
    f64::from(number) / 1000.0
}

fn codes(set: CodeSet) -> Vec<String> {
    (0..=16).map(Code::from_number).filter(|code| set.contains(*code)).map(|code| code.to_string()).collect()
}
