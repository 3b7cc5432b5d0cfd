//! Tests of options that a policy's rule selects for each request.

use reattempt::classify::RequestView;
use reattempt::guard::contract::GuardKind;
use reattempt::guard::{GuardLayer, Pace, Reason, Refused};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{CallOptions, Deadline, Http, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_core::{SharedSchedule, StopReason};
use reattempt_replay::{ReplayBody, ReplayLimits};
use reattempt_schedule_fixed::Constant;
use reattempt_schedule_responsive::Responsive;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Policy, Server, With, get, ms, options, policy, post, report_of, request};

/// Returns rules under which POSTs below /search are repeatable, and batches have five attempts.
fn ruled(http: Http) -> Http {
    let search = |request: RequestView<'_>| {
        let search = request.method() == "POST" && request.path().starts_with("/search");
        search.then(|| options().repeatable(true).max_attempts(4))
    };
    let batch = |request: RequestView<'_>| {
        let batch = request.header("x-priority")? == b"batch";
        batch.then(|| options().max_attempts(5))
    };
    http.options_for(search).options_for(batch)
}

fn policy_with_rules() -> Policy {
    policy().protocol(ruled)
}

fn post_to(path: &str) -> http::Request<crate::calls::support::Body> {
    request("POST", &format!("http://one.example{path}"), "hello")
}

#[tokio::test(start_paused = true)]
async fn rules_choose_by_method_path_and_header() {
    let batch = |request: http::Request<_>| request.header("x-priority", "batch");
    for (request, expected) in [
        (get(), 3),
        (post_to("/order"), 1),
        (post_to("/search"), 4),
        (batch(get()), 5),
        (batch(post_to("/search/all")), 4),
        (batch(post_to("/order")), 1),
    ] {
        let text = format!("{request:?}");
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy_with_rules()).layer(server.clone());
        client.oneshot(request).await.unwrap();
        assert_eq!(server.count(), expected, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn request_outranks_handle_outranks_rule() {
    let seven = SharedSchedule::new(Constant::new(ms(7)));
    let rule = move |_: RequestView<'_>| Some(options().max_attempts(2).backoff(seven.clone()).max_elapsed(ms(15)));
    let policy = policy().protocol(|http| http.options_for(rule));
    for (own, of_handle, times) in [
        (None, None, vec![0, 7]),
        (None, Some(3), vec![0, 7, 14]),
        (Some(1), Some(3), vec![0]),
        (Some(9), None, vec![0, 7, 14]),
    ] {
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy.clone()).layer(server.clone());
        let attempts = |attempts| options().max_attempts(attempts);
        let client = client.with_options(of_handle.map(attempts).unwrap_or_default());
        client.oneshot(get().with(own.map(attempts).unwrap_or_default())).await.unwrap();
        assert_eq!(server.times(), times, "{own:?}, {of_handle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rule_can_forbid_retries_and_set_deadline() {
    let never = |request: RequestView<'_>| (request.path() == "/once").then(|| options().never_retry());
    let soon =
        |request: RequestView<'_>| (request.path() == "/soon").then(|| options().deadline(Deadline::after(ms(150))));
    let policy = policy().protocol(|http| http.options_for(never).options_for(soon));
    for (path, count, stop) in [("/once", 1, StopReason::Forbidden), ("/soon", 2, StopReason::DeadlineExceeded)] {
        let server = Server::statuses([503]);
        let slot = reattempt::report::ReportSlot::default();
        let uri = format!("http://one.example{path}");
        let request = request("GET", &uri, "").with(options().report_to(&slot));
        RetryLayer::new(policy.clone()).layer(server.clone()).oneshot(request).await.unwrap();
        assert_eq!((server.count(), slot.take().unwrap().stop_reason()), (count, stop), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn stock_policy_follows_rules() {
    let server = Server::statuses([503]);
    let client = tower::retry::RetryLayer::new(policy_with_rules().stock()).layer(server.clone());
    let request = post_to("/search").map(|body| ReplayBody::new(body, &ReplayLimits::default()));
    client.oneshot(request).await.unwrap();
    assert_eq!(server.count(), 4);
}

/// One value works for both kinds of layer: a POST that a rule declares repeatable is hedged, too.
#[tokio::test(start_paused = true)]
async fn hedges_follow_rules() {
    let policy = HedgePolicy::with(ruled(Http::new())).max_attempts(2).delay(ms(10));
    let policy = policy.budget(RetryBudget::unlimited());
    for (path, expected) in [("/order", 1), ("/search", 4)] {
        let server = Server::by(|_, _| Act::from(200).later(ms(1000)));
        let client = HedgeLayer::new(policy.clone()).layer(server.clone());
        client.oneshot(post_to(path)).await.unwrap();
        assert_eq!(server.count(), expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn pace_keeps_deadline_of_rule() {
    let pace = Responsive::new().initial(ms(500)).randomisation(0.0);
    let rule = |_: RequestView<'_>| Some(CallOptions::new().deadline(Deadline::after(ms(100))));
    let layer = GuardLayer::with(Http::new().options_for(rule), Pace::new(pace));
    let throttled = tower::service_fn(|_: http::Request<String>| {
        let response = http::Response::builder().status(429).body(String::new());
        std::future::ready(response)
    });
    let client = layer.layer(throttled);
    client.clone().oneshot(http::Request::new(String::new())).await.unwrap();
    let error = client.oneshot(http::Request::new(String::new())).await.unwrap_err();
    let refused = error.downcast_ref::<Refused>().unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::PACE, Reason::WaitTooLong));
}

#[tokio::test(start_paused = true)]
async fn key_of_request_counts_only_if_trusted() {
    const KEY: &str = "idempotency-key";
    let keyed = || post().header(KEY, "\"theirs\"");
    // Whether keys are trusted and generated, the request, and its attempts after 503 and after 429.
    for (trusted, generated, request, after_503, after_429) in [
        (true, false, keyed(), 3, 3),
        (false, false, keyed(), 1, 3),
        (false, true, keyed(), 1, 3),
        (false, true, post(), 3, 3),
        (false, false, get(), 3, 3),
        (true, true, keyed(), 3, 3),
    ] {
        for (status, expected) in [(503, after_503), (429, after_429)] {
            let of_keys = |http: Http| http.trust_idempotency_keys(trusted).generate_idempotency_keys(generated);
            let server = Server::statuses([status]);
            let client = RetryLayer::new(policy().protocol(of_keys)).layer(server.clone());
            let key = request.headers().get(KEY).cloned();
            client.oneshot(request.clone()).await.unwrap();
            let row = format!("{trusted}, {generated}, {request:?}, {status}");
            assert_eq!(server.count(), expected, "{row}");
            let seen = server.seen();
            let kept = seen.iter().all(|seen| key.is_none() || seen.head.headers.get(KEY) == key.as_ref());
            assert!(kept, "the key that was there is left alone: {row}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn untrusted_key_needs_callers_word() {
    let of_keys = |http: Http| http.trust_idempotency_keys(false);
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().protocol(of_keys)).layer(server.clone());
    let keyed = || post().header("idempotency-key", "\"theirs\"");
    let slot = reattempt::report::ReportSlot::default();
    client.clone().oneshot(keyed().with(options().report_to(&slot))).await.unwrap();
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotRepeatable);
    client.oneshot(keyed().with(options().repeatable(true))).await.unwrap();
    assert_eq!(server.count(), 1 + 3);

    let stock = tower::retry::RetryLayer::new(policy().protocol(of_keys).stock());
    let server = Server::statuses([503]);
    let request = keyed().map(|body| ReplayBody::new(body, &ReplayLimits::default()));
    stock.layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(server.count(), 1);
}

/// If a layer below follows redirects, a POST whose body was polled is not repeated because of an untrusted key.
#[tokio::test(start_paused = true)]
async fn untrusted_key_proves_nothing_after_poll() {
    let refused = std::io::ErrorKind::ConnectionRefused;
    for (trusted, expected) in [(true, 3), (false, 1)] {
        let server = Server::by(move |_, _| Act::Fail(refused));
        let policy = policy().protocol(|http| http.trust_idempotency_keys(trusted));
        let client = RetryLayer::new(policy).layer(server.clone());
        let keyed = post().header("idempotency-key", "\"theirs\"");
        client.oneshot(keyed).await.unwrap_err();
        assert_eq!(server.count(), expected, "{trusted}");
    }
}

#[tokio::test(start_paused = true)]
async fn rule_gives_report_of_every_call() {
    let slot = reattempt::report::ReportSlot::default();
    let of_rule = slot.clone();
    let http = Http::new().options_for(move |_| Some(options().report_to(&of_rule)));
    let server = Server::statuses([503, 200]);
    let client = RetryLayer::new(RetryPolicy::with(http)).layer(server);
    let response = client.clone().oneshot(get()).await.unwrap();
    assert_eq!(report_of(&response).retries(), 1);
    assert_eq!(slot.take().unwrap().retries(), 1);
    client.oneshot(get()).await.unwrap();
    assert_eq!(slot.take().unwrap().retries(), 0);
}
