//! Tests of attempts that time limits end: those of the server, of the client's own queue, and of the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use reattempt::endpoints::Endpoints;
use reattempt::error::BoxedError;
use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
use reattempt::guard::{CircuitBreaker, GuardLayer, Limit, RateLimit};
use reattempt::standard::StandardLayer;
use reattempt::{Deadline, Http, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_schedule_exponential::Exponential;
use reattempt_schedule_fixed::Constant;
use reattempt_testing::secs;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::{Layer, ServiceBuilder};

use super::support::{Recorder, attempt};
use crate::calls::support::{Act, ONE, Server, TWO, With, get, ms, policy};

/// Returns a server that answers each call after this time.
fn server(latency: Duration) -> Server {
    Server::by(move |_, _| Act::from(200).later(latency))
}

/// Returns a breaker, and the number of its openings.
fn counted() -> (CircuitBreaker, Arc<AtomicU32>) {
    let openings = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&openings);
    let breaker = CircuitBreaker::rate().seed(1).on_state_change(move |change| {
        if change.to == BreakerState::Open {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    (breaker, openings)
}

/// Makes 70 calls a second. Returns the number of calls that were served.
macro_rules! served {
    ($client:expr, of $calls:expr) => {{
        let client = $client;
        let mut calls = JoinSet::new();
        for _ in 0..$calls {
            let client = client.clone();
            calls.spawn(async move { client.send(get()).await.is_ok_and(|response| response.status() == 200) });
            sleep(Duration::from_micros(14_286)).await;
        }
        calls.join_all().await.into_iter().filter(|served| *served).count()
    }};
}

fn one_second() -> RetryLayer<RetryPolicy<Http, Exponential, RetryBudget, BoxedError>> {
    RetryLayer::new(RetryPolicy::http().attempt_timeout(secs(1)).seed(1))
}

fn fifty_a_second() -> RateLimit {
    RateLimit::new(Limit::per_second(50), 50)
}

/// A client's own queue serves what its rate allows, and is no evidence against the server.
// C-10, C-15, trap 61, field 09
#[tokio::test(start_paused = true)]
async fn own_queue_wastes_no_token() {
    let (breaker, openings) = counted();
    let guards = GuardLayer::http((breaker, fifty_a_second()));
    let served = served!(one_second().layer(guards.layer(server(ms(100)))), of 8_400);
    let openings = openings.load(Ordering::Relaxed);
    assert!(served >= 5_900 && openings == 0, "{served} of 8,400 served, {openings} openings");
}

/// The order of the guards and the number of their layers do not matter.
// C-10, C-15, trap 61
#[tokio::test(start_paused = true)]
async fn own_queue_in_any_place_is_harmless() {
    let server = server(ms(100));
    for order in ["limit first", "breaker outside", "limit outside"] {
        let (breaker, openings) = counted();
        let stack = ServiceBuilder::new().layer(one_second());
        let served = match order {
            "limit first" => {
                let guards = GuardLayer::http((fifty_a_second(), breaker));
                served!(stack.layer(guards).service(server.clone()), of 1_400)
            }
            "breaker outside" => {
                let stack = stack.layer(GuardLayer::http(breaker)).layer(GuardLayer::http(fifty_a_second()));
                served!(stack.service(server.clone()), of 1_400)
            }
            _ => {
                let stack = stack.layer(GuardLayer::http(fifty_a_second())).layer(GuardLayer::http(breaker));
                served!(stack.service(server.clone()), of 1_400)
            }
        };
        let openings = openings.load(Ordering::Relaxed);
        assert!(served >= 980 && openings == 0, "{order}: {served} of 1,400 served, {openings} openings");
    }
}

/// The server's share of an attempt's time decides whose time ran out.
// C-10
#[tokio::test(start_paused = true)]
async fn longer_wait_than_service_is_abandoned() {
    for (waited, end) in [(600, "abandoned"), (400, "Unavailable"), (501, "abandoned")] {
        let recorder = Recorder::queueing();
        let retries = RetryLayer::new(policy().max_attempts(1).attempt_timeout(secs(1)));
        let client = retries.layer(GuardLayer::http(recorder.clone()).layer(Server::by(|_, _| Act::Hang)));
        let call = tokio::spawn(client.send(get()));
        sleep(ms(waited)).await;
        recorder.release();
        call.await.unwrap().unwrap_err();
        // The guard was asked once more with the attempt's limit, which it cannot know at first.
        assert_eq!(recorder.log(), ["waiting", "unsent", "waiting", end], "after {waited} ms");
    }
}

/// An attempt that an inner guard still had in its queue was never at the server.
// C-10, trap 61
#[tokio::test(start_paused = true)]
async fn outer_guard_learns_of_an_inner_queue() {
    let (outer, inner) = (Recorder::default(), Recorder::queueing());
    let retries = RetryLayer::new(policy().max_attempts(1).attempt_timeout(secs(1)));
    let guards = ServiceBuilder::new().layer(GuardLayer::http(outer.clone())).layer(GuardLayer::http(inner.clone()));
    let client = retries.layer(guards.service(server(ms(1))));
    client.send(get()).await.unwrap_err();
    assert_eq!(outer.log(), ["admitted", "abandoned"]);
    assert_eq!(inner.log().last().unwrap(), "unsent");

    // The outer guard's own limit is no different.
    let outer = Recorder::default();
    let limited = GuardLayer::http(outer.clone()).attempt_timeout(secs(1));
    let client = limited.layer(GuardLayer::http(Recorder::queueing()).layer(server(ms(1))));
    client.send(attempt(ONE)).await.unwrap_err();
    assert_eq!(outer.log(), ["admitted", "abandoned"]);
}

/// Makes calls one after the other. The caller gives up on each at its deadline, unless a layer does so first.
macro_rules! calls_within {
    ($client:expr, $request:expr, $calls:expr, $time:expr) => {
        for _ in 0..$calls {
            let request = $request.with(Deadline::after($time));
            let _ = timeout($time, $client.send(request)).await;
        }
    };
}

fn once() -> RetryLayer<RetryPolicy<Http, Constant, RetryBudget, BoxedError>> {
    RetryLayer::new(policy().max_attempts(1).boxed_errors())
}

/// A deadline below the server's usual latency is the caller's matter, whoever enforces it.
// C-10, trap 61
#[tokio::test(start_paused = true)]
async fn short_deadlines_do_not_open_breaker() {
    for warm in [0, 30] {
        let (breaker, openings) = counted();
        let guards = GuardLayer::http(breaker.clone());
        let (here, by_caller) = (once().layer(guards.layer(server(ms(100)))), guards.layer(server(ms(100))));
        calls_within!(here, get(), warm, secs(1));
        calls_within!(here, get(), 100, ms(5));
        calls_within!(by_caller, attempt(ONE), 100, ms(5));
        assert_eq!((breaker.counts("one.example").total_failures, openings.load(Ordering::Relaxed)), (0, 0), "{warm}");
    }
}

/// A server that hangs is noticed if it had its usual time, or a second if that is unknown.
// C-10
#[tokio::test(start_paused = true)]
async fn hanging_server_opens_the_breaker() {
    for (warm, time) in [(30, ms(150)), (30, ms(300)), (0, secs(2))] {
        let (breaker, openings) = counted();
        let hangs = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&hangs);
        let server = Server::by(move |_, _| match state.load(Ordering::Relaxed) {
            true => Act::Hang,
            false => Act::from(200).later(ms(100)),
        });
        let guarded = GuardLayer::http(breaker).layer(server);
        let (here, by_caller) = (once().layer(guarded.clone()), guarded);
        calls_within!(here, get(), warm, secs(1));
        hangs.store(true, Ordering::Relaxed);
        calls_within!(here, get(), 30, time);
        calls_within!(by_caller, attempt(ONE), 30, time);
        assert!(openings.load(Ordering::Relaxed) > 0, "{warm} calls before, then {time:?} each");
    }
}

/// The stack's own attempt timeout is the server's time, however short it is.
// C-10
#[tokio::test(start_paused = true)]
async fn own_attempt_timeout_opens_the_breaker() {
    let (breaker, openings) = counted();
    let retries = RetryLayer::new(policy().max_attempts(1).attempt_timeout(ms(50)));
    let client = retries.layer(GuardLayer::http(breaker).layer(Server::by(|_, _| Act::Hang)));
    calls_within!(client, get(), 60, secs(1));
    assert!(openings.load(Ordering::Relaxed) > 0);
}

/// Short deadlines make no endpoint look faulty. Deadlines above the usual latency show which one hangs.
// C-10, trap 61
#[tokio::test(start_paused = true)]
async fn endpoints_know_their_usual_latency() {
    let hangs = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&hangs);
    let server = Server::by(move |_, head| match (state.load(Ordering::Relaxed), head.uri.host()) {
        (true, Some("two.example")) => Act::Hang,
        _ => Act::from(200).later(ms(100)),
    });
    let servers = Endpoints::urls([ONE, TWO]).unwrap();
    let layer = StandardLayer::http().retry(policy().max_attempts(1).boxed_errors()).endpoints(servers);
    let endpoints = layer.endpoints_handle();
    let failing = || endpoints.view().iter().map(|endpoint| endpoint.failing).collect::<Vec<_>>();
    let client = layer.layer(server);
    calls_within!(client, get(), 20, secs(1));
    calls_within!(client, get(), 200, ms(5));
    assert_eq!(failing(), [0.0, 0.0]);
    hangs.store(true, Ordering::Relaxed);
    calls_within!(client, get(), 60, ms(300));
    let failing = failing();
    // Its first failure keeps the calls away from it, and is half forgotten since.
    assert!(failing[0] == 0.0 && failing[1] > 0.0, "{failing:?}");
}
