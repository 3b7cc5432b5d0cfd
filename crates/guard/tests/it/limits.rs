//! Tests of the limits in `reattempt-control` around a client, under a paused clock.

use std::sync::Mutex;
use std::time::Duration;

use http_body_util::BodyExt;
use reattempt::classify::Hints;
use reattempt::guard::handle::{RateLimitExt, ThrottleExt, UsageExt};
use reattempt::guard::{
    self, AdaptiveLimit, Bulkhead, GuardLayer, Limit, RateLimit, Reason, Refused, SendRate, Throttle,
};
use reattempt::{Deadline, Http};
use reattempt_testing_layers::calls::{Act, ONE, Server, With, answer, ms};
use reattempt_testing_layers::guard::attempt;
use tower::Layer;

const HOST: &str = "one.example";

fn reason(error: &tower::BoxError) -> Reason {
    error.downcast_ref::<Refused>().unwrap().reason()
}

#[tokio::test(start_paused = true)]
async fn rate_limit_sends_calls_in_turn() {
    let server = Server::by(|_, _| 200.into());
    let limit = RateLimit::new(Limit::per_second(10), 1);
    let client = GuardLayer::http(limit.clone()).layer(server.clone());
    let calls: Vec<_> = (0..4).map(|_| tokio::spawn(client.send(attempt(ONE)))).collect();
    tokio::time::sleep(ms(50)).await;
    calls[1].abort();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.is_ok(), number != 1);
    }
    // The dropped call has given its turn to those behind it.
    assert_eq!(server.times(), [0, 100, 200]);
    assert_eq!(limit.waiting(HOST), 0);
    let hasty = client.send(attempt(ONE).with(Deadline::after(ms(50)))).await.unwrap_err();
    assert_eq!(reason(&hasty), Reason::WaitTooLong);
    assert_eq!(server.count(), 3);
}

/// The names and values of a response's headers.
type Fields = Vec<(&'static str, String)>;

/// Returns a server that allows 20 calls in each ten seconds of its clock, and states the remaining quota in its
/// responses.
fn stating(fields: impl Fn(u32, u64) -> Fields + Send + Sync + 'static) -> Server {
    let used = Mutex::new((0, 0));
    Server::by(move |_, _| {
        let now = guard::handle::now();
        let (window, reset) = (now.as_secs() / 10, 10 - now.as_secs() % 10);
        let mut used = used.lock().unwrap();
        if used.0 != window {
            *used = (window, 0);
        }
        used.1 += 1;
        let mut response = answer(if used.1 > 20 { 429 } else { 200 }, "");
        for (name, value) in fields(20_u32.saturating_sub(used.1), reset) {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        Act::Answer(response).later(ms(20))
    })
}

/// Returns how many calls a server served and refused in a minute, for a client whose own limit is far higher.
async fn in_a_minute(server: Server, hints: Hints) -> (usize, usize) {
    let limit = RateLimit::new(Limit::per_second(100), 10);
    let http = Http::new().hints(hints);
    let client = GuardLayer::with(http, limit.clone()).layer(server.clone());
    let end = guard::handle::now() + Duration::from_secs(60);
    let mut served = 0;
    while guard::handle::now() < end {
        let response = client.send(attempt(ONE)).await.unwrap();
        served += usize::from(response.status() == 200);
    }
    assert_eq!(limit.limit(HOST), Limit::per_second(100), "the user's own rate stays");
    (served, server.count() - served)
}

#[tokio::test(start_paused = true)]
async fn rate_limit_follows_the_server() {
    let read = Hints::default().rate_limit(true);
    let families: [fn(u32, u64) -> Fields; 4] = [
        |left, reset| vec![("ratelimit", format!("\"hour\";r=90000;t=3000, \"burst\";r={left};t={reset}"))],
        |left, reset| vec![("ratelimit-remaining", left.to_string()), ("ratelimit-reset", reset.to_string())],
        |left, reset| vec![("x-ratelimit-remaining", left.to_string()), ("x-ratelimit-reset", reset.to_string())],
        |left, reset| {
            let date = "Sun, 09 Sep 2001 01:46:40 GMT".to_owned();
            let reset = (1_000_000_000 + reset).to_string();
            vec![("x-ratelimit-remaining", left.to_string()), ("x-ratelimit-reset", reset), ("date", date)]
        },
    ];
    for (number, fields) in families.into_iter().enumerate() {
        let (served, refused) = in_a_minute(stating(fields), read.clone()).await;
        // Six or seven windows, of which the first and the last may be partial.
        assert!((100..=140).contains(&served) && refused <= 3, "{number}: {served}, {refused}");
    }
    let (served, refused) = in_a_minute(stating(families[1]), Hints::default()).await;
    assert!(served <= 140 && refused > 1000, "not read: {served}, {refused}");
}

// G-10, G-11
#[tokio::test(start_paused = true)]
async fn bulkhead_hands_on_the_place_of_a_body() {
    let server = Server::by(|_, _| Act::Answer(answer(200, "some")));
    let bulkhead = Bulkhead::new(1).queue(9, Duration::from_secs(1));
    let client = GuardLayer::http(bulkhead.clone()).layer(server.clone());
    let first = client.send(attempt(ONE)).await.unwrap();
    let dropped = tokio::spawn(client.send(attempt(ONE)));
    let second = tokio::spawn(client.send(attempt(ONE)));
    tokio::time::sleep(ms(300)).await;
    let usage = bulkhead.usage(HOST);
    assert_eq!((usage.in_flight, usage.waiting, usage.past_head), (1, 2, 1));
    assert_eq!(usage.oldest_past_head, Some(ms(300)));
    // The place goes to the call that is dropped before it is polled again, and from there to the next.
    drop(first);
    dropped.abort();
    let second = second.await.unwrap().unwrap();
    assert_eq!(server.times(), [0, 300]);
    let too_long = client.send(attempt(ONE)).await.unwrap_err();
    assert_eq!(reason(&too_long), Reason::WaitTooLong);
    assert_eq!(too_long.to_string(), "not sent: the bulkhead makes the call wait too long");
    second.into_body().collect().await.unwrap();
    let usage = bulkhead.usage(HOST);
    assert_eq!((usage.in_flight, usage.waiting), (0, 0));
}

// A call that waits for a place keeps its token, and one that gives up returns it.
#[tokio::test(start_paused = true)]
async fn guards_in_a_pair_release_each_other() {
    let server = Server::by(|_, _| Act::Answer(answer(200, "some")));
    let limit = RateLimit::new(Limit::ZERO, 3);
    let bulkhead = Bulkhead::new(1).queue(1, Duration::from_secs(1));
    let client = GuardLayer::http((limit.clone(), bulkhead)).layer(server.clone());
    let held = client.send(attempt(ONE)).await.unwrap();
    let error = client.send(attempt(ONE)).await.unwrap_err();
    assert_eq!(reason(&error), Reason::WaitTooLong);
    assert_eq!(limit.tokens(HOST), 2.0);
    drop(held);
    client.send(attempt(ONE)).await.unwrap();
    assert_eq!(limit.tokens(HOST), 1.0);
}

#[tokio::test(start_paused = true)]
async fn overload_moves_the_limits_that_adapt() {
    let server = Server::by(|_, _| 429.into());
    let (limit, throttle, rate) = (AdaptiveLimit::aimd(), Throttle::new(), SendRate::new());
    let guards = (limit.clone(), (throttle.clone(), rate.clone().no_queue()));
    let client = GuardLayer::http(guards).layer(server.clone());
    let mut sent = 0;
    for _ in 0..300 {
        sent += u32::from(client.send(attempt(ONE)).await.is_ok());
        tokio::time::sleep(ms(10)).await;
    }
    assert!(sent < 100, "{sent}");
    let counts = throttle.counts(HOST);
    assert!(counts.requests >= sent && counts.accepts == 0, "calls not sent are taken back");
    let seen = SendRate::new();
    let client = GuardLayer::http(seen.clone()).layer(server);
    client.send(attempt(ONE)).await.unwrap();
    assert!(!seen.limit(HOST).is_infinite());
    assert!(limit.usage(HOST).in_flight == 0);
}
