//! Tests of readiness, which is passed through and used by the call that requested it.

use futures_util::future::join_all;
use reattempt::guard::{GuardLayer, Pace};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::Layer;
use tower_test::mock;

use super::support::{Answer, Server, answer, begin, call, ms, pace};

#[tokio::test(start_paused = true)]
async fn readiness_is_that_of_the_inner_service() {
    let layer = GuardLayer::http(Pace::new(pace()));
    let (mut client, mut handle) = mock::spawn_with(|inner: mock::Mock<http::Request<u32>, Answer>| layer.layer(inner));
    handle.allow(0);
    assert_pending!(client.poll_ready());
    handle.allow(1);
    assert!(client.is_woken());
    assert_ready_ok!(client.poll_ready());
    let mut answered = task::spawn(client.call(http::Request::new(7)));
    assert_pending!(answered.poll());
    let (request, respond) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    assert_eq!(*request.body(), 7);
    respond.send_response(answer(200));
    assert_ready_ok!(answered.poll());
    handle.send_error("broken");
    let error = assert_ready_err!(client.poll_ready());
    assert_eq!(error.to_string(), "broken");
}

// trap 09
#[tokio::test(start_paused = true)]
async fn call_that_waited_readies_service_anew() {
    // The server panics if an instance that was not readied is called.
    let server = Server::statuses([429, 429, 503]);
    let mut client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
    for _ in 0..6 {
        call(&mut client).await.unwrap();
    }
    // The instances that were readied for the five waiting calls are released.
    assert_eq!((server.arrivals().len(), server.unused()), (6, 5));

    // Several may wait at the same time.
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(begin(&mut client).await);
    }
    for answer in join_all(waiting).await {
        assert_eq!(answer.unwrap().status(), 503);
    }
    assert_eq!((server.arrivals().len(), server.unused()), (9, 8));
}

#[tokio::test(start_paused = true)]
async fn only_call_that_waits_clones_service() {
    let server = Server::statuses([200, 200, 429, 429, 200]);
    let mut client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
    // One for the wait, and one in place of the readied instance.
    for clones in [0, 0, 0, 2, 4] {
        call(&mut client).await.unwrap();
        assert_eq!(server.clones(), clones);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_call_holds_no_place_of_a_limit() {
    let server = Server::statuses([429, 503]);
    let limited = tower::limit::ConcurrencyLimit::new(server.watch(), 1);
    let mut client = GuardLayer::http(Pace::new(pace())).layer(limited);
    call(&mut client).await.unwrap();
    let waiting = begin(&mut client).await;
    let mut other = client.clone();
    let other = begin(&mut other).await;
    waiting.await.unwrap();
    other.await.unwrap();
    assert_eq!(server.arrivals(), [0, 100, 200].map(ms));
}
