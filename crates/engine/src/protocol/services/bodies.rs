//! Rules for the bodies of further services.

use std::time::Duration;

use reattempt_core::{Classification, Failure, FailureKind, ServerHint, Verdict};
use reattempt_http::json_any;

use super::json_text;
use crate::call::outcome::Outcome;

/// Classifies the errors of Google's JSON APIs, such as Drive, Gmail and Calendar. A rule for a `PeekBodyLayer`.
///
/// | `error.errors[].reason` of a response other than 2xx | verdict |
/// |---|---|
/// | `rateLimitExceeded`, `userRateLimitExceeded`, also behind a 403 | not processed, throttled |
/// | `backendError`, `internalError` | transient |
/// | `dailyLimitExceeded`, `quotaExceeded` | permanent: the quota of a day |
/// | any other | default: by its status |
///
/// Source: [resolve errors of the Drive API](https://developers.google.com/workspace/drive/api/guides/handle-errors).
/// That the last row is permanent is our choice.
pub fn google(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, body) = (outcome.status()?, outcome.body()?);
    if status.is_success() {
        return None;
    }
    let reason = json_text(body, &["error", "errors", "*", "reason"])?;
    match &*reason {
        "rateLimitExceeded" | "userRateLimitExceeded" => Some(Verdict::throttled().into()),
        "backendError" | "internalError" => Some(Verdict::transient().into()),
        "dailyLimitExceeded" | "quotaExceeded" => Some(Verdict::Permanent.into()),
        _ => None,
    }
}

/// Classifies the throttles of Shopify's GraphQL Admin API, which answers them with 200. A rule for a `PeekBodyLayer`.
///
/// | response | verdict | delay |
/// |---|---|---|
/// | 2xx with an `errors[].extensions.code` of `THROTTLED` | not processed, throttled | `(requestedQueryCost - currentlyAvailable) / restoreRate` seconds of `extensions.cost`, if they are there |
/// | any other | default | |
///
/// Source: [rate limits of Shopify's APIs](https://shopify.dev/docs/api/usage/limits).
pub fn shopify(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, body) = (outcome.status()?, outcome.body()?);
    let is_throttled = || json_any(body, &["errors", "*", "extensions", "code"], &mut |code| code == "THROTTLED");
    (status.is_success() && is_throttled()).then(|| {
        let wait = restored_in(body).map_or(ServerHint::None, ServerHint::After);
        Verdict::throttled().with_hint(wait)
    })
}

/// The longest time that a bucket of Shopify's takes to refill, with room.
const LONGEST_REFILL: f64 = 3600.0;

/// Returns the time until the bucket has enough points for the query.
fn restored_in(body: &[u8]) -> Option<Duration> {
    let number = |path: &[&str]| json_text(body, path)?.parse::<f64>().ok();
    let cost = number(&["extensions", "cost", "requestedQueryCost"])?;
    let available = number(&["extensions", "cost", "throttleStatus", "currentlyAvailable"])?;
    let rate = number(&["extensions", "cost", "throttleStatus", "restoreRate"])?;
    let seconds = (cost - available) / rate;
    let is_sensible = seconds.is_finite() && seconds > 0.0 && rate > 0.0;
    is_sensible.then(|| Duration::from_secs_f64(seconds.min(LONGEST_REFILL)))
}

/// Classifies the errors of Slack's Web API, which answers them with 200. A rule for a `PeekBodyLayer`.
///
/// | `error` of a response with `"ok": false` | verdict |
/// |---|---|
/// | `ratelimited`, `rate_limited` | not processed, throttled |
/// | `fatal_error`, `internal_error` | transient, because a part of the operation may have been done |
/// | `request_timeout` (the body of a POST arrived in part), `service_unavailable` | transient |
/// | any other, behind a 2xx | permanent |
///
/// Source: the errors that all methods share, such as those of
/// [chat.postMessage](https://docs.slack.dev/reference/methods/chat.postMessage#errors).
pub fn slack(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, body) = (outcome.status()?, outcome.body()?);
    if !json_any(body, &["ok"], &mut |ok| ok == "false") {
        return None;
    }
    match json_text(body, &["error"]).as_deref() {
        Some("ratelimited" | "rate_limited") => Some(Verdict::throttled().into()),
        Some("fatal_error" | "internal_error" | "request_timeout" | "service_unavailable") => {
            Some(Verdict::transient().into())
        }
        _ => status.is_success().then(|| Verdict::Permanent.into()),
    }
}

/// Classifies the errors of the Connect protocol's unary calls. A rule for a `PeekBodyLayer`.
///
/// | `code` of a response other than 2xx | verdict |
/// |---|---|
/// | `unavailable` | transient |
/// | `resource_exhausted` | not processed, throttled |
/// | any other code of the protocol | permanent |
/// | none, such as the response of a proxy | default: by its status |
///
/// Source: [the Connect protocol](https://connectrpc.com/docs/protocol/#error-codes). Which codes are retried is our
/// choice.
pub fn connect(outcome: Outcome<'_>) -> Option<Classification> {
    const FINAL: [&str; 14] = [
        "aborted",
        "already_exists",
        "canceled",
        "data_loss",
        "deadline_exceeded",
        "failed_precondition",
        "internal",
        "invalid_argument",
        "not_found",
        "out_of_range",
        "permission_denied",
        "unauthenticated",
        "unimplemented",
        "unknown",
    ];
    let (status, body) = (outcome.status()?, outcome.body()?);
    if status.is_success() {
        return None;
    }
    match &*json_text(body, &["code"])? {
        "unavailable" => Some(Verdict::transient().into()),
        "resource_exhausted" => Some(Verdict::throttled().into()),
        code => FINAL.contains(&code).then(|| Verdict::Permanent.into()),
    }
}

/// Classifies the lock timeouts of Stripe's API. A rule for a `PeekBodyLayer`.
///
/// | response | verdict |
/// |---|---|
/// | 429 with an `error.code` of `lock_timeout` | not processed, but not throttled: another request used the same object |
/// | any other | default |
///
/// Source: [rate limits of Stripe's API](https://docs.stripe.com/rate-limits#object-lock-timeouts). Stripe's idempotency
/// keys and `stripe-should-retry` need no body.
pub fn stripe(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, body) = (outcome.status()?, outcome.body()?);
    let is_locked = || json_any(body, &["error", "code"], &mut |code| code == "lock_timeout");
    let verdict = Verdict::NotProcessed(Failure::new(FailureKind::Other));
    (status == 429 && is_locked()).then(|| verdict.into())
}

/// Classifies the responses to bulk requests of Elasticsearch and OpenSearch of which nothing was done. A rule for a
/// `PeekBodyLayer`.
///
/// | response | verdict |
/// |---|---|
/// | 2xx with `"errors": true`, in which the `status` of every item is 429 | not processed, throttled |
/// | any other, such as one with some refused items | default |
///
/// Refused items beside others that were done are the caller's to send again.
///
/// Source: the [bulk
/// API](https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk), and
/// [elasticsearch-java#478](https://github.com/elastic/elasticsearch-java/issues/478).
pub fn bulk_all_rejected(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, body) = (outcome.status()?, outcome.body()?);
    if !status.is_success() || !json_any(body, &["errors"], &mut |errors| errors == "true") {
        return None;
    }
    let mut refused = 0_usize;
    let is_other_there = json_any(body, &["items", "*", "*", "status"], &mut |status| {
        refused += 1;
        status != "429"
    });
    (refused > 0 && !is_other_there).then(|| Verdict::throttled().into())
}
