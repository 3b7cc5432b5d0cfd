//! Tests of a hedged call's events.

use std::io::ErrorKind::PermissionDenied;

use reattempt::hedge::HedgeLayer;
use tower::{Layer, ServiceExt};

use crate::hedge::policy;
use crate::hedge::support::{Act, Log, Server, get, ms, post, tokens};

#[tokio::test(start_paused = true)]
async fn a_call_that_is_hedged_twice() {
    let log = Log::default();
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(200).later(ms(300)),
        2 => Act::from(503).later(ms(40)),
        _ => Act::Hang,
    });
    let client = HedgeLayer::new(policy().observe_with(log.clone())).layer(server);
    client.oneshot(get()).await.unwrap();
    let expected = [
        "one.example: attempt 2 in 100ms",
        "one.example: attempt 2: server (503)",
        "one.example: attempt 3 in 40ms",
        "one.example: succeeded on attempt 3",
    ];
    assert_eq!(log.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn why_a_call_has_failed() {
    let run = async |policy: reattempt::hedge::HedgePolicy, act: fn(usize) -> Act| {
        let log = Log::default();
        let server = Server::by(move |arrival, _| act(arrival));
        let client = HedgeLayer::new(policy.observe_with(log.clone())).layer(server);
        let _ = client.oneshot(get()).await;
        log.lines().pop().unwrap()
    };
    let gave_up = |attempts, reason| format!("one.example: gave up after {attempts}: {reason}");
    let busy: fn(usize) -> Act = |_| 503.into();
    assert_eq!(run(policy(), busy).await, gave_up("3 attempts", "all allowed attempts have been made"));
    let poor = policy().budget(tokens(1.0));
    assert_eq!(run(poor, busy).await, gave_up("2 attempts", "the retry budget is exhausted"));
    let stop: fn(usize) -> Act = |_| Act::from(503).header("x-should-retry", "false");
    assert_eq!(run(policy(), stop).await, gave_up("1 attempt", "the server asked not to be called again"));
    let denied: fn(usize) -> Act = |_| PermissionDenied.into();
    assert_eq!(run(policy(), denied).await, "one.example: failed on attempt 1: the failure is permanent");
}

#[tokio::test(start_paused = true)]
async fn unhedgeable_call_is_not_observed() {
    let log = Log::default();
    let client = HedgeLayer::new(policy().observe_with(log.clone())).layer(Server::statuses([503]));
    client.oneshot(post()).await.unwrap();
    assert!(log.lines().is_empty());
}
