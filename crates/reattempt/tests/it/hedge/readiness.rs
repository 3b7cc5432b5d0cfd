//! Tests of the instance of the inner service that sends a hedge, and of waiting for its readiness.

use http::Request;
use reattempt::error::{BoxedError, TimeLimit};
use reattempt::hedge::{Hedge, HedgeLayer, HedgePolicy};
use reattempt::{Http, Report, RetryBudget, TimedOut};
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock::{self, Mock};

use crate::hedge::policy;
use crate::hedge::support::{Act, Attempt, Body, Mocked, Server, get, mocked, ms, ready, tokens};

type Boxed = HedgePolicy<Http, RetryBudget, BoxedError>;
type Client = Hedge<Mock<Attempt, Mocked>, Boxed>;
type Call = task::Spawn<<Client as Service<Request<Body>>>::Future>;

/// Returns a call whose first attempt was sent to a service with one place.
fn begun(policy: Boxed) -> (Call, mock::Handle<Attempt, Mocked>) {
    let (service, mut handle) = mock::pair();
    handle.allow(1);
    let mut client = HedgeLayer::new(policy).layer(service);
    assert_ready_ok!(task::spawn(ServiceExt::<Request<Body>>::ready(&mut client)).poll());
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    (call, handle)
}

// trap 09
#[tokio::test(start_paused = true)]
async fn every_attempt_uses_its_readied_instance() {
    // The server panics if it is not ready, and counts instances that were readied in vain.
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
    let policy = policy().boxed_errors().budget(tokens(5.0));
    let (mut call, mut handle) = begun(policy.clone());
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
    let policy = policy().boxed_errors().budget(tokens(5.0));
    let (mut call, _handle) = begun(policy.clone());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_eq!(policy.budget_ref().balance("one.example"), 4.0);
    drop(call);
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0);
}

#[tokio::test(start_paused = true)]
async fn it_goes_as_soon_as_there_is_a_place() {
    let (mut call, mut handle) = begun(policy().boxed_errors());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    advance(ms(140)).await;
    assert_pending!(call.poll());
    handle.allow(1);
    assert!(call.is_woken());
    assert_pending!(call.poll());
    let (_, second) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    second.send_response(mocked(200));
    let answer = assert_ready_ok!(call.poll());
    assert_eq!(Report::of(&answer).unwrap().winner().unwrap(), 2);
    drop(first);
}

// trap 09
#[tokio::test(start_paused = true)]
async fn never_ready_service_is_not_awaited() {
    let policy = policy().boxed_errors().budget(tokens(5.0)).max_elapsed(ms(2000));
    let (mut call, mut handle) = begun(policy.clone());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    first.send_response(mocked(503));
    assert_pending!(call.poll());
    advance(ms(1999)).await;
    assert_pending!(call.poll());
    advance(ms(2)).await;
    let error = assert_ready_err!(call.poll());
    let error = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!((error.limit(), error.refused().unwrap().status.as_u16()), (TimeLimit::Elapsed, 503));
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0);
}

// trap 09
#[tokio::test(start_paused = true)]
async fn trap_09_readiness_error_hides_no_outcome() {
    let (mut call, mut handle) = begun(policy().boxed_errors());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    advance(ms(100)).await;
    handle.send_error("closed");
    assert_pending!(call.poll());
    first.send_response(mocked(200));
    assert_eq!(assert_ready_ok!(call.poll()).status(), 200);
}

#[tokio::test(start_paused = true)]
async fn error_of_first_attempt_is_callers_own() {
    let (mut call, mut handle) = begun(policy().boxed_errors());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    first.send_error("broken");
    assert_eq!(assert_ready_err!(call.poll()).to_string(), "broken");
}
