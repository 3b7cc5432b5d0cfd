//! Tests of dropped calls.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use reattempt::guard::contract::GuardKind;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{CircuitBreaker, GuardLayer, Pace, Refused};
use tower::{Layer, Service, ServiceExt};

use super::support::{Server, answer, begin, call, ms, pace};

#[tokio::test(start_paused = true)]
async fn call_dropped_in_wait_is_not_counted() {
    let server = Server::statuses([429, 200]);
    let pace = pace();
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server.watch());
    call(&mut client).await.unwrap();
    let before = pace.metrics();

    // Before its first poll, and in the middle of its wait.
    drop(begin(&mut client).await);
    let waiting = begin(&mut client).await;
    assert!(tokio::time::timeout(ms(99), waiting).await.is_err());
    assert_eq!(server.unused(), 2, "what was made ready for them is let go of");
    tokio::time::advance(ms(1000)).await;
    assert_eq!(server.arrivals().len(), 1);
    assert_eq!(pace.metrics(), before);
    assert_eq!(pace.interval(), ms(100));

    // Other calls continue as if these had not existed.
    call(&mut client).await.unwrap();
    call(&mut client).await.unwrap();
    assert_eq!(pace.metrics().times_slept, 1);
}

#[tokio::test(start_paused = true)]
async fn call_dropped_after_sending_moves_nothing() {
    let pace = pace();
    let server = tower::service_fn(|refused: http::Request<bool>| async move {
        tokio::time::sleep(ms(50)).await;
        Ok::<_, std::convert::Infallible>(answer(if *refused.body() { 429 } else { 200 }))
    });
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server);
    let refused = client.ready().await.unwrap().call(http::Request::new(true));
    assert!(tokio::time::timeout(ms(49), refused).await.is_err());
    assert_eq!(pace.interval(), ms(0));
    assert_eq!(pace.metrics().invocations, 1);

    client.ready().await.unwrap().call(http::Request::new(true)).await.unwrap();
    assert_eq!(pace.interval(), ms(100), "the direction is not blocked");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_over_stays_silent() {
    let mut client = GuardLayer::http(Pace::new(pace())).layer(Server::statuses([200]));
    let mut over = Box::pin(begin(&mut client).await);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(over.as_mut().poll(&mut cx).is_ready());
    assert!(matches!(over.as_mut().poll(&mut cx), Poll::Pending));
    assert_eq!(client.guard().responsive().metrics().invocations, 1);
}

/// A call that took a turn and was then refused by another guard gives its turn back.
#[tokio::test(start_paused = true)]
async fn call_not_sent_gives_its_turn_back() {
    let server = Server::statuses([429, 503]);
    let breaker = CircuitBreaker::rate();
    let guards = (Pace::new(pace()), breaker.clone());
    let mut client = GuardLayer::http(guards).layer(server.watch());
    call(&mut client).await.unwrap();
    call(&mut client).await.unwrap();
    tokio::time::advance(ms(100)).await;
    let before = client.guard().0.responsive().metrics();

    breaker.isolate("one.example").unwrap();
    let error = call(&mut client).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Refused>().unwrap().guard(), GuardKind::CIRCUIT_BREAKER);
    assert_eq!(client.guard().0.responsive().metrics(), before, "it was not sent");
    breaker.close("one.example").unwrap();
    call(&mut client).await.unwrap();
    assert_eq!(server.arrivals(), [0, 100, 200].map(ms), "its turn was there again");
}
