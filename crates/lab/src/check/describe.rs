//! The retries of a policy in sentences.

use http::StatusCode;
use reattempt::Verdict;
use reattempt::classify::verdict_of_status;

use super::{Description, words};
use crate::plan::Course;
use crate::policy::{BodySection, Policy};
use crate::text;

/// Describes the retries of a policy.
pub(super) fn describe(policy: &Policy, course: &Course) -> Description {
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

/// Describes how the bodies of a section are read.
pub(super) fn describe_bodies(section: &BodySection) -> String {
    let up_to = section.up_to.map(|bytes| format!("up to {bytes} bytes"));
    let within = section.within.map(|time| format!("within {}", text::brief(time)));
    let rules = (!section.rules.is_empty()).then(|| format!("judged by {}", section.rules.join(", ")));
    let parts: Vec<_> = up_to.into_iter().chain(within).chain(rules).collect();
    match parts.is_empty() {
        true => "as the program sets".to_owned(),
        false => parts.join(", "),
    }
}

/// Returns the registered statuses whose verdict is one of the wanted.
fn statuses(wanted: impl Fn(Verdict) -> bool) -> Vec<String> {
    (100..600)
        .filter_map(|code| StatusCode::from_u16(code).ok())
        .filter(|status| status.canonical_reason().is_some() && wanted(verdict_of_status(*status)))
        .map(|status| status.as_u16().to_string())
        .collect()
}
