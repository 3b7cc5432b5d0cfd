//! Rules on whole bodies: those of well-known services row by row, and their order among the other classifiers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use reattempt::classify::{self, Classification, Outcome, ServerHint};
use reattempt::report::ReportSlot;
use reattempt::schedule::{Failure, FailureKind};
use reattempt::{CallOptions, Http, PeekBodyLayer, RetryLayer, RetryPolicy, Verdict, profile};
use reattempt_control::RetryBudget;
use tower::{Layer, ServiceExt};

use super::support::{Origin, Scripted, Step, body, get, request, response, retries};

type Rule = fn(Outcome<'_>) -> Option<Classification>;

const LATER: Option<Verdict> = Some(Verdict::transient());
const SLOWER: Option<Verdict> = Some(Verdict::throttled());
const FINAL: Option<Verdict> = Some(Verdict::Permanent);

fn judge(
    rule: Rule,
    method: &Method,
    status: u16,
    header: Option<(&'static str, &str)>,
    body: &str,
) -> Option<Classification> {
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header {
        headers.insert(HeaderName::from_static(name), value.parse().unwrap());
    }
    let outcome = Outcome::of_response(StatusCode::from_u16(status).unwrap(), &headers);
    rule(outcome.with_method(method).with_body(body.as_bytes()))
}

/// Asserts the verdict on each body, and that the rule has none without a body.
fn assert_rows(rule: Rule, rows: &[(u16, &str, Option<Verdict>)]) {
    for (status, body, expected) in rows {
        let verdict = judge(rule, &Method::POST, *status, None, body).map(|found| found.verdict);
        assert_eq!(verdict, *expected, "{status} {body}");
    }
    for (status, ..) in rows {
        let headers = HeaderMap::new();
        let head = rule(Outcome::of_response(StatusCode::from_u16(*status).unwrap(), &headers));
        assert_eq!(head, None, "{status}");
    }
}

// B-6
#[test]
fn aws_json_rows() {
    let dynamo = |code: &str| format!(r##"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"m"}}"##);
    assert_rows(
        classify::aws_json,
        &[
            (400, &dynamo("ProvisionedThroughputExceededException"), SLOWER),
            (400, &dynamo("ValidationException"), None),
            (500, &dynamo("InternalServerError"), LATER),
            (400, r#"{"code":"ThrottlingException:http://x.example/"}"#, SLOWER),
            (400, r#"{"__type":"RequestTimeoutException"}"#, LATER),
            (200, &dynamo("ThrottlingException"), None),
            (400, "not JSON", None),
        ],
    );
    let header = Some(("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/coral/"));
    let verdict = judge(classify::aws_json, &Method::POST, 400, header, "{}").map(|found| found.verdict);
    assert_eq!(verdict, SLOWER);
}

// B-6, field 18
#[test]
fn aws_xml_rows() {
    assert_rows(
        classify::aws_xml,
        &[
            (200, "   \n<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>", LATER),
            (200, "<Error><Code>SlowDown</Code></Error>", SLOWER),
            (200, "<Error><Code>NoSuchUpload</Code></Error>", FINAL),
            (200, "<CompleteMultipartUploadResult><Key>k</Key></CompleteMultipartUploadResult>", None),
            (403, "<Error><Code>RequestTimeout</Code></Error>", LATER),
            (403, "<Error><Code>AccessDenied</Code></Error>", None),
            (400, "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code></Error></ErrorResponse>", SLOWER),
        ],
    );
    for method in [Method::GET, Method::HEAD] {
        let stored = judge(classify::aws_xml, &method, 200, None, "<Error><Code>InternalError</Code></Error>");
        assert_eq!(stored, None, "a stored object");
    }
}

// B-6
#[test]
fn google_rows() {
    let reason =
        |reason: &str| format!(r#"{{"error":{{"code":403,"errors":[{{"domain":"d","reason":"{reason}"}}]}}}}"#);
    assert_rows(
        classify::google,
        &[
            (403, &reason("rateLimitExceeded"), SLOWER),
            (403, &reason("userRateLimitExceeded"), SLOWER),
            (500, &reason("backendError"), LATER),
            (500, &reason("internalError"), LATER),
            (403, &reason("dailyLimitExceeded"), FINAL),
            (403, &reason("quotaExceeded"), FINAL),
            (403, &reason("forbidden"), None),
            (200, &reason("rateLimitExceeded"), None),
        ],
    );
}

// B-6
#[test]
fn openai_rows() {
    let error = |kind: &str, code: &str| format!(r#"{{"error":{{"message":"m","type":"{kind}","code":{code}}}}}"#);
    assert_rows(
        classify::openai,
        &[
            (429, &error("insufficient_quota", "null"), FINAL),
            (429, &error("requests", "\"organization_spend_limit_exceeded\""), FINAL),
            (429, &error("requests", "\"rate_limit_exceeded\""), None),
            (400, &error("insufficient_quota", "null"), None),
        ],
    );
    let locked = judge(classify::openai, &Method::POST, 409, None, "{}").unwrap().verdict;
    assert_eq!(locked.failure().map(|failure| failure.kind()), Some(FailureKind::Server));
}

// B-6, B-7
#[test]
fn github_rows() {
    let secondary = r#"{"message":"You have exceeded a secondary rate limit. Please wait."}"#;
    let documented =
        r#"{"documentation_url":"https://docs.github.com/rest/overview/rate-limits#about-secondary-rate-limits"}"#;
    let minute = ServerHint::After(Duration::from_secs(60));
    for body in [secondary, documented] {
        for status in [403, 429] {
            let found = judge(classify::github, &Method::POST, status, None, body).expect("limited");
            assert!(matches!(found.verdict, Verdict::NotProcessed(_)));
            assert_eq!(found.hint, minute);
        }
    }
    let after = judge(classify::github, &Method::POST, 403, Some(("retry-after", "7")), secondary).unwrap();
    assert_eq!(after.hint, ServerHint::After(Duration::from_secs(7)));
    assert_rows(classify::github, &[(403, r#"{"message":"Must have admin rights"}"#, None), (404, secondary, None)]);
    // GraphQL's limits, behind a 200
    let spent = r#"{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}"#;
    let nested = r#"{"errors":[{"message":"You have exceeded a secondary rate limit."}]}"#;
    for (body, hint) in [(spent, ServerHint::None), (nested, minute)] {
        let found = judge(classify::github, &Method::POST, 200, None, body).expect("limited");
        assert!(matches!(found.verdict, Verdict::NotProcessed(_)));
        assert_eq!(found.hint, hint, "{body}");
        assert!(judge(classify::github, &Method::GET, 200, None, body).is_none(), "an object may look like it: {body}");
    }
    let fine = r#"{"data":{},"errors":[{"type":"NOT_FOUND"}]}"#;
    assert!(judge(classify::github, &Method::POST, 200, None, fine).is_none());
    assert!(judge(classify::github, &Method::POST, 201, None, secondary).is_none(), "the message may be a commit's");
}

// B-6, B-7
#[test]
fn shopify_rows() {
    let throttled = r#"{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":
        {"requestedQueryCost":752,"throttleStatus":{"maximumAvailable":2000.0,"currentlyAvailable":652,"restoreRate":100.0}}}}"#;
    let found = judge(classify::shopify, &Method::POST, 200, None, throttled).unwrap();
    assert_eq!((Some(found.verdict), found.hint), (SLOWER, ServerHint::After(Duration::from_secs(1))));
    let bare = r#"{"errors":[{"extensions":{"code":"THROTTLED"}}]}"#;
    assert_eq!(judge(classify::shopify, &Method::POST, 200, None, bare).unwrap().hint, ServerHint::None);
    for (cost, rate) in [("1e400", "1"), ("1e300", "1"), ("752", "0"), ("-5", "100"), ("\"x\"", "100")] {
        let odd = throttled.replace("752", cost).replace("100.0", rate);
        if let Some(found) = judge(classify::shopify, &Method::POST, 200, None, &odd) {
            assert!(
                found.hint == ServerHint::None || found.hint == ServerHint::After(Duration::from_secs(3600)),
                "{odd}"
            );
        }
    }
    assert_rows(
        classify::shopify,
        &[
            (200, r#"{"errors":[{"extensions":{"code":"ACCESS_DENIED"}}]}"#, None),
            (200, r#"{"data":{}}"#, None),
            (400, bare, None),
        ],
    );
}

// B-6
#[test]
fn slack_rows() {
    let error = |error: &str| format!(r#"{{"ok":false,"error":"{error}"}}"#);
    assert_rows(
        classify::slack,
        &[
            (200, &error("ratelimited"), SLOWER),
            (200, &error("internal_error"), LATER),
            (200, &error("fatal_error"), LATER),
            (200, &error("service_unavailable"), LATER),
            (200, &error("request_timeout"), LATER),
            (200, &error("channel_not_found"), FINAL),
            (400, &error("channel_not_found"), None),
            (200, r#"{"ok":true,"error":"internal_error"}"#, None),
            (200, "ok", None),
        ],
    );
}

// B-6
#[test]
fn connect_rows() {
    let code = |code: &str| format!(r#"{{"code":"{code}","message":"m"}}"#);
    assert_rows(
        classify::connect,
        &[
            (503, &code("unavailable"), LATER),
            (429, &code("resource_exhausted"), SLOWER),
            (500, &code("internal"), FINAL),
            (504, &code("deadline_exceeded"), FINAL),
            (503, &code("something"), None),
            (503, "<html>", None),
            (200, &code("unavailable"), None),
        ],
    );
}

// B-6
#[test]
fn stripe_rows() {
    let locked = Some(Verdict::NotProcessed(Failure::new(FailureKind::Other)));
    assert_rows(
        classify::stripe,
        &[
            (429, r#"{"error":{"code":"lock_timeout","type":"invalid_request_error"}}"#, locked),
            (429, r#"{"error":{"code":"rate_limit"}}"#, None),
            (400, r#"{"error":{"code":"lock_timeout"}}"#, None),
        ],
    );
}

// B-6
#[test]
fn bulk_rows() {
    let items = |first: u16, second: u16| {
        format!(
            r#"{{"took":1,"errors":true,"items":[{{"index":{{"status":{first}}}}},{{"create":{{"status":{second}}}}}]}}"#
        )
    };
    assert_rows(
        classify::bulk_all_rejected,
        &[
            (200, &items(429, 429), SLOWER),
            (200, &items(429, 201), None),
            (200, &items(429, 429).replace("true", "false"), None),
            (200, r#"{"errors":true,"items":[]}"#, None),
            (429, &items(429, 429), None),
        ],
    );
}

fn answer(status: u16, text: &str) -> http::Response<Scripted> {
    let data = Bytes::from(text.to_owned());
    response(status, body(Some(data.len() as u64), [Step::Data(data)]))
}

/// DynamoDB's throttle is retried, also for a POST, and its other errors are not.
// B-6, B-14, field 18
#[tokio::test(start_paused = true)]
async fn throttle_behind_400_is_retried() {
    for (code, requests) in [("ProvisionedThroughputExceededException", 2), ("ValidationException", 1)] {
        let origin = Origin::new(move |arrival| match arrival {
            1 => answer(400, &format!(r#"{{"__type":"v#{code}"}}"#)),
            _ => answer(200, "{}"),
        });
        let client = RetryLayer::new(RetryPolicy::http().profile(profile::aws()))
            .layer(PeekBodyLayer::new().classify(classify::aws_json).layer(origin.clone()));
        let response = client.oneshot(request("POST", "http://one.example/")).await.unwrap();
        assert_eq!(origin.count(), requests, "{code} {}", response.status());
    }
}

/// S3 answers 200, sends blanks for five minutes, and then an error. The second answer is the result.
// field 18
#[tokio::test(start_paused = true)]
async fn error_behind_200_and_blanks_is_retried() {
    let origin = Origin::new(|arrival| {
        let blanks = std::iter::repeat_n([Step::Data(" ".into()), Step::Wait(Duration::from_secs(1))], 300).flatten();
        let end = match arrival {
            1 => "<Error><Code>InternalError</Code></Error>",
            _ => "<CompleteMultipartUploadResult/>",
        };
        response(200, body(None, blanks.chain([Step::Data(end.into())])))
    });
    let peek = PeekBodyLayer::new().within(Duration::from_secs(600)).classify(classify::aws_xml);
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).max_elapsed(Duration::from_secs(3600));
    let client = RetryLayer::new(policy).layer(peek.layer(origin.clone()));
    let mut request = request("POST", "http://one.example/object?uploadId=1");
    request.extensions_mut().insert(CallOptions::new().repeatable(true));
    client.oneshot(request).await.unwrap();
    assert_eq!(origin.count(), 2);
}

/// The call's classifier and `Http`'s precede the rule, and the rule `on_status`, the profile and the table. A rule may
/// make a success of a failure.
// B-7
#[tokio::test(start_paused = true)]
async fn rule_is_between_classifiers_and_status() {
    let count = async |status: u16, http: Http, options: CallOptions, verdict: Verdict| {
        let origin = Origin::new(move |_| answer(status, "x"));
        let rule = move |outcome: Outcome<'_>| (outcome.body() == Some(b"x")).then_some(verdict);
        let policy = RetryPolicy::with(http).budget(RetryBudget::unlimited());
        let client = RetryLayer::new(policy).layer(PeekBodyLayer::new().classify(rule).layer(origin.clone()));
        let mut request = get();
        request.extensions_mut().insert(options);
        client.oneshot(request).await.unwrap();
        origin.count()
    };
    let (plain, none) = (Http::new, CallOptions::new);
    let by = |verdict: Verdict| move |_: Outcome<'_>| Some(verdict);
    assert_eq!(count(200, plain(), none(), Verdict::transient()).await, 3);
    assert_eq!(count(503, plain(), none(), Verdict::Permanent).await, 1);
    assert_eq!(count(503, plain(), none(), Verdict::Success).await, 1);
    assert_eq!(
        count(
            503,
            plain().on_status(StatusCode::SERVICE_UNAVAILABLE, Verdict::transient()),
            none(),
            Verdict::Permanent
        )
        .await,
        1
    );
    assert_eq!(count(200, plain().classify(by(Verdict::Success)), none(), Verdict::transient()).await, 1);
    assert_eq!(count(200, plain(), none().classify(by(Verdict::Success)), Verdict::transient()).await, 1);
    assert_eq!(count(200, plain().classify(by(Verdict::transient())), none(), Verdict::Success).await, 3);
}

/// The rule's own delay precedes `Retry-After`. Without one, the header holds.
// B-7
#[tokio::test(start_paused = true)]
async fn hint_of_rule_precedes_header() {
    for (hint, secs) in [(ServerHint::After(Duration::from_secs(2)), 2), (ServerHint::None, 7)] {
        let origin = Origin::new(|arrival| {
            let mut response = answer(if arrival == 1 { 429 } else { 200 }, "x");
            response.headers_mut().insert("retry-after", "7".parse().unwrap());
            response
        });
        let rule = move |outcome: Outcome<'_>| (outcome.status()? == 429).then(|| Verdict::throttled().with_hint(hint));
        let slot = ReportSlot::default();
        let mut request = get();
        request.extensions_mut().insert(CallOptions::new().report_to(&slot));
        retries().layer(PeekBodyLayer::new().classify(rule).layer(origin)).oneshot(request).await.unwrap();
        let delay = slot.take().unwrap().attempts()[0].delay.unwrap();
        assert_eq!(delay.as_secs(), secs);
    }
}

/// A rule is not asked about a body that is encoded, longer than the bound, or broken.
// B-6
#[tokio::test(start_paused = true)]
async fn rule_sees_whole_plain_bodies_only() {
    let long = || body(None, vec![Step::Data(vec![b'x'; 40_000].into()); 3]);
    let bodies: [fn() -> http::Response<Scripted>; 2] = [
        || {
            let mut response = answer(200, "x");
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            response
        },
        || response(404, body(Some(2), [Step::Data("x".into()), Step::Break])),
    ];
    let make: Vec<Box<dyn Fn() -> http::Response<Scripted> + Send + Sync>> = bodies
        .into_iter()
        .map(|make| Box::new(make) as _)
        .chain([Box::new(move || response(200, long())) as _])
        .collect();
    for make in make {
        let rule = |_: Outcome<'_>| -> Option<Verdict> { panic!("asked") };
        let origin = Origin::new(move |_| make());
        retries().layer(PeekBodyLayer::new().classify(rule).layer(origin)).oneshot(get()).await.unwrap();
    }
}

/// A body in several frames is judged as a whole, and the first rule with a verdict decides.
// B-6
#[tokio::test(start_paused = true)]
async fn rules_get_all_frames_in_order() {
    let origin = Origin::new(|arrival| {
        let end = if arrival == 1 { "limit" } else { "fine" };
        response(200, body(None, [Step::Data("the ".into()), Step::Data("".into()), Step::Data(end.into())]))
    });
    let layer = PeekBodyLayer::new()
        .classify(|outcome: Outcome<'_>| (outcome.body()? == b"the limit").then(Verdict::throttled))
        .classify(|outcome: Outcome<'_>| (outcome.body()? == b"the limit").then_some(Verdict::Permanent));
    retries().layer(layer.layer(origin.clone())).oneshot(get()).await.unwrap();
    assert_eq!(origin.count(), 2);
}
