//! Tests of safety: requests that are repeated, and requests that are not.

use http::{Request, StatusCode};
use reattempt::RetryLayer;
use reattempt::classify::Outcome;
use reattempt_core::Verdict;
use tower::{Layer, ServiceExt};

use crate::calls::support::{
    Act, Body, ONE, Policy, Server, With, get, policy, post, request, server_failure, transient,
};

/// Returns the number of attempts of `request` if each has this outcome.
async fn attempts(policy: Policy, request: Request<Body>, act: fn() -> Act) -> usize {
    let server = Server::by(move |_, _| act());
    let _ = RetryLayer::new(policy).layer(server.clone()).oneshot(request).await;
    server.count()
}

fn keyed() -> Request<Body> {
    post().header("idempotency-key", "\"k\"")
}

// trap 24
#[tokio::test(start_paused = true)]
async fn post_is_not_repeated_after_503() {
    let made_up: fn() -> Act = || Act::from(503).header("retry-after", "1");
    assert_eq!(attempts(policy(), post(), made_up).await, 1);
    assert_eq!(attempts(policy(), request("PATCH", ONE, "x"), made_up).await, 1);
    assert_eq!(attempts(policy(), keyed(), made_up).await, 3);
    assert_eq!(attempts(policy(), get(), made_up).await, 3);
}

// trap 24
#[tokio::test(start_paused = true)]
async fn trap_24_no_hint_makes_a_post_repeatable() {
    let insisting: fn() -> Act = || Act::from(503).header("x-should-retry", "true");
    assert_eq!(attempts(policy(), post(), insisting).await, 1);
    let insisting: fn() -> Act = || Act::from(409).header("stripe-should-retry", "true");
    assert_eq!(attempts(policy(), post(), insisting).await, 1);
    assert_eq!(attempts(policy(), keyed(), insisting).await, 3);
}

// trap 24
#[tokio::test(start_paused = true)]
async fn post_refused_before_work_is_repeated() {
    assert_eq!(attempts(policy(), post(), || 429.into()).await, 3);
    assert_eq!(attempts(policy(), post(), || 425.into()).await, 3);
    assert_eq!(attempts(policy(), post(), || Act::from(429).header("retry-after", "1")).await, 3);
}

// trap 24
#[tokio::test(start_paused = true)]
async fn trap_24_a_lost_connection_is_no_proof() {
    let lost: fn() -> Act = || Act::Fail(std::io::ErrorKind::UnexpectedEof);
    assert_eq!(attempts(policy(), post(), lost).await, 1);
    assert_eq!(attempts(policy(), keyed(), lost).await, 3);
}

#[tokio::test(start_paused = true)]
async fn idempotent_methods_alone_are_repeated() {
    for (method, expected) in [
        ("GET", 3),
        ("HEAD", 3),
        ("OPTIONS", 3),
        ("TRACE", 3),
        ("PUT", 3),
        ("DELETE", 3),
        ("POST", 1),
        ("PATCH", 1),
        ("PROPFIND", 1),
    ] {
        assert_eq!(attempts(policy(), request(method, ONE, ""), || 503.into()).await, expected, "{method}");
    }
}

// trap 25
#[tokio::test(start_paused = true)]
async fn trap_25_custom_classifier_keeps_defaults() {
    let policy = policy().protocol(|http| {
        http.classify(|outcome: Outcome<'_>| (outcome.status()? == StatusCode::CONFLICT).then(|| transient(409)))
    });
    assert_eq!(attempts(policy.clone(), get(), || 409.into()).await, 3, "what it adds");
    assert_eq!(attempts(policy.clone(), get(), || 503.into()).await, 3, "what was there");
    assert_eq!(attempts(policy.clone(), post(), || 503.into()).await, 1);
    assert_eq!(attempts(policy.clone(), post(), || 429.into()).await, 3);
    assert_eq!(attempts(policy.clone(), get(), || 404.into()).await, 1);
    let reset: fn() -> Act = || Act::Fail(std::io::ErrorKind::ConnectionReset);
    assert_eq!(attempts(policy, get(), reset).await, 3, "errors are none of its business");
}

// trap 25
#[tokio::test(start_paused = true)]
async fn trap_25_second_classifier_keeps_first() {
    let on = |wanted: u16| move |outcome: Outcome<'_>| (outcome.status()? == wanted).then(|| transient(wanted));
    let policy =
        policy().protocol(|http| http.classify(on(409)).classify(on(404)).on_status(StatusCode::GONE, transient(410)));
    for status in [409, 404, 410, 503] {
        let server = Server::statuses([status]);
        RetryLayer::new(policy.clone()).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(server.count(), 3, "{status}");
    }
}

// trap 25
#[tokio::test(start_paused = true)]
async fn hints_hold_beside_custom_classifier() {
    let policy = policy().protocol(|http| {
        http.classify(|outcome: Outcome<'_>| (outcome.status()? == StatusCode::CONFLICT).then(|| transient(409)))
    });
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(409).header("retry-after", "5"),
        _ => 200.into(),
    });
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert!((5000..=5501).contains(&server.times()[1]));
}

#[tokio::test(start_paused = true)]
async fn a_status_can_be_given_a_verdict() {
    let refused = Verdict::NotProcessed(server_failure(503));
    let lenient = policy().protocol(|http| http.on_status(StatusCode::SERVICE_UNAVAILABLE, refused));
    assert_eq!(attempts(lenient, post(), || 503.into()).await, 3);
    let strict = policy().protocol(|http| http.on_status(StatusCode::SERVICE_UNAVAILABLE, Verdict::Permanent));
    assert_eq!(attempts(strict, get(), || 503.into()).await, 1);
    let back = policy().protocol(|http| {
        http.on_status(StatusCode::SERVICE_UNAVAILABLE, Verdict::Permanent)
            .on_status(StatusCode::SERVICE_UNAVAILABLE, transient(503))
    });
    assert_eq!(attempts(back, get(), || 503.into()).await, 3, "the last word counts");
}

#[tokio::test(start_paused = true)]
async fn own_permanent_verdict_beats_the_server() {
    let policy = policy().protocol(|http| http.on_status(StatusCode::BAD_GATEWAY, Verdict::Permanent));
    let insisting: fn() -> Act = || Act::from(502).header("x-should-retry", "true");
    assert_eq!(attempts(policy, get(), insisting).await, 1);
}

#[tokio::test(start_paused = true)]
async fn hint_never_makes_failure_of_success() {
    let odd: fn() -> Act = || Act::from(200).header("x-should-retry", "true").header("retry-after", "1");
    assert_eq!(attempts(policy(), get(), odd).await, 1);
}
