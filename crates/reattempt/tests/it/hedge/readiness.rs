//! On which instance of the inner service a hedge is sent, and what waits for its readiness.

use http::{Request, Response};
use http_body_util::Empty;
use reattempt::TimedOut;
use reattempt::error::TimeLimit;
use reattempt::hedge::{HedgeLayer, HedgeReport};
use reattempt_replay::ReplayBody;
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use crate::hedge::policy;
use crate::hedge::support::{Act, Body, Server, get, ms, tokens};

type Attempt = Request<ReplayBody<Body>>;
type Mocked = Response<Empty<bytes::Bytes>>;

/// The client, readied for a request of this kind.
async fn ready<S: Service<Request<Body>, Error: std::fmt::Debug>>(client: &mut S) -> &mut S {
    client.ready().await.unwrap()
}

fn mocked(status: u16) -> Mocked {
    Response::builder().status(status).body(Empty::new()).unwrap()
}

// trap 09
#[tokio::test(start_paused = true)]
async fn every_attempt_uses_its_readied_instance() {
    // The server panics if it is not, and counts what was readied in vain.
    let server = Server::by(|_, _| Act::from(200).later(ms(1000)));
    let mut client = HedgeLayer::new(policy()).layer(server.clone());
    for _ in 0..3 {
        ready(&mut client).await.call(get()).await.unwrap();
    }
    drop(client);
    assert_eq!((server.count(), server.unused()), (9, 0));
}

// trap 09
#[tokio::test(start_paused = true)]
async fn hedge_waits_for_readiness_beside_first() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(1);
    let policy = policy().boxed_errors().budget(tokens(5.0));
    let mut client = HedgeLayer::new(policy.clone()).layer(service);
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_pending!(task::spawn(handle.next_request()).poll());
    assert_eq!(policy.budget_ref().balance("one.example"), 4.0, "taken for one that may be sent");
    first.send_response(mocked(200));
    assert_eq!(assert_ready_ok!(call.poll()).status(), 200);
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0, "trap 11: it was not");
}

// trap 11
#[tokio::test(start_paused = true)]
async fn unsent_hedge_returns_token_on_drop() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(1);
    let policy = policy().boxed_errors().budget(tokens(5.0));
    let mut client = HedgeLayer::new(policy.clone()).layer(service);
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_eq!(policy.budget_ref().balance("one.example"), 4.0);
    drop(call);
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0);
}

#[tokio::test(start_paused = true)]
async fn it_goes_as_soon_as_there_is_a_place() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(1);
    let mut client = HedgeLayer::new(policy().boxed_errors()).layer(service);
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    advance(ms(140)).await;
    assert_pending!(call.poll());
    handle.allow(1);
    assert!(call.is_woken());
    assert_pending!(call.poll());
    let (_, second) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    second.send_response(mocked(200));
    let answer = assert_ready_ok!(call.poll());
    assert_eq!(answer.extensions().get::<HedgeReport>().unwrap().winner(), 2);
    drop(first);
}

// trap 09
#[tokio::test(start_paused = true)]
async fn never_ready_service_is_not_awaited() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(1);
    let policy = policy().boxed_errors().budget(tokens(5.0)).max_elapsed(ms(2000));
    let mut client = HedgeLayer::new(policy.clone()).layer(service);
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    first.send_response(mocked(503));
    assert_pending!(call.poll());
    advance(ms(1999)).await;
    assert_pending!(call.poll());
    advance(ms(2)).await;
    let error = assert_ready_err!(call.poll());
    let error = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!(
        (error.limit(), error.refused().unwrap().status.as_u16()),
        (TimeLimit::Elapsed, 503)
    );
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0);
}

// trap 09
#[tokio::test(start_paused = true)]
async fn trap_09_readiness_error_hides_no_outcome() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(1);
    let mut client = HedgeLayer::new(policy().boxed_errors()).layer(service);
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    advance(ms(100)).await;
    handle.send_error("closed");
    assert_pending!(call.poll());
    first.send_response(mocked(200));
    assert_eq!(assert_ready_ok!(call.poll()).status(), 200);
}

#[tokio::test(start_paused = true)]
async fn error_of_first_attempt_is_callers_own() {
    let (service, mut handle) = mock::pair::<Attempt, Mocked>();
    handle.allow(1);
    let mut client = HedgeLayer::new(policy().boxed_errors()).layer(service);
    assert_ready_ok!(task::spawn(client.ready()).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    first.send_error("broken");
    assert_eq!(assert_ready_err!(call.poll()).to_string(), "broken");
}
