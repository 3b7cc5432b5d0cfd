//! Readiness: passed through, and used by the call it was asked for.

use futures_util::future::join_all;
use reattempt::pace::PaceLayer;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::Layer;
use tower_test::mock;

use super::support::{Answer, Server, answer, begin, call, ms, pace};

#[tokio::test(start_paused = true)]
async fn readiness_is_that_of_the_inner_service() {
    let layer = PaceLayer::http(pace()).boxed_errors();
    let (mut client, mut handle) =
        mock::spawn_with(|inner: mock::Mock<http::Request<u32>, Answer>| layer.layer(inner));
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
async fn readied_instance_is_called_after_wait() {
    // The server panics when another instance of it is called.
    let server = Server::statuses([429, 429, 200]);
    let mut client = PaceLayer::http(pace()).layer(server.watch());
    for _ in 0..6 {
        call(&mut client).await.unwrap();
    }
    assert_eq!((server.arrivals().len(), server.unused()), (6, 0));

    // Several may wait at a time, each with its own.
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(begin(&mut client).await);
    }
    for answer in join_all(waiting).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    assert_eq!((server.arrivals().len(), server.unused()), (9, 0));
}

#[tokio::test(start_paused = true)]
async fn only_call_that_waits_clones_service() {
    let server = Server::statuses([200, 200, 429, 429, 200]);
    let mut client = PaceLayer::http(pace()).layer(server.watch());
    for clones in [0, 0, 0, 1, 2] {
        call(&mut client).await.unwrap();
        assert_eq!(server.clones(), clones);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_call_holds_place_in_inner_limit() {
    let server = Server::statuses([429, 200]);
    let limited = tower::limit::ConcurrencyLimit::new(server.watch(), 1);
    let mut client = PaceLayer::http(pace()).layer(limited);
    call(&mut client).await.unwrap();
    let waiting = begin(&mut client).await;
    let mut other = client.clone();
    assert_pending!(task::spawn(begin(&mut other)).poll());
    waiting.await.unwrap();
    call(&mut other).await.unwrap();
    assert_eq!(server.arrivals(), [0, 100, 200].map(ms));
}
