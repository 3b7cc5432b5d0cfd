//! The checks of a policy file.

use http::StatusCode;
use reattempt::Verdict;
use reattempt::classify::verdict_of_status;
use reattempt::error::Recommended;
use reattempt::schedule::{Failure, FailureKind};

use super::ranges;
use super::{Description, Findings, words};
use crate::plan::Course;
use crate::policy::{Document, Format, GuardWord, Policy, Problem, Seen};
use crate::text;

pub(super) fn check(text: &str, format: Format, seed: u64) -> Findings {
    let document = match Document::read(text, format) {
        Ok(document) => document,
        Err(mistakes) => return Findings { errors: mistakes.problems, ..Findings::default() },
    };
    let mut findings = Findings::default();
    findings.descriptions.extend(describe_routes(&document));
    findings.warnings.extend(document.uses_no_policy());
    for policy in &document.policies {
        let course = Course::of(policy, Failure::new(FailureKind::Server).with_code(503), seed);
        findings.warnings.extend(policy.seen.iter().filter_map(warning));
        findings.warnings.extend(policy.seen.iter().filter_map(|seen| burst(seen, &policy.seen)));
        findings.warnings.extend(policy.guards.iter().flat_map(|guard| of_guard(policy, guard)));
        findings.warnings.extend(never(policy, &course));
        findings.descriptions.push(describe(policy, &course));
    }
    findings.warnings.sort_by_key(|warning| warning.line.unwrap_or(usize::MAX));
    findings
}

/// Describes which policy a request has; `None` for a file that has only policies.
fn describe_routes(document: &Document) -> Option<Description> {
    if document.routes.is_empty() && !document.never_retry {
        return None;
    }
    let mut sentences: Vec<_> = document.routes.iter().map(|route| format!("{route}: {}", route.policy)).collect();
    if !sentences.is_empty() {
        let rest = document.default.as_deref().unwrap_or("the library's defaults");
        sentences.push(format!("any other request: {rest}"));
    }
    sentences.extend(document.never_retry.then(|| "Nothing is retried (never_retry).".to_owned()));
    Some(Description { of: "The first route that matches counts".to_owned(), sentences })
}

fn warning(seen: &Seen) -> Option<Problem> {
    let number = |range: Recommended| range.number(seen.key, seen.value);
    let time = |range| ranges::time(range, seen.value);
    let warning = match seen.key {
        // A policy with a single attempt is deliberate.
        "max_attempts" if seen.value <= 1.0 => None,
        "max_attempts" => number(Recommended::ATTEMPTS),
        "base" => time(Recommended::BASE),
        "cap" => time(Recommended::CAP),
        "max_elapsed" => time(Recommended::DEADLINE),
        "factor" => number(Recommended::FACTOR),
        "ratio" => number(Recommended::BUDGET),
        _ => None,
    };
    ranges::at(seen.line, &*seen.path, warning)
}

/// Checks a burst, which is measured by the rate beside it.
fn burst(seen: &Seen, all: &[Seen]) -> Option<Problem> {
    let place = seen.path.strip_suffix("burst").filter(|_| seen.key == "burst")?;
    let beside = |other: &&Seen| other.path.strip_prefix(place) == Some("rate");
    let rate = all.iter().find(beside)?.value;
    ranges::at(seen.line, &*seen.path, Recommended::burst(seen.key, seen.value, rate))
}

/// Returns the warnings of a guard.
fn of_guard(policy: &Policy, guard: &GuardWord) -> impl Iterator<Item = Problem> {
    let path = format!("{}.guards", policy.name);
    let of = guard.name.clone();
    guard.validate().into_iter().map(move |warning| {
        let reason = format!("has {of:?}: {warning}");
        Problem::new(None, path.clone(), reason)
    })
}

/// Returns a problem if the limits of a policy allow no retry.
fn never(policy: &Policy, course: &Course) -> Option<Problem> {
    if !course.bands().is_empty() || policy.profile.max_attempts <= 1 {
        return None;
    }
    let reason = format!("never retries: {}", course.reasons());
    Some(Problem::new(None, policy.name.clone(), reason))
}

fn describe(policy: &Policy, course: &Course) -> Description {
    let mut sentences = Vec::new();
    let guards: Vec<_> = policy.guards.iter().map(|guard| guard.name.clone()).collect();
    if !guards.is_empty() {
        sentences.push(format!("Each attempt must be admitted by {}.", words::list(&guards)));
    }
    if course.bands().is_empty() {
        sentences.push("Nothing is retried.".to_owned());
        return Description { of: policy.name.clone(), sentences };
    }
    let limits = policy.limits();
    let times = words::times(course.most_retries(limits.max_attempts));
    sentences.push(format!("Retried {times}, after {}.", words::delays(course)));
    sentences.push(format!(
        "Over HTTP, any request is retried after {}, or with proof that it was not processed. A repeatable \
         request is also retried after {}, a lost connection or a timeout.",
        words::list(&statuses(|verdict| matches!(verdict, Verdict::NotProcessed(_)))),
        words::list(&statuses(|verdict| matches!(verdict, Verdict::Transient(_)))),
    ));
    sentences.extend(policy.repeatable.map(|repeatable| {
        let which = if repeatable { "Every request is" } else { "No request is" };
        format!("{which} declared as repeatable, also over gRPC.")
    }));
    let server = text::brief(limits.max_server_delay);
    sentences.push(match limits.max_elapsed {
        Some(elapsed) => format!(
            "No retry is sent later than {} after the start. A delay that the server asks for is obeyed \
             up to {server}.",
            text::brief(elapsed)
        ),
        None => format!("The time is not limited. A delay that the server asks for is obeyed up to {server}."),
    });
    sentences.extend(course.ending());
    if let Some(timeout) = policy.attempt_timeout {
        sentences.push(format!("Each attempt has {}.", text::brief(timeout)));
    }
    let budget = policy.budget.as_deref().unwrap_or("the default of the protocol");
    sentences.push(format!("Budget: {budget}."));
    Description { of: policy.name.clone(), sentences }
}

/// Returns the registered statuses whose verdict is one of the wanted.
fn statuses(wanted: impl Fn(Verdict) -> bool) -> Vec<String> {
    (100..600)
        .filter_map(|code| StatusCode::from_u16(code).ok())
        .filter(|status| status.canonical_reason().is_some() && wanted(verdict_of_status(*status)))
        .map(|status| status.as_u16().to_string())
        .collect()
}
