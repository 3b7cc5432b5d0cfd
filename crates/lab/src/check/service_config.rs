//! A gRPC service config.

use std::time::Duration;

use reattempt::profile::Profile;
use reattempt::schedule::{Exponential, SharedSchedule};
use reattempt::{ConfigError, Failure, FailureKind, Limits};
use reattempt_grpc::{
    Code, CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, RetryPolicy, ServiceConfig,
    ServiceConfigError, Throttling,
};
use serde_json::Value;

use super::ranges;
use super::{Findings, Said, words};
use crate::plan::Course;
use crate::policy::{Policy, Problem};
use crate::text;

/// More attempts than this a client does not make, unless it is told to (rule CALL-8).
const CLIENTS_CAP: u32 = 5;

pub(super) fn check(text: &str, lenient: bool, seed: u64) -> Findings {
    let parsed =
        if lenient { ServiceConfig::lenient().parse(text) } else { ServiceConfig::parse(text) };
    let config = match parsed {
        Ok(config) => config,
        Err(errors) => {
            let errors = errors.iter().map(problem).collect();
            return Findings { errors, ..Findings::default() };
        }
    };
    let mut findings = Findings::default();
    // The library has found it to be right; here it is read again for the places of its entries.
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let entries = document["methodConfig"].as_array().map_or(&[][..], Vec::as_slice);
    for (number, entry) in entries.iter().enumerate() {
        let path = format!("methodConfig[{number}]");
        let names = entry["name"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(method) = names.first().and_then(|name| config.for_method(&method_path(name)))
        else {
            let reason = "names no method, so it is never used".to_owned();
            findings.warnings.push(Problem { line: None, path, reason });
            continue;
        };
        warn(&path, method, &mut findings.warnings);
        let of = words::list(&names.iter().map(in_words).collect::<Vec<_>>());
        findings.says.push(Said { of, sentences: said(method, seed) });
    }
    if let Some(throttling) = config.retry_throttling() {
        let ratio = thousandths(throttling.token_ratio_thousandths());
        let path = "retryThrottling.tokenRatio";
        findings.warnings.extend(ranges::BUDGET.warning(None, path, ratio));
        findings.says.push(throttled(throttling));
    }
    findings
}

fn problem(error: &ServiceConfigError) -> Problem {
    let path = if error.path().is_empty() { "the document" } else { error.path() };
    Problem {
        line: error.position().map(|(line, _)| line),
        path: path.to_owned(),
        reason: error.reason().to_owned(),
    }
}

/// The path of the method, or of all methods of the service, or of any other method.
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

fn warn(path: &str, method: &MethodConfig, warnings: &mut Vec<Problem>) {
    if let Some(timeout) = method.timeout {
        let timeout = timeout.as_secs_f64();
        warnings.extend(ranges::DEADLINE.warning(None, format!("{path}.timeout"), timeout));
    }
    let too_many = |at: &str, attempts: u32| {
        let reason =
            format!("is {attempts}; a client makes no more than {CLIENTS_CAP} unless told so");
        (attempts > CLIENTS_CAP).then(|| Problem {
            line: None,
            path: format!("{path}.{at}"),
            reason,
        })
    };
    match &method.policy {
        MethodPolicy::Retry(policy) => {
            let at = |field: &str| format!("{path}.retryPolicy.{field}");
            let (base, cap) = (policy.initial_backoff(), policy.max_backoff());
            warnings.extend(too_many("retryPolicy.maxAttempts", policy.max_attempts()));
            let factor = policy.backoff_multiplier();
            warnings.extend(
                [
                    ranges::BASE.warning(None, at("initialBackoff"), base.as_secs_f64()),
                    ranges::CAP.warning(None, at("maxBackoff"), cap.as_secs_f64()),
                    ranges::FACTOR.warning(None, at("backoffMultiplier"), factor),
                ]
                .into_iter()
                .flatten(),
            );
            if base > cap {
                let reason = "is above maxBackoff, which cuts it".to_owned();
                warnings.push(Problem { line: None, path: at("initialBackoff"), reason });
            }
        }
        MethodPolicy::Hedging(policy) => {
            warnings.extend(too_many("hedgingPolicy.maxAttempts", policy.max_attempts()));
            if policy.hedging_delay().is_zero() {
                let reason = "is 0: every call is sent several times at once".to_owned();
                let path = format!("{path}.hedgingPolicy.hedgingDelay");
                warnings.push(Problem { line: None, path, reason });
            }
        }
        _ => {}
    }
}

fn said(method: &MethodConfig, seed: u64) -> Vec<String> {
    let mut sentences = match &method.policy {
        MethodPolicy::Retry(policy) => vec![retried(policy, method.timeout, seed)],
        MethodPolicy::Hedging(policy) => hedged(policy),
        _ => vec!["Neither retried nor hedged.".to_owned()],
    };
    if let Some(timeout) = method.timeout {
        let timeout = text::brief(timeout);
        sentences.push(format!("A call ends after {timeout}, with all its attempts and delays."));
    }
    sentences
}

fn retried(policy: &RetryPolicy, timeout: Option<Duration>, seed: u64) -> String {
    let codes = words::list(&codes(policy.retryable_codes()));
    let attempts = policy.max_attempts().min(CLIENTS_CAP);
    let delays = match course(policy, attempts, timeout, seed) {
        Ok(course) if course.bands().is_empty() => "no delay that its timeout allows".to_owned(),
        Ok(course) => words::delays(&course),
        Err(error) => error.to_string(),
    };
    format!("Retried after {codes}, {}, after {delays}.", words::times(attempts))
}

/// The delays as the library draws them: a fifth up or down, and cut before that (rule BK-4).
fn course(
    policy: &RetryPolicy,
    attempts: u32,
    timeout: Option<Duration>,
    seed: u64,
) -> Result<Course, ConfigError> {
    let cap = policy.max_backoff();
    let schedule = Exponential::symmetric(policy.initial_backoff().min(cap), 0.2)?
        .factor(policy.backoff_multiplier())?
        .cap(cap)?;
    let mut profile = Profile::new(SharedSchedule::new(schedule));
    profile.max_attempts = attempts;
    profile.max_elapsed = timeout;
    let policy = Policy {
        name: String::new(),
        profile,
        max_server_delay: Limits::default().max_server_delay,
        attempt_timeout: None,
        budget: None,
        seen: Vec::new(),
    };
    let failure = Failure::new(FailureKind::Server).with_code(Code::Unavailable.number());
    Ok(Course::of(&policy, failure, seed))
}

fn hedged(policy: &HedgingPolicy) -> Vec<String> {
    let attempts = policy.max_attempts().min(CLIENTS_CAP);
    let sent = match policy.hedging_delay() {
        Duration::ZERO => {
            format!("Hedged: sent {attempts} times at once; the first answer counts.")
        }
        delay => format!(
            "Hedged: sent up to {attempts} times, once more each {} without an answer; the first answer \
             counts.",
            text::brief(delay)
        ),
    };
    let codes = codes(policy.non_fatal_codes());
    let errors = match codes.is_empty() {
        true => "Any error ends the call.".to_owned(),
        false => format!(
            "After {} the next is sent at once; any other error ends the call.",
            words::list(&codes)
        ),
    };
    vec![sent, errors]
}

fn throttled(throttling: Throttling) -> Said {
    let most = thousandths(throttling.max_tokens_thousandths());
    let ratio = thousandths(throttling.token_ratio_thousandths());
    let half = most / 2.0;
    let sentence = format!(
        "Of {most} tokens each failure that counts takes 1, and each success gives {ratio} back; while \
         {half} or fewer are left, nothing is retried or hedged."
    );
    Said { of: "throttling, for all methods together".to_owned(), sentences: vec![sentence] }
}

fn thousandths(number: u32) -> f64 {
    f64::from(number) / 1000.0
}

fn codes(set: CodeSet) -> Vec<String> {
    (0..=16)
        .map(Code::from_number)
        .filter(|code| set.contains(*code))
        .map(|code| code.to_string())
        .collect()
}
