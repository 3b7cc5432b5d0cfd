//! Tests of the profiles that classify a service's failures: each rule of the service, and hostile header values.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use reattempt::classify::{self, Classification, Outcome, ProfileClassifier, ServerHint};
use reattempt::profile::Profile;
use reattempt::schedule::{FailureKind, SharedSchedule};
use reattempt::{Http, ReplayBody, Report, RetryBudget, RetryLayer, RetryPolicy, StopReason, Verdict, profile};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::profiles::support::{bounds, ms, secs};

/// 2026-11-27T00:00:00Z.
const NOW: &str = "Fri, 27 Nov 2026 00:00:00 GMT";
const NOW_UNIX: u64 = 1_795_737_600;

type Headers<'a> = &'a [(&'static str, &'a str)];

fn header_map(headers: Headers<'_>) -> HeaderMap {
    let pairs = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    let mut map = HeaderMap::new();
    pairs.for_each(|(name, value): (_, HeaderValue)| _ = map.append(name, value));
    map
}

fn classified(classifier: ProfileClassifier, status: u16, headers: Headers<'_>) -> Option<Classification> {
    classifier(Outcome::of_response(StatusCode::from_u16(status).unwrap(), &header_map(headers)))
}

/// Returns the hint of a refusal by GitHub's rate limit; `None` if it is none.
fn limited(status: u16, headers: Headers<'_>) -> Option<ServerHint> {
    let classification = classified(classify::github, status, headers)?;
    let Verdict::NotProcessed(failure) = classification.verdict else { panic!("{classification:?}") };
    assert_eq!((failure.kind(), failure.code()), (FailureKind::Throttled, Some(status)));
    Some(classification.hint)
}

fn after(seconds: u64) -> Option<ServerHint> {
    Some(ServerHint::After(secs(seconds)))
}

const REMAINING: &str = "x-ratelimit-remaining";
const RESET: &str = "x-ratelimit-reset";

#[test]
fn github_limit_is_429_or_marked_403() {
    for status in [403, 429] {
        assert_eq!(limited(status, &[("retry-after", "7")]), after(7));
        let reset = (NOW_UNIX + 42).to_string();
        assert_eq!(limited(status, &[("date", NOW), (REMAINING, "0"), (RESET, &reset)]), after(42));
        assert_eq!(limited(status, &[(REMAINING, "0")]), Some(ServerHint::None), "without a reset");
    }
    assert_eq!(limited(429, &[]), Some(ServerHint::None));
    // A missing permission.
    assert_eq!(limited(403, &[]), None);
    assert_eq!(limited(403, &[("date", NOW), (REMAINING, "41"), (RESET, "1795737642")]), None);
    for status in [200, 400, 401, 404, 408, 500, 503] {
        assert_eq!(limited(status, &[("retry-after", "7"), (REMAINING, "0")]), None, "{status}");
    }
    assert_eq!(classify::github(Outcome::of_error(&std::fmt::Error)), None);
}

/// GitHub states both delays as a minimum.
#[test]
fn github_longer_of_two_delays_counts() {
    let reset = (NOW_UNIX + 42).to_string();
    let both = |retry_after| [("date", NOW), ("retry-after", retry_after), (REMAINING, "0"), (RESET, &reset)];
    assert_eq!(limited(403, &both("7")), after(42));
    assert_eq!(limited(403, &both("50")), after(50));
    let with_calls_left = [("date", NOW), ("retry-after", "7"), (REMAINING, "3"), (RESET, &reset)];
    assert_eq!(limited(403, &with_calls_left), after(7), "the quota is not exhausted");
}

#[test]
fn github_hostile_values_never_shorten() {
    let most = u64::MAX.to_string();
    for unreadable in ["", "-1", "soon", "1e9", "0x10", "\u{a0}5", "1 week", ";;;", ",", "86401"] {
        let header = HeaderValue::from_str(unreadable).unwrap_or_else(|_| HeaderValue::from_bytes(b"\xa05").unwrap());
        let mut headers = header_map(&[("date", NOW), (REMAINING, "0")]);
        headers.append("x-ratelimit-reset", header);
        let outcome = Outcome::of_response(StatusCode::FORBIDDEN, &headers);
        let hint = classify::github(outcome).unwrap().hint;
        assert_eq!(hint, ServerHint::None, "{unreadable:?}: the schedule's minute");
    }
    // A reset in the past, as after a response that was on its way for long, leaves the minute of the schedule.
    let past = (NOW_UNIX - 5).to_string();
    assert_eq!(limited(429, &[("date", NOW), (REMAINING, "0"), (RESET, &past)]), after(0));
    // A number that is no date of this century is a delay.
    assert_eq!(limited(429, &[("date", NOW), (REMAINING, "0"), (RESET, "90")]), after(90));
    // The date may be in milliseconds.
    let in_milliseconds = format!("{}000", NOW_UNIX + 42);
    assert_eq!(limited(429, &[("date", NOW), (REMAINING, "0"), (RESET, &in_milliseconds)]), after(42));
    // Beyond any date, it is absurd, which leaves the minute of the schedule.
    for absurd in [&most, "99999999999999999999999999"] {
        let hint = limited(429, &[("date", NOW), (REMAINING, "0"), (RESET, absurd)]);
        assert_eq!(hint, Some(ServerHint::None), "{absurd}");
    }
    // Many values: the longest counts.
    let several = [("date", NOW), ("retry-after", "1"), ("retry-after", "9, 3"), ("retry-after", "x")];
    assert_eq!(limited(429, &several), after(9));
    assert_eq!(limited(403, &[("retry-after", "?")]), Some(ServerHint::None));
    assert_eq!(limited(403, &[(REMAINING, "00")]), None);
    assert_eq!(limited(403, &[(REMAINING, " 0 ")]), Some(ServerHint::None));
}

#[test]
fn kubernetes_obeys_retry_after_alone() {
    let verdict = |status, headers: Headers<'_>| classified(classify::kubernetes, status, headers).map(|it| it.verdict);
    assert_eq!(verdict(429, &[]), Some(Verdict::Permanent), "an eviction that a budget forbids");
    assert_eq!(verdict(500, &[]), Some(Verdict::Permanent), "an internal error");
    assert_eq!(verdict(429, &[("retry-after", "1")]), None, "by the table");
    for status in 500..=511 {
        let Some(Verdict::Transient(failure)) = verdict(status, &[("retry-after", "1")]) else { panic!("{status}") };
        assert_eq!((failure.kind(), failure.code()), (FailureKind::Server, Some(status)));
    }
    for status in [400, 404, 409, 502, 503, 504] {
        assert_eq!(verdict(status, &[]), None, "{status}");
    }
    assert_eq!(verdict(409, &[("retry-after", "1")]), None);
    for unreadable in ["", "-1", "later", "1 week"] {
        assert_eq!(verdict(500, &[("retry-after", unreadable)]), Some(Verdict::Permanent), "{unreadable:?}");
    }
    assert_eq!(classify::kubernetes(Outcome::of_error(&std::fmt::Error)), None);
}

#[test]
fn openai_adds_conflicts_and_every_5xx() {
    let verdict = |status| classified(classify::openai, status, &[]).map(|it| it.verdict);
    for status in (500..=511).chain([409, 599]) {
        let Some(Verdict::Transient(failure)) = verdict(status) else { panic!("{status}") };
        assert_eq!(failure.code(), Some(status));
    }
    for status in [400, 401, 404, 408, 422, 429] {
        assert_eq!(verdict(status), None, "{status}");
    }
    assert_eq!(classify::openai(Outcome::of_error(&std::fmt::Error)), None);
}

#[test]
fn github_minute_doubles_after_rate_limits() {
    let profile = profile::github();
    let limits = (profile.max_attempts, profile.max_elapsed, profile.max_server_delay);
    assert_eq!(limits, (3, Some(secs(300)), secs(60)));
    // The helper's failures are of a server.
    let expected = [100, 200, 400, 800, 1600, 3200, 5000, 5000].map(|most| (Duration::ZERO, ms(most)));
    assert_eq!(bounds(&profile.schedule, 8), expected);
}

/// A server that responds with these heads in turn and then with 200, and records the times.
#[derive(Clone, Default)]
struct Server {
    heads: Arc<Mutex<VecDeque<(u16, HeaderMap)>>>,
    called: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    fn responding(heads: &[(u16, Headers<'_>)]) -> Self {
        let heads = heads.iter().map(|(status, headers)| (*status, header_map(headers)));
        Self { heads: Arc::new(Mutex::new(heads.collect())), ..Self::default() }
    }

    fn answer(&self) -> Response<Full<Bytes>> {
        self.called.lock().unwrap().push(Instant::now());
        let (status, headers) = self.heads.lock().unwrap().pop_front().unwrap_or((200, HeaderMap::new()));
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        *response.headers_mut() = headers;
        response
    }

    /// Returns the delays between the calls so far, in seconds.
    fn delays(&self) -> Vec<f64> {
        let called = self.called.lock().unwrap();
        called.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }
}

type Policy = RetryPolicy<Http, SharedSchedule>;

fn policy(profile: Profile<SharedSchedule>) -> Policy {
    RetryPolicy::http().profile(profile)
}

/// Makes one call, and returns the status, the delays in seconds, and the stop reason of a failure.
async fn call(policy: Policy, method: Method, heads: &[(u16, Headers<'_>)]) -> (u16, Vec<f64>, Option<StopReason>) {
    let server = Server::responding(heads);
    let inner = server.clone();
    let client = RetryLayer::new(policy).layer(service_fn(move |_: Request<ReplayBody<Full<Bytes>>>| {
        let response = inner.answer();
        async move { Ok::<_, Infallible>(response) }
    }));
    let request = Request::builder().method(method).uri("http://api.example/").body(Full::from("{}")).unwrap();
    let response = client.oneshot(request).await.unwrap();
    let reason = Report::of(&response).map(Report::stop_reason);
    (response.status().as_u16(), server.delays(), reason)
}

#[track_caller]
fn assert_within(delays: &[f64], expected: &[(f64, f64)]) {
    assert_eq!(delays.len(), expected.len(), "{delays:?}");
    for (delay, (least, most)) in delays.iter().zip(expected) {
        // The paused clock counts milliseconds.
        assert!((*least..=most + 0.001).contains(delay), "{delays:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn github_call_waits_as_it_is_told() {
    let github = || policy(profile::github());
    // Not even a POST was processed.
    let secondary: Headers<'_> = &[("retry-after", "7")];
    let (status, delays, _) = call(github(), Method::POST, &[(403, secondary), (429, &[])]).await;
    assert_eq!(status, 200);
    // The first delay is the server's, so the schedule's own minute comes after the second refusal, doubled.
    assert_within(&delays, &[(7.0, 7.7), (120.0, 126.0)]);

    let (status, delays, _) = call(github(), Method::POST, &[(429, &[])]).await;
    assert_eq!(status, 200);
    assert_within(&delays, &[(60.0, 66.0)]);

    let reset = (NOW_UNIX + 30).to_string();
    let primary: Headers<'_> = &[("date", NOW), (REMAINING, "0"), (RESET, &reset)];
    let (status, delays, _) = call(github(), Method::GET, &[(403, primary)]).await;
    assert_eq!(status, 200);
    assert_within(&delays, &[(30.0, 33.0)]);

    // A reset at once, and one that was a while ago, leave the minute.
    let past: Headers<'_> = &[("date", NOW), (REMAINING, "0"), (RESET, "1795737600")];
    let (_, delays, _) = call(github(), Method::GET, &[(429, past)]).await;
    assert_within(&delays, &[(60.0, 66.0)]);
}

#[tokio::test(start_paused = true)]
async fn github_call_does_not_wait_an_hour() {
    let reset = (NOW_UNIX + 3000).to_string();
    let primary: Headers<'_> = &[("date", NOW), (REMAINING, "0"), (RESET, &reset)];
    let (status, delays, reason) = call(policy(profile::github()), Method::GET, &[(403, primary)]).await;
    assert_eq!((status, delays.len(), reason), (403, 0, Some(StopReason::ServerDelayTooLong)));

    let hour = secs(3600);
    let patient = policy(profile::github()).max_server_delay(hour).max_elapsed(2 * hour);
    let (status, delays, _) = call(patient, Method::GET, &[(403, primary)]).await;
    assert_eq!(status, 200);
    assert_within(&delays, &[(3000.0, 3300.0)]);
}

#[tokio::test(start_paused = true)]
async fn github_forbidden_call_is_not_repeated() {
    let (status, delays, _) = call(policy(profile::github()), Method::GET, &[(403, &[(REMAINING, "41")])]).await;
    assert_eq!((status, delays.len()), (403, 0));
}

#[tokio::test(start_paused = true)]
async fn kubernetes_call_waits_as_it_is_told() {
    let kubernetes = || policy(profile::kubernetes().shared()).budget(RetryBudget::unlimited());
    let throttled: Headers<'_> = &[("retry-after", "2")];
    let (status, delays, _) = call(kubernetes(), Method::POST, &[(429, throttled)]).await;
    assert_eq!(status, 200);
    assert_within(&delays, &[(2.0, 2.2)]);

    let (status, delays, _) = call(kubernetes(), Method::PUT, &[(500, throttled), (503, &[])]).await;
    assert_eq!(status, 200);
    assert_within(&delays, &[(2.0, 2.2), (1.0, 3.0)]);

    for (status, method) in [(429, Method::POST), (500, Method::GET)] {
        let (last, delays, reason) = call(kubernetes(), method, &[(status, &[])]).await;
        assert_eq!((last, delays.len()), (status, 0));
        assert_eq!(reason, None, "a permanent failure has no report");
    }
    // A POST may have been processed.
    let (status, delays, _) = call(kubernetes(), Method::POST, &[(500, throttled)]).await;
    assert_eq!((status, delays.len()), (500, 0));

    let unavailable: (u16, Headers<'_>) = (503, &[]);
    let (status, delays, _) = call(kubernetes(), Method::GET, &[unavailable; 20]).await;
    assert_eq!((status, delays.len()), (503, 10), "as client-go");
}

#[tokio::test(start_paused = true)]
async fn openai_call_follows_its_clients() {
    let openai = || policy(profile::openai().shared());
    let (status, delays, _) = call(openai(), Method::GET, &[(409, &[]), (501, &[])]).await;
    assert_eq!(status, 200);
    assert_within(&delays, &[(0.375, 0.5), (0.75, 1.0)]);

    let hinted: Headers<'_> = &[("retry-after-ms", "1500"), ("retry-after", "9")];
    let (status, delays, _) = call(openai(), Method::POST, &[(429, hinted)]).await;
    assert_eq!(status, 200, "a refused POST may be repeated");
    assert_within(&delays, &[(1.5, 1.65)]);

    let (status, delays, _) = call(openai(), Method::POST, &[(500, &[])]).await;
    assert_eq!((status, delays.len()), (500, 0), "another may not");

    let (status, delays, _) = call(openai(), Method::GET, &[(500, &[("x-should-retry", "false")])]).await;
    assert_eq!((status, delays.len()), (500, 0));
    let (status, delays, _) = call(openai(), Method::GET, &[(400, &[("x-should-retry", "true")])]).await;
    assert_eq!((status, delays.len()), (200, 1));

    for (seconds, retries) in [("120", 1), ("121", 0)] {
        let (_, delays, _) = call(openai(), Method::GET, &[(429, &[("retry-after", seconds)])]).await;
        assert_eq!(delays.len(), retries, "{seconds}");
    }
}

/// A policy's own settings precede the profile's classifier, whether they are set before or after.
#[tokio::test(start_paused = true)]
async fn own_verdicts_precede_a_profiles() {
    let internal: (u16, Headers<'_>) = (500, &[]);
    let own = |outcome: Outcome<'_>| (outcome.status()? == 500).then_some(Verdict::not_processed());
    let before = policy(profile::standard().shared()).classify(own).profile(profile::kubernetes().shared());
    let after = policy(profile::kubernetes().shared()).on_status(internal.0.try_into().unwrap(), Verdict::transient());
    for policy in [before, after] {
        let (status, delays, _) = call(policy, Method::GET, &[internal]).await;
        assert_eq!((status, delays.len()), (200, 1));
    }
    // The last profile counts, with its classifier or without one.
    let replaced = policy(profile::kubernetes().shared()).profile(profile::standard().shared());
    let (status, delays, _) = call(replaced, Method::GET, &[internal]).await;
    assert_eq!((status, delays.len()), (200, 1));
    let limits = policy(profile::openai().shared()).max_server_delay(secs(7)).profile(profile::openai().shared());
    assert_eq!(limits.limits().max_server_delay, secs(7));
}

#[test]
fn unused_classifier_is_reported() {
    let warnings = RetryPolicy::grpc().profile(profile::github()).validate();
    let text = "`classifier` is for HTTP, and has no effect here (recommended: `None` in the profile)";
    assert!(warnings.iter().any(|warning| warning.to_string() == text), "{warnings:?}");
    assert_eq!(RetryPolicy::http().profile(profile::github()).validate(), []);
}
