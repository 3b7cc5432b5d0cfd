//! Classifiers for the responses of well-known services: by their heads in profiles, by their bodies in a layer that
//! reads these.

mod aws;
#[cfg(feature = "json")]
mod bodies;

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use reattempt_core::{Classification, Failure, FailureKind, ServerHint, Verdict};
use reattempt_http::Hints;
#[cfg(feature = "json")]
use reattempt_http::json_any;

use super::Outcome;

#[cfg(feature = "json")]
pub use aws::aws_json;
pub use aws::aws_xml;
#[cfg(feature = "json")]
pub use bodies::{bulk_all_rejected, connect, google, shopify, slack, stripe};

/// Classifies GitHub's rate-limit responses. Returns `None` for all other outcomes.
///
/// | response | verdict | delay |
/// |---|---|---|
/// | 429 | not processed | the longer of `retry-after` and, with `x-ratelimit-remaining: 0`, the time until `x-ratelimit-reset`; if both are missing, the schedule's delay |
/// | 403 with `retry-after` or `x-ratelimit-remaining: 0` | not processed | the same |
/// | 403 or 429 without `retry-after`, whose body names a secondary rate limit | not processed | at least 60 s |
/// | 2xx to a POST, as GraphQL sends it, with an `errors[].type` of `RATE_LIMITED`, or an `errors[].message` that names a secondary rate limit | not processed | as above |
///
/// The last two rows need the body: they apply where the classifier is also a rule of a `PeekBodyLayer`, with the
/// feature `json`.
///
/// Any other 403 is left to the default rules, which classify it as permanent: the caller lacks a permission. GitHub
/// refuses a request before processing it, so a POST may be sent again.
///
/// Sources: GitHub's [rate limits for the REST
/// API](https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit), and
/// [troubleshooting](https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api) for the minute.
/// The 200 is that of the [limits for the GraphQL
/// API](https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api#exceeding-the-rate-limit),
/// and the `type` that of octokit's
/// [plugin](https://github.com/octokit/plugin-throttling.js/blob/main/src/wrap-request.ts).
/// [`profile::github`](crate::profile::github) contains this classifier and the delay of 60 s. In other layers, use the
/// classifier directly:
///
/// ```
/// use reattempt::Http;
/// use reattempt::classify;
/// use reattempt::hedge::HedgePolicy;
///
/// let policy = HedgePolicy::with(Http::new().classify(classify::github));
/// ```
pub fn github(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, headers) = (outcome.status()?, outcome.headers()?);
    let exhausted = || {
        let mut remaining = headers.get_all("x-ratelimit-remaining").into_iter();
        remaining.any(|value| value.as_bytes().trim_ascii() == b"0")
    };
    let is_graphql = status.is_success() && outcome.method() == Some("POST");
    let names_secondary = |body| match status {
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => is_secondary(body),
        // Not the `message` of a success, which may be that of a commit.
        _ => is_graphql && is_graphql_secondary(body),
    };
    let secondary = outcome.body().is_some_and(names_secondary);
    let limited = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => secondary || headers.contains_key(RETRY_AFTER) || exhausted(),
        _ => is_graphql && (secondary || outcome.body().is_some_and(is_graphql_limited)),
    };
    limited.then(|| {
        let kinds = [Hints::none().retry_after(true), Hints::none().rate_limit(true)];
        let is_untimed = secondary && !headers.contains_key(RETRY_AFTER);
        let of_headers = kinds.into_iter().filter_map(|hints| asked(&hints, headers));
        let longest = of_headers.chain(is_untimed.then_some(SECONDARY)).max();
        let failure = Failure::new(FailureKind::Throttled).with_code(status.as_u16());
        Verdict::NotProcessed(failure).with_hint(longest.map_or(ServerHint::None, ServerHint::After))
    })
}

/// The shortest delay that GitHub asks for after a secondary rate limit.
const SECONDARY: Duration = Duration::from_secs(60);

/// Returns `true` if the body of a failure names a secondary rate limit.
fn is_secondary(body: &[u8]) -> bool {
    is_graphql_secondary(body)
        || has_text(body, &["message"], |message| message.contains(SECONDARY_LIMIT))
        || has_text(body, &["documentation_url"], |url| url.contains("secondary-rate-limits"))
}

/// Returns `true` if an error of GraphQL names a secondary rate limit.
fn is_graphql_secondary(body: &[u8]) -> bool {
    has_text(body, &["errors", "*", "message"], |message| message.contains(SECONDARY_LIMIT))
}

/// Returns `true` if an error of GraphQL reports that the primary rate limit was exceeded.
fn is_graphql_limited(body: &[u8]) -> bool {
    has_text(body, &["errors", "*", "type"], |kind| kind == "RATE_LIMITED")
}

const SECONDARY_LIMIT: &str = "secondary rate limit";

/// Returns `true` if a value at a path of a JSON body is accepted. Without the feature `json`, no body is read.
#[cfg(feature = "json")]
fn has_text(body: &[u8], path: &[&str], accepts: impl Fn(&str) -> bool) -> bool {
    json_any(body, path, &mut |text| accepts(text))
}

#[cfg(not(feature = "json"))]
fn has_text(_: &[u8], _: &[&str], _: impl Fn(&str) -> bool) -> bool {
    false
}

/// Classifies the responses of a Kubernetes API server. Returns `None` for outcomes that are left to the default rules.
///
/// | response | verdict |
/// |---|---|
/// | 429 with `Retry-After` | default: not processed |
/// | 429 without `Retry-After`: an eviction that a disruption budget forbids | permanent |
/// | 5xx with `Retry-After`, such as 500 with the reason `ServerTimeout` | transient |
/// | 500 without `Retry-After`: an internal error | permanent |
/// | 502, 503, 504 without `Retry-After`, from a proxy | default: transient |
///
/// Source: [`with_retry.go`](https://github.com/kubernetes/client-go/blob/master/rest/with_retry.go) of client-go,
/// which retries only 429 and 5xx with `Retry-After`, and the [reasons of the
/// API](https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go). client-go also repeats a
/// POST after a 5xx with `Retry-After`. Here, only a repeatable request is sent again.
///
/// [`profile::kubernetes`](crate::profile::kubernetes) contains this classifier.
pub fn kubernetes(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, headers) = (outcome.status()?, outcome.headers()?);
    let later = asked(&Hints::none().retry_after(true), headers).is_some();
    match (status, later) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::INTERNAL_SERVER_ERROR, false) => Some(Verdict::Permanent.into()),
        (status, true) if status.is_server_error() => Some(transient(status)),
        _ => None,
    }
}

/// Classifies the responses of OpenAI's API. Returns `None` for outcomes that are left to the default rules.
///
/// | response | verdict |
/// |---|---|
/// | 409: a lock timeout | transient |
/// | every 5xx | transient |
/// | 429 whose body names an empty account: an `error.type` or `error.code` of `insufficient_quota`, `credit_balance_exhausted`, `organization_spend_limit_exceeded`, `project_spend_limit_exceeded` or `organization_usage_limit_exceeded` | permanent |
///
/// The last row needs the body: it applies where the classifier is also a rule of a `PeekBodyLayer`, with the feature
/// `json`.
///
/// By default, a 408 is transient, and a request that gets a 429 counts as not processed. Even without a classifier,
/// `retry-after-ms`, `Retry-After` and `x-should-retry` are obeyed ([`Hints`]), as in OpenAI's own clients.
///
/// Source: [`_base_client.py`](https://github.com/openai/openai-python/blob/main/src/openai/_base_client.py) of
/// OpenAI's Python client. That client also repeats every POST whose response was lost. Here, only a repeatable request
/// is sent again. [`profile::openai`](crate::profile::openai) contains this classifier. The names of empty accounts are
/// those of OpenAI's [error codes](https://platform.openai.com/docs/guides/error-codes).
pub fn openai(outcome: Outcome<'_>) -> Option<Classification> {
    let status = outcome.status()?;
    if status == StatusCode::TOO_MANY_REQUESTS && outcome.body().is_some_and(is_account_empty) {
        return Some(Verdict::Permanent.into());
    }
    (status == StatusCode::CONFLICT || status.is_server_error()).then(|| transient(status))
}

/// Returns `true` if the body of a 429 names an empty account, which no retry fills.
fn is_account_empty(body: &[u8]) -> bool {
    const EMPTY: [&str; 5] = [
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    ];
    ["type", "code"].iter().any(|name| has_text(body, &["error", name], |value| EMPTY.contains(&value)))
}

/// Returns the first value at a path.
#[cfg(feature = "json")]
fn json_text(body: &[u8], path: &[&str]) -> Option<String> {
    let mut text = None;
    let keep = &mut |value: &str| {
        text = Some(value.to_owned());
        true
    };
    if json_any(body, path, keep) { text } else { None }
}

fn transient(status: StatusCode) -> Classification {
    Verdict::Transient(Failure::new(FailureKind::Server).with_code(status.as_u16())).into()
}

/// Returns the delay that the headers ask for.
fn asked(hints: &Hints, headers: &HeaderMap) -> Option<Duration> {
    match hints.read(headers, SystemTime::now).hint {
        ServerHint::After(delay) => Some(delay),
        _ => None,
    }
}
