//! Tests of the error type with which a call ends.

use std::error::Error;
use std::future::ready;
use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, InvalidData};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use http_body_util::BodyExt;
use reattempt::{Report, RetryLayer};
use reattempt_replay::ReplayBody;
use tower::load_shed::error::Overloaded;
use tower::{BoxError, Layer, ServiceExt, service_fn};

use crate::calls::support::{
    Act, Answer, Attempt, Body, Broken, Mocked, ONE, Server, answer, get, policy, post, request,
};

// trap 30
#[tokio::test(start_paused = true)]
async fn last_error_keeps_inner_type() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let result: Result<Answer, Broken> = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await;
    let error = result.unwrap_err();
    assert_eq!((error.attempt, server.count()), (3, 3));
    let cause = error.source().unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(cause.kind(), ConnectionReset);
}

// trap 30
#[tokio::test(start_paused = true)]
async fn last_of_errors_and_responses_returns() {
    let server = Server::by(|arrival, _| match arrival {
        3 => Act::Answer(answer(500, "the real thing")),
        _ => ConnectionReset.into(),
    });
    let response = RetryLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
    assert_eq!(response.status(), 500);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "the real thing");

    let server = Server::by(|arrival, _| if arrival == 3 { InvalidData.into() } else { 503.into() });
    let error = RetryLayer::new(policy()).layer(server).oneshot(get()).await.unwrap_err();
    assert_eq!(error.attempt, 3);
}

#[tokio::test(start_paused = true)]
async fn error_that_nobody_knows_is_not_retried() {
    let server = Server::by(|_, _| InvalidData.into());
    let error = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap_err();
    assert_eq!((error.attempt, server.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn unsent_is_retried_for_every_method() {
    // If the body had been inspected, there would be no proof.
    for body in ["hello", ""] {
        let sent = AtomicUsize::new(0);
        let unmade = service_fn(|_: Attempt| {
            sent.fetch_add(1, Ordering::SeqCst);
            ready(Err::<Mocked, _>(std::io::Error::from(ConnectionRefused)))
        });
        let post = request("POST", ONE, body);
        RetryLayer::new(policy()).layer(unmade).oneshot(post).await.unwrap_err();
        assert_eq!(sent.into_inner(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_connection_retries_repeatable_only() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.clone().oneshot(post()).await.unwrap_err();
    assert_eq!(server.count(), 1);
    client.oneshot(get()).await.unwrap_err();
    assert_eq!(server.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn first_success_or_final_has_no_report() {
    for status in [200, 204, 302, 400, 404, 501] {
        let server = Server::statuses([status]);
        let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!((response.status().as_u16(), server.count()), (status, 1));
        assert!(response.extensions().get::<Report>().is_none());
    }
}

/// tower's load shedder refuses an attempt before it is sent, so any request may be sent again. The caller gets the
/// server's own response.
#[tokio::test(start_paused = true)]
async fn overloaded_is_retried_as_not_sent() {
    let server = Server::statuses([503, 200]);
    let shed = Arc::new(AtomicUsize::new(0));
    let inner = server.clone();
    let service = service_fn(move |request: Request<ReplayBody<Body>>| {
        let (inner, turned_away) = (inner.clone(), shed.fetch_add(1, Ordering::SeqCst).is_multiple_of(2));
        async move {
            match turned_away {
                true => Err(BoxError::from(Overloaded::new())),
                false => inner.oneshot(request).await.map_err(BoxError::from),
            }
        }
    });
    let policy = policy().max_attempts(4).boxed_errors();
    let client = RetryLayer::new(policy).layer(service);
    let response = client.clone().oneshot(post()).await.unwrap();
    assert_eq!((response.status(), server.times()), (503.try_into().unwrap(), vec![100]));
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!((response.status(), server.count()), (200.try_into().unwrap(), 2));
}
