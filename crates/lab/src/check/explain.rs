//! The policy that a policy file has for one request (`lab check --explain`).

use std::str::FromStr;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, Request, Uri};
use reattempt::Verdict;
use reattempt::classify::{RequestView, is_repeatable};
use reattempt::profile::Profile;
use reattempt::schedule::{Exponential, Failure, FailureKind, SharedSchedule};

use super::describe::{describe, describe_bodies};
use super::{Description, words};
use crate::error::LabError;
use crate::plan::Course;
use crate::policy::{Document, Policy};
use crate::text;

/// The request that is explained.
#[derive(Debug)]
pub(super) struct Asked {
    request: Request<()>,
}

/// The name of the policy of a request for which the file has none.
const LIBRARYS: &str = "the library's defaults";

impl Asked {
    /// Reads the destination and the route of the command line.
    pub(super) fn parse(arguments: &[String]) -> Result<Option<Self>, LabError> {
        let (destination, route) = match arguments {
            [] => return Ok(None),
            [destination] => (destination, "/"),
            [destination, route, ..] => (destination, &**route),
        };
        let wrong = |what: &str, text: &str| LabError::new(format!("{what}, but it is {text:?}"));
        let (scheme, authority) = destination.split_once("://").unwrap_or(("https", destination));
        let authority = Authority::from_str(authority.strip_suffix('/').unwrap_or(authority));
        let (Ok(authority), "http" | "https") = (authority, scheme) else {
            let wanted =
                "the destination must be a host with an optional port and scheme, such as https://orders.example";
            return Err(wrong(wanted, destination));
        };
        let (method, path) = match route.split_once(' ') {
            Some((method, path)) => (method, path.to_owned()),
            None if route.starts_with('/') => ("GET", route.to_owned()),
            None => ("POST", format!("/{route}")),
        };
        let is_whole = path.starts_with('/') && (route.contains(' ') || route.contains('/'));
        let (Ok(method), Ok(path), true) = (Method::from_str(method), PathAndQuery::from_str(&path), is_whole) else {
            let wanted = "the route must be \"/path\", \"METHOD /path\" or \"package.Service/Method\"";
            return Err(wrong(wanted, route));
        };
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
        let uri = uri.map_err(|error| LabError::new(format!("no URI has these parts: {error}")))?;
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut()) = (method, uri);
        Ok(Some(Self { request }))
    }

    /// Describes the request's policy: the reason why it applies, its retries, and each of its settings.
    pub(super) fn explain(&self, document: &Document, seed: u64) -> Vec<Description> {
        let view = RequestView::from(&self.request);
        let route = document.routes.iter().enumerate().find(|(_, route)| route.matches(view));
        let name = route.map(|(_, route)| &route.policy).or(document.default.as_ref());
        let by = match (route, name) {
            (Some((number, route)), _) => format!("by routes[{number}] ({route})"),
            (None, Some(_)) if document.routes.is_empty() => "the policy of every request".to_owned(),
            (None, Some(_)) => "the default, because no route matches".to_owned(),
            (None, None) => "because no route matches, and the file has no default".to_owned(),
        };
        let policy = name.and_then(|name| document.policies.iter().find(|policy| policy.name == *name));
        let librarys = Policy::new(LIBRARYS, Profile::new(SharedSchedule::new(Exponential::default())));
        let policy = policy.unwrap_or(&librarys);
        let course = Course::of(policy, Failure::new(FailureKind::Server).with_code(503), seed);
        let mut sentences = vec![format!("Policy: {}, {by}.", policy.name), self.repeatability(policy)];
        sentences.extend(document.never_retry.then(|| "Nothing is retried, because never_retry is set.".to_owned()));
        let body = document.bodies.iter().enumerate().find(|(_, section)| section.matches(view));
        sentences.extend(body.map(|(number, section)| {
            format!("Its response body is read by bodies[{number}] ({section}): {}.", describe_bodies(section))
        }));
        let of = format!("{} {}", self.request.method(), self.request.uri());
        let settings = Description { of: "Settings in force".to_owned(), sentences: settings(policy, &course) };
        vec![Description { of, sentences }, describe(policy, &course), settings]
    }

    fn repeatability(&self, policy: &Policy) -> String {
        let method = self.request.method();
        match (policy.repeatable, is_repeatable(method, &HeaderMap::new())) {
            (Some(true), _) => "The request may be repeated: the policy declares it.".to_owned(),
            (Some(false), _) => "The request must not be repeated: the policy declares it.".to_owned(),
            (None, true) => format!("The request may be repeated: it is a {method}."),
            (None, false) => {
                format!("The request must not be repeated without an idempotency key: it is a {method}.")
            }
        }
    }
}

/// Lists each setting of a policy, with its line if the file sets it.
fn settings(policy: &Policy, course: &Course) -> Vec<String> {
    let limits = policy.limits();
    let none = || "none".to_owned();
    let set = |key: &str| {
        let seen = policy.seen.iter().find(|seen| seen.key == key);
        match seen.and_then(|seen| seen.line) {
            Some(line) => format!(" (line {line})"),
            None => String::new(),
        }
    };
    let attempts = match limits.max_attempts {
        u32::MAX => none(),
        attempts => attempts.to_string(),
    };
    let guards: Vec<_> = policy.guards.iter().map(|guard| guard.name.clone()).collect();
    [
        ("max_attempts", attempts),
        ("max_elapsed", limits.max_elapsed.map_or_else(none, text::brief)),
        ("max_server_delay", text::brief(limits.max_server_delay)),
        ("attempt_timeout", policy.attempt_timeout.map_or_else(none, text::brief)),
        ("delays", if course.bands().is_empty() { none() } else { words::delays(course) }),
        ("repeatable", policy.repeatable.map_or_else(|| "by method and key".to_owned(), |own| own.to_string())),
        ("budget", policy.budget.clone().unwrap_or_else(|| "the default of the protocol".to_owned())),
        ("guards", if guards.is_empty() { none() } else { words::list(&guards) }),
        ("endpoints", policy.endpoints.clone().unwrap_or_else(none)),
    ]
    .into_iter()
    .chain(hints(policy))
    .map(|(key, value)| format!("{key}: {value}{}", set(key)))
    .collect()
}

/// Returns a verdict as the file has it.
fn on(code: &str, verdict: Verdict) -> String {
    let word = match verdict {
        Verdict::Permanent => "return",
        Verdict::NotProcessed(_) => "not-processed",
        verdict if verdict.is_pending() => "pending",
        _ => "retry",
    };
    format!("{code} {word}")
}

/// Returns the settings of verdicts and of server hints that the file has.
fn hints(policy: &Policy) -> impl Iterator<Item = (&'static str, String)> {
    let delays: Vec<_> = policy.delay_headers.iter().map(ToString::to_string).collect();
    let quotas: Vec<_> = policy.quota_headers.iter().map(|[remaining, reset]| format!("{remaining} {reset}")).collect();
    let statuses: Vec<_> = policy.on_status.iter().map(|(status, verdict)| on(status.as_str(), *verdict)).collect();
    let codes: Vec<_> = policy.on_code.iter().map(|(code, verdict)| on(code, *verdict)).collect();
    let lists = [("on_status", statuses), ("on_code", codes), ("delay_headers", delays), ("quota_headers", quotas)];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty()).map(|(key, names)| (key, words::list(&names)));
    policy.rate_limit.map(|read| ("rate_limit", read.to_string())).into_iter().chain(lists)
}
