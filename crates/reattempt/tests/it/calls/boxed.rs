//! Tests of inner services whose error is a `BoxError`, behind tower's own middleware.

use std::io::ErrorKind::ConnectionReset;

use reattempt::RetryLayer;
use reattempt::report::AttemptOutcome;
use reattempt_core::FailureKind;
use tower::timeout::error::Elapsed;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};

use crate::calls::support::{Act, Answer, Broken, Server, get, ms, policy, post, report_of};

#[tokio::test(start_paused = true)]
async fn timeout_of_tower_counts_as_timeout() {
    let server = Server::by(|arrival, _| if arrival == 1 { Act::Hang } else { 200.into() });
    let client =
        ServiceBuilder::new().layer(RetryLayer::new(policy().boxed_errors())).timeout(ms(50)).service(server.clone());
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!((server.times(), server.cancelled()), (vec![0, 150], 1));
    let AttemptOutcome::Failed { failure, .. } = &report_of(&response).attempts()[0].outcome else {
        panic!("a timeout is worth a retry");
    };
    assert_eq!(failure.kind(), FailureKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_post_behind_a_timeout_is_not_repeated() {
    let server = Server::by(|_, _| Act::Hang);
    let inner = ServiceBuilder::new().timeout(ms(50)).service(server.clone());
    let result: Result<Answer, BoxError> = RetryLayer::new(policy().boxed_errors()).layer(inner).oneshot(post()).await;
    assert!(result.unwrap_err().is::<Elapsed>(), "the error is tower's own");
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn behind_a_buffer() {
    let server = Server::by(|arrival, _| match arrival {
        1 => 503.into(),
        2 => ConnectionReset.into(),
        _ => 200.into(),
    });
    let inner = ServiceBuilder::new().buffer(1).service(server.clone());
    let client = RetryLayer::new(policy().boxed_errors()).layer(inner);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.times(), [0, 100, 200]);
}

// trap 09
#[tokio::test(start_paused = true)]
async fn buffer_of_one_serves_many_waiting_calls() {
    // If readiness were taken before the wait, each call in backoff would hold the only place.
    let server = Server::statuses([503]);
    let inner = ServiceBuilder::new().buffer(1).service(server.clone());
    let policy = policy().budget(reattempt_core::Unlimited).boxed_errors();
    let client = RetryLayer::new(policy).layer(inner);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        calls.spawn(client.clone().oneshot(get()));
    }
    let all = tokio::time::timeout(ms(10_000), calls.join_all()).await.unwrap();
    assert!(all.iter().all(|result| result.as_ref().is_ok_and(|response| response.status() == 503)));
    assert_eq!(server.count(), 60);
    assert!(server.times().iter().all(|&time| time <= 210), "{:?}", server.times());
}

#[tokio::test(start_paused = true)]
async fn the_inner_error_is_found_in_the_box() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let inner = ServiceBuilder::new().timeout(ms(50)).service(server);
    let client = RetryLayer::new(policy().boxed_errors()).layer(inner);
    let error = client.oneshot(get()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Broken>().unwrap().attempt, 3);
}

#[tokio::test(start_paused = true)]
async fn a_buffer_that_is_closed_is_the_error() {
    let (inner, worker) = tower::buffer::Buffer::pair(Server::statuses([200]), 1);
    drop(worker);
    let client = RetryLayer::new(policy().boxed_errors()).layer(inner);
    let error = client.oneshot(get()).await.unwrap_err();
    assert!(error.is::<tower::buffer::error::Closed>(), "{error}");
}
