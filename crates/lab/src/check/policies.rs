//! The checks of a policy file.

use reattempt::error::Recommended;
use reattempt::schedule::{Failure, FailureKind};

use super::describe::{describe, describe_bodies};
use super::explain::Asked;
use super::ranges;
use super::{Description, Findings};
use crate::plan::Course;
use crate::policy::{Document, Format, GuardWord, Policy, Problem, Seen};

/// Checks a file. Describes all of its policies, or that of the request that was asked for.
pub(super) fn check(text: &str, format: Format, asked: Option<&Asked>, seed: u64) -> Findings {
    let document = match Document::read(text, format) {
        Ok(document) => document,
        Err(mistakes) => return Findings { errors: mistakes.problems, ..Findings::default() },
    };
    let mut findings = Findings::default();
    match asked {
        Some(asked) => findings.descriptions = asked.explain(&document, seed),
        None => findings.descriptions.extend(describe_routes(&document).into_iter().chain(bodies(&document))),
    }
    findings.warnings.extend(document.uses_no_policy());
    for policy in &document.policies {
        let course = Course::of(policy, Failure::new(FailureKind::Server).with_code(503), seed);
        findings.warnings.extend(policy.seen.iter().filter_map(warning));
        findings.warnings.extend(policy.seen.iter().filter_map(|seen| burst(seen, &policy.seen)));
        findings.warnings.extend(policy.guards.iter().flat_map(|guard| of_guard(policy, guard)));
        findings.warnings.extend(contradictions(policy));
        findings.warnings.extend(never(policy, &course));
        if asked.is_none() {
            findings.descriptions.push(describe(policy, &course));
        }
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

/// Describes which response bodies are read; `None` for a file that has no section for them.
fn bodies(document: &Document) -> Option<Description> {
    let section = |section| format!("{section}: {}", describe_bodies(section));
    let sentences: Vec<_> = document.bodies.iter().map(section).collect();
    let of = "Response bodies that are read, by the first section that matches".to_owned();
    (!sentences.is_empty()).then_some(Description { of, sentences })
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

/// Returns a problem for each two settings that contradict each other, at the line of the first.
fn contradictions(policy: &Policy) -> impl Iterator<Item = Problem> {
    policy.contradictions().into_iter().filter_map(|warning| {
        let seen = policy.seen.iter().find(|seen| seen.key == warning.field());
        let path = seen.map_or_else(|| policy.name.clone(), |seen| seen.path.to_string());
        ranges::at(seen.and_then(|seen| seen.line), path, Some(warning))
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
