//! Tests of a call's deadline.

use http::Request;
use reattempt::error::TimeLimit;
use reattempt::hedge::HedgeLayer;
use reattempt::{Deadline, TimedOut};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};

use crate::hedge::policy;
use crate::hedge::support::{Act, Body, Log, Server, With, get, ms, options};

// HG-11
#[tokio::test(start_paused = true)]
async fn hg_11_the_deadline_ends_the_whole_set() {
    let server = Server::by(|_, _| Act::Hang);
    let client = HedgeLayer::new(policy().boxed_errors()).layer(server.clone());
    let began = Instant::now();
    let error = client.oneshot(get().with(Deadline::after(ms(150)))).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!(timed_out.limit(), TimeLimit::Deadline);
    assert_eq!((began.elapsed(), timed_out.after()), (ms(150), ms(150)));
    assert_eq!((server.times(), server.cancelled()), (vec![0, 100], 2));
}

// HG-11
#[tokio::test(start_paused = true)]
async fn deadline_ends_unhedged_request_too() {
    let server = Server::by(|_, _| Act::Hang);
    let client = HedgeLayer::new(policy().boxed_errors()).layer(server.clone());
    let request = crate::hedge::support::post().with(options().deadline(Deadline::after(ms(150))));
    let error = client.oneshot(request).await.unwrap_err();
    assert!(error.is::<TimedOut>());
    assert_eq!((server.count(), server.cancelled()), (1, 1));
}

// HG-11
#[tokio::test(start_paused = true)]
async fn deadline_names_answer_refused_before() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(10)),
        _ => Act::Hang,
    });
    let client = HedgeLayer::new(policy().max_attempts(2).boxed_errors()).layer(server);
    let error = client.oneshot(get().with(Deadline::after(ms(150)))).await.unwrap_err();
    let refused = error.downcast_ref::<TimedOut>().unwrap().refused().unwrap();
    assert_eq!(refused.status, 503);
}

// HG-11
#[tokio::test(start_paused = true)]
async fn own_errors_only_prevent_further_attempts() {
    let server = Server::by(|_, _| Act::from(200).later(ms(1000)));
    let client = HedgeLayer::new(policy()).layer(server.clone());
    client.oneshot(get().with(Deadline::after(ms(200)))).await.unwrap();
    assert_eq!(server.times(), [0, 100], "none at the deadline itself");
}

#[tokio::test(start_paused = true)]
async fn every_attempt_carries_the_deadline() {
    let server = Server::by(|_, _| Act::from(200).later(ms(1000)));
    let client = HedgeLayer::new(policy()).layer(server.clone());
    let deadline = Deadline::after(ms(5000));
    client.oneshot(get().with(options().deadline(deadline))).await.unwrap();
    for seen in server.seen() {
        assert_eq!(seen.head.extensions.get::<Deadline>(), Some(&deadline));
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_below_is_mended_by_next_attempt() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::Hang,
        _ => 200.into(),
    });
    let client = tower::ServiceBuilder::new()
        .layer(HedgeLayer::new(policy().delay(ms(1000)).boxed_errors()))
        .layer(tower::timeout::TimeoutLayer::new(ms(50)))
        .service(server.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.times(), [0, 50]);
}

#[tokio::test(start_paused = true)]
async fn ended_call_is_silent_past_its_deadline() {
    let log = Log::default();
    let server = Server::statuses([200]);
    let policy = policy().observe_with(log.clone()).boxed_errors();
    let mut client = HedgeLayer::new(policy).layer(server.clone());
    let request = get().with(Deadline::after(ms(150)));
    assert_ready_ok!(task::spawn(ServiceExt::<Request<Body>>::ready(&mut client)).poll());
    let mut call = task::spawn(client.call(request));
    assert_ready_ok!(call.poll());
    let told = log.lines();
    advance(ms(200)).await;
    assert_pending!(call.poll());
    assert_eq!((log.lines(), server.count()), (told, 1));
}
