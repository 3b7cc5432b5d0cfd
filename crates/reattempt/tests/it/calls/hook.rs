//! Tests of the hook before each attempt.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::request::Parts;
use reattempt::RetryLayer;
use reattempt::retry::AttemptContext;
use reattempt_core::{Failure, FailureKind};
use tokio_test::{assert_pending, task};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Server, With, get, ms, options, policy, put, transient};

#[tokio::test(start_paused = true)]
async fn hook_sees_number_and_cause() {
    let server = Server::by(|arrival, _| match arrival {
        1 => 503.into(),
        2 => Act::Fail(std::io::ErrorKind::ConnectionReset),
        _ => 200.into(),
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let policy = policy().before_attempt(move |_: &mut Parts, attempt: AttemptContext| {
        noted.lock().unwrap().push((attempt.number, attempt.cause));
        Box::pin(async {})
    });
    RetryLayer::new(policy).layer(server).oneshot(get()).await.unwrap();
    let causes = [
        (1, None),
        (2, Some(Failure::new(FailureKind::Server).with_code(503))),
        (3, Some(Failure::new(FailureKind::Network))),
    ];
    assert_eq!(*seen.lock().unwrap(), causes);
}

#[tokio::test(start_paused = true)]
async fn hook_changes_are_made_afresh() {
    let server = Server::statuses([503, 503, 200]);
    let policy = policy().before_attempt(|head: &mut Parts, attempt: AttemptContext| {
        Box::pin(async move {
            assert!(!head.headers.contains_key("x-attempt"), "made from the caller's own head");
            head.headers.insert("x-attempt", attempt.number.into());
        })
    });
    RetryLayer::new(policy).layer(server.clone()).oneshot(put()).await.unwrap();
    let seen = server.seen();
    let numbers: Vec<_> = seen.iter().map(|seen| seen.header("x-attempt").unwrap()).collect();
    assert_eq!(numbers, ["1", "2", "3"]);
    assert!(seen.iter().all(|seen| seen.body.as_deref() == Some(b"hello")));
}

#[tokio::test(start_paused = true)]
async fn hook_runs_after_delay_and_before_sending() {
    let server = Server::statuses([503, 200]);
    let policy = policy().before_attempt(|_: &mut Parts, _| Box::pin(async { tokio::time::sleep(ms(30)).await }));
    let client = RetryLayer::new(policy).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    assert_eq!(server.count(), 0);
    call.await.unwrap();
    assert_eq!(server.times(), [30, 160]);
}

#[tokio::test(start_paused = true)]
async fn it_authenticates_again_after_a_401() {
    let token = Arc::new(Mutex::new("old"));
    let server = Server::by(|_, head| match head.headers["authorization"].to_str() {
        Ok("new") => 200.into(),
        _ => 401.into(),
    });
    let policy = policy().protocol(|http| http.on_status(StatusCode::UNAUTHORIZED, transient(401))).before_attempt(
        move |head: &mut Parts, attempt: AttemptContext| {
            let token = Arc::clone(&token);
            Box::pin(async move {
                if attempt.cause.is_some_and(|cause| cause.code() == Some(401)) {
                    *token.lock().unwrap() = "new";
                }
                let token = *token.lock().unwrap();
                head.headers.insert("authorization", token.parse().unwrap());
            })
        },
    );
    let client = RetryLayer::new(policy).layer(server.clone());
    assert_eq!(client.clone().oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 2);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 3, "the new token is used from the start");
}

#[tokio::test(start_paused = true)]
async fn a_401_alone_is_not_retried() {
    for status in [401, 409] {
        let server = Server::statuses([status]);
        RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn hook_runs_for_unretried_calls() {
    let server = Server::statuses([200]);
    let policy = policy().before_attempt(|head: &mut Parts, _| {
        Box::pin(async { drop(head.headers.insert("authorization", "me".parse().unwrap())) })
    });
    let client = RetryLayer::new(policy).layer(server.clone());
    client.clone().oneshot(get().with(options().never_retry())).await.unwrap();
    client.oneshot(get().header("upgrade", "websocket")).await.unwrap();
    assert!(server.seen().iter().all(|seen| seen.header("authorization") == Some("me")));
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn hook_sees_head_of_refused_response() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(401).header("www-authenticate", "Digest nonce=7"),
        _ => 200.into(),
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let policy = policy().protocol(|http| http.on_status(StatusCode::UNAUTHORIZED, transient(401))).before_attempt(
        move |_: &mut Parts, attempt: AttemptContext| {
            noted.lock().unwrap().push(attempt.refused.map(|refused| refused.headers["www-authenticate"].clone()));
            Box::pin(async {})
        },
    );
    RetryLayer::new(policy).layer(server).oneshot(get()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [None, Some("Digest nonce=7".parse().unwrap())]);
}
