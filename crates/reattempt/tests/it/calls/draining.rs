//! Tests of what happens to refused responses, and to good ones.

use std::io;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use reattempt::RetryLayer;
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, AnswerBody, Server, Watch, endless, failing, get, ms, of_frames, policy, watched};

/// Refuses the first attempt with `body`, and records the state of the body at each arrival.
fn refusing(body: AnswerBody) -> (Server, Watch) {
    let (body, watch) = watched(body);
    let first = std::sync::Mutex::new(Some(body.boxed()));
    let refused = watch.clone();
    let server = Server::by(move |arrival, _| {
        if arrival > 1 {
            assert!(refused.is_dropped(), "its connection is free before the next attempt");
            return 200.into();
        }
        let body = first.lock().unwrap().take().unwrap();
        Act::Answer(Response::builder().status(503).body(body).unwrap())
    });
    (server, watch)
}

fn full(length: usize) -> AnswerBody {
    Full::from(Bytes::from(vec![0; length])).map_err(|never| match never {}).boxed()
}

// trap 07
#[tokio::test(start_paused = true)]
async fn trap_07_a_refused_response_is_drained() {
    let (server, watch) = refusing(of_frames::<io::Error>([Ok("a"), Ok("b"), Ok("c")]).boxed());
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(watch.polls(), 4, "to its end, so that the connection can be used again");
    assert_eq!(server.times(), [0, 100]);
}

// trap 07
#[tokio::test(start_paused = true)]
async fn trickling_body_is_given_up() {
    let (server, watch) = refusing(endless(ms(10)));
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(response.status(), 200);
    // Six frames, at 0, 10, … 50 ms, and one unsuccessful poll after each.
    assert!((6..=13).contains(&watch.polls()), "read for 50 ms, not {} polls", watch.polls());
    assert_eq!(server.times(), [0, 100], "the draining is part of the delay");
}

// trap 07
#[tokio::test(start_paused = true)]
async fn draining_without_delay_ends_soon() {
    let (server, _) = refusing(endless(ms(10)));
    let policy = policy().backoff(Constant::immediate());
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0, 50]);
}

// trap 07
#[tokio::test(start_paused = true)]
async fn trap_07_the_time_for_draining_can_be_set() {
    let (server, watch) = refusing(endless(ms(10)));
    let policy = policy().drain_time(ms(0));
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert!(watch.polls() <= 2);
    assert_eq!(server.times(), [0, 100]);
}

// trap 07
#[tokio::test(start_paused = true)]
async fn trap_07_too_large_body_is_dropped_unread() {
    let (server, watch) = refusing(full(16 * 1024 + 1));
    RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(watch.polls(), 0);
}

// trap 07
#[tokio::test(start_paused = true)]
async fn trap_07_as_much_as_is_allowed_is_read() {
    let (server, watch) = refusing(full(16 * 1024));
    RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(watch.polls(), 1);
    let (server, watch) = refusing(full(101));
    RetryLayer::new(policy().protocol(|http| http.drain_limit(100))).layer(server).oneshot(get()).await.unwrap();
    assert_eq!(watch.polls(), 0, "the limit can be set");
}

#[tokio::test(start_paused = true)]
async fn a_refused_body_that_fails_does_no_harm() {
    let (server, _) = refusing(failing());
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn returned_response_is_untouched() {
    for status in [200, 404, 503] {
        let (body, watch) = watched(of_frames::<io::Error>([Ok("a"), Ok("b")]));
        let body = std::sync::Mutex::new(Some(body.boxed()));
        let server = Server::by(move |arrival, _| match arrival {
            1 => 503.into(),
            _ => {
                let body = body.lock().unwrap().take().unwrap();
                Act::Answer(Response::builder().status(status).body(body).unwrap())
            }
        });
        let client = RetryLayer::new(policy().max_attempts(2)).layer(server);
        let response = client.oneshot(get()).await.unwrap();
        assert_eq!((response.status().as_u16(), watch.polls()), (status, 0));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ab");
    }
}

// trap 08
#[tokio::test(start_paused = true)]
async fn success_whose_body_fails_is_not_retried() {
    let server = Server::by(|_, _| Act::Answer(Response::new(failing())));
    let client = RetryLayer::new(policy()).layer(server.clone());
    let response = client.clone().oneshot(get()).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "some");
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(server.count(), 1);
}
