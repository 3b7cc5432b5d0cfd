//! Tests of a policy under tower's own `RetryLayer`.

use std::io;
use std::io::ErrorKind::{ConnectionRefused, ConnectionReset};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use http_body_util::BodyExt;
use reattempt::report::ReportSlot;
use reattempt::{Deadline, Report};
use reattempt_core::StopReason;
use reattempt_replay::{ReplayBody, ReplayLimits};
use reattempt_schedule_fixed::Linear;
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tower::retry::RetryLayer as StockLayer;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_http::follow_redirect::FollowRedirectLayer;

use crate::calls::support::{
    Act, Answer, Body, Broken, Log, ONE, Server, With, answer, failing, get, mocked, ms, of_frames, options, policy,
    post, put, report_of, request, tokens, transient,
};

fn replayable(request: Request<Body>) -> Request<ReplayBody<Body>> {
    request.map(|body| ReplayBody::new(body, &ReplayLimits::default()))
}

#[tokio::test(start_paused = true)]
async fn failure_is_retried_with_whole_body() {
    let server = Server::statuses([503, 503, 200]);
    let client = StockLayer::new(policy().stock()).layer(server.clone());
    let response = client.oneshot(replayable(put())).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(server.times(), [0, 100, 200]);
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.body.as_deref() == Some(b"hello")));
    let numbers: Vec<_> = seen.iter().map(|seen| seen.number()).collect();
    assert_eq!(numbers, [None, Some(2), Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn three_attempts_and_the_last_real_outcome() {
    let server = Server::by(|arrival, _| match arrival {
        3 => Act::Answer(answer(500, "the last")),
        _ => ConnectionReset.into(),
    });
    let client = StockLayer::new(policy().stock()).layer(server.clone());
    let response = client.oneshot(replayable(get())).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (500, 3));
    let report = report_of(&response);
    assert_eq!((report.attempts().len(), report.stop_reason()), (3, StopReason::AttemptsExhausted));

    let server = Server::by(|_, _| ConnectionReset.into());
    let client = StockLayer::new(policy().stock()).layer(server.clone());
    assert_eq!(client.oneshot(replayable(get())).await.unwrap_err().attempt, 3);
}

// trap 24
#[tokio::test(start_paused = true)]
async fn post_is_repeated_only_if_safe() {
    let server = Server::statuses([503]);
    StockLayer::new(policy().stock()).layer(server.clone()).oneshot(replayable(post())).await.unwrap();
    assert_eq!(server.count(), 1);
    let server = Server::by(|_, _| ConnectionRefused.into());
    StockLayer::new(policy().stock()).layer(server.clone()).oneshot(replayable(post())).await.unwrap_err();
    assert_eq!(server.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn retry_after_and_limits_are_obeyed() {
    let server = Server::by(|_, _| Act::from(503).header("retry-after", "2"));
    let client = StockLayer::new(policy().max_attempts(2).stock()).layer(server.clone());
    client.oneshot(replayable(get())).await.unwrap();
    assert!((2000..=2201).contains(&server.times()[1]));

    let server = Server::statuses([503]);
    let client = StockLayer::new(policy().max_elapsed(ms(150)).stock()).layer(server.clone());
    let response = client.oneshot(replayable(get())).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
    assert_eq!(report_of(&response).stop_reason(), StopReason::ElapsedExhausted);

    let server = Server::statuses([503]);
    let client = StockLayer::new(policy().stock()).layer(server.clone());
    client.oneshot(replayable(get()).with(Deadline::after(ms(150)))).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
}

#[tokio::test(start_paused = true)]
async fn budget_is_shared_and_success_credited() {
    let server = Server::statuses([503, 200]);
    let policy = policy().budget(tokens(2.0));
    let client = StockLayer::new(policy.clone().stock()).layer(server.clone());
    client.clone().oneshot(replayable(get())).await.unwrap();
    assert!((policy.budget_ref().balance("one.example") - 1.1).abs() < 1e-9);

    let server = Server::statuses([503]);
    let client = StockLayer::new(policy.stock()).layer(server.clone());
    let response = client.oneshot(replayable(get())).await.unwrap();
    assert_eq!(server.count(), 2);
    assert_eq!(report_of(&response).stop_reason(), StopReason::BudgetExhausted);
}

// trap 11
#[tokio::test(start_paused = true)]
async fn drop_gives_token_back_until_sent() {
    let server = Server::by(|arrival, _| if arrival == 1 { 503.into() } else { Act::Hang });
    let budget = tokens(10.0);
    let client = StockLayer::new(policy().budget(budget.clone()).stock()).layer(server.clone());
    let mut call = task::spawn(client.clone().oneshot(replayable(get())));
    assert_pending!(call.poll());
    assert_eq!(budget.balance("one.example"), 9.0);
    drop(call);
    assert_eq!((budget.balance("one.example"), server.count()), (10.0, 1));

    let server = Server::by(|arrival, _| if arrival == 1 { 503.into() } else { Act::Hang });
    let client = StockLayer::new(policy().budget(budget.clone()).stock()).layer(server.clone());
    let mut call = task::spawn(client.oneshot(replayable(get())));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_eq!(server.count(), 2);
    drop(call);
    assert_eq!(budget.balance("one.example"), 9.0);
}

// trap 10
#[tokio::test(start_paused = true)]
async fn trap_10_calls_do_not_share_their_state() {
    let server = Server::statuses([503]);
    let schedule = Linear::new(ms(100));
    let client = StockLayer::new(policy().backoff(schedule).stock()).layer(server.clone());
    let mut first = task::spawn(client.clone().oneshot(replayable(get())));
    assert_pending!(first.poll());
    advance(ms(100)).await;
    assert_pending!(first.poll());
    assert_eq!(server.count(), 2);
    let mut second = task::spawn(client.clone().oneshot(replayable(get())));
    assert_pending!(second.poll());
    advance(ms(100)).await;
    assert_pending!(second.poll());
    assert_eq!(server.count(), 4, "its first delay is the schedule's first");
    advance(ms(100)).await;
    assert_ready!(first.poll()).unwrap();
    advance(ms(100)).await;
    let response = assert_ready!(second.poll()).unwrap();
    assert_eq!((report_of(&response).attempts().len(), server.count()), (3, 6));
}

async fn call<S>(client: &mut S, request: Request<ReplayBody<Body>>) -> Answer
where
    S: Service<Request<ReplayBody<Body>>, Response = Answer, Error = Broken>,
{
    client.ready().await.unwrap().call(request).await.unwrap()
}

// trap 10
#[tokio::test(start_paused = true)]
async fn each_call_of_a_client_starts_afresh() {
    let server = Server::statuses([503]);
    let mut client = StockLayer::new(policy().budget(tokens(100.0)).stock()).layer(server.clone());
    for calls in 1..=4 {
        // One call is never retried, and the next is, because the first leaves no state behind.
        let never = replayable(get()).with(options().never_retry());
        call(&mut client, never).await;
        let response = call(&mut client, replayable(get())).await;
        assert_eq!(report_of(&response).attempts().len(), 3);
        assert_eq!(server.count(), calls * 4);
    }
}

#[tokio::test(start_paused = true)]
async fn options_observers_and_slots_work() {
    let server = Server::statuses([503]);
    let log = Log::default();
    let slot = ReportSlot::default();
    let client = StockLayer::new(policy().observe_with(log.clone()).stock()).layer(server.clone());
    let request = replayable(post()).with(options().repeatable(true).max_attempts(2).report_to(&slot));
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(server.count(), 2);
    assert_eq!(
        log.lines(),
        [
            "one.example: attempt 1: server (503)",
            "one.example: attempt 2 in 100ms",
            "one.example: attempt 2: server (503)",
            "one.example: gave up after 2 attempts: all allowed attempts have been made",
        ]
    );
    assert_eq!(slot.take().as_ref(), Some(report_of(&response)));
}

#[tokio::test(start_paused = true)]
async fn success_at_once_has_event_and_slot() {
    let log = Log::default();
    let slot = ReportSlot::default();
    let client = StockLayer::new(policy().observe_with(log.clone()).stock()).layer(Server::statuses([200]));
    let request = replayable(get()).with(options().report_to(&slot));
    let response = client.oneshot(request).await.unwrap();
    assert!(response.extensions().get::<Report>().is_none());
    assert_eq!(log.lines(), ["one.example: succeeded on attempt 1"]);
    assert_eq!(slot.take().unwrap().retries(), 0);
}

/// Whatever a classifier makes of its error.
#[tokio::test(start_paused = true)]
async fn failed_source_ends_the_stock_call() {
    let server = Server::statuses([200]);
    let slot = ReportSlot::default();
    let policy = policy().protocol(|http| http.classify(|_| Some(transient(1))));
    let body = ReplayBody::new(failing(), &ReplayLimits::default());
    let mut request = Request::put("http://one.example/").body(body).unwrap();
    request.extensions_mut().insert(options().report_to(&slot));
    StockLayer::new(policy.stock()).layer(server.clone()).oneshot(request).await.unwrap_err();
    assert_eq!(server.count(), 1);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Permanent);
}

// trap 04
#[tokio::test(start_paused = true)]
async fn trap_04_a_body_over_the_cap_is_sent_once() {
    let server = Server::statuses([503]);
    let body = of_frames::<std::io::Error>([Ok("0123456789"), Ok("this is what does not fit any more")]);
    let body = ReplayBody::new(body, &ReplayLimits::default().per_call(40));
    let request = Request::put("http://one.example/").body(body).unwrap();
    let response = StockLayer::new(policy().stock()).layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::BodyNotKept);
}

#[tokio::test(start_paused = true)]
async fn upgrade_is_retried() {
    let server = Server::statuses([503, 101]);
    let client = StockLayer::new(policy().stock()).layer(server.clone());
    let response = client.oneshot(replayable(get().header("upgrade", "websocket"))).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (101, 2));
}

// trap 23
#[test]
fn no_runtime_returns_outcome() {
    let server = Server::statuses([503]);
    let client = StockLayer::new(policy().stock()).layer(server.clone());
    let mut call = task::spawn(client.oneshot(replayable(get())));
    let response = assert_ready!(call.poll()).unwrap();
    assert_eq!(report_of(&response).stop_reason(), StopReason::NoTimer);
    assert_eq!(server.count(), 1);
}

// trap 39
#[tokio::test(start_paused = true)]
async fn stock_outage_of_unknown_errors_pays_none() {
    let server = Server::by(|arrival, _| match arrival % 2 {
        0 => ConnectionReset.into(),
        _ => Act::Error(std::io::Error::other("of an unknown type")),
    });
    let client = StockLayer::new(policy().budget(tokens(10.0)).stock()).layer(server.clone());
    for _ in 0..1_000 {
        client.clone().oneshot(replayable(get())).await.unwrap_err();
    }
    assert_eq!(server.count(), 1_000 + 10);
}

/// The polls of an earlier attempt do not invalidate the proof of a later one.
// trap 48
#[tokio::test(start_paused = true)]
async fn polls_of_an_earlier_attempt_do_not_count() {
    let limits = ReplayLimits::default();
    for noted in ["pay", ""] {
        let sent = Arc::new(AtomicUsize::new(0));
        let arrivals = Arc::clone(&sent);
        let client = service_fn(move |attempt: Request<ReplayBody<Body>>| {
            let number = arrivals.fetch_add(1, Ordering::SeqCst);
            async move {
                if number == 1 {
                    return Err(io::Error::from(ConnectionRefused));
                }
                attempt.into_body().collect().await.unwrap();
                Ok(mocked(if number == 0 { 429 } else { 200 }))
            }
        });
        let client = StockLayer::new(policy().stock()).layer(client);
        let call = request("POST", ONE, noted);
        let call = call.map(|body| ReplayBody::new(body, &limits).noting_polls());
        assert_eq!(client.oneshot(call).await.unwrap().status(), 200);
        assert_eq!(sent.load(Ordering::SeqCst), 3);
    }
}

/// Only a body that records its polls shows that a later hop has failed.
// trap 48
#[tokio::test(start_paused = true)]
async fn post_is_sent_once_if_its_polls_are_noted() {
    let limits = ReplayLimits::default();
    for body in ["pay", ""] {
        let server = Server::by(|_, head| match head.method {
            Method::POST => Act::from(303).header("location", "/done"),
            _ => ConnectionRefused.into(),
        });
        let below = FollowRedirectLayer::new().layer(server.clone());
        let client = StockLayer::new(policy().stock()).layer(below);
        let call = request("POST", ONE, body);
        let call = call.map(|body| ReplayBody::new(body, &limits).noting_polls());
        client.oneshot(call).await.unwrap_err();
        assert_eq!(server.count(), 2, "{body:?}");
    }
}
