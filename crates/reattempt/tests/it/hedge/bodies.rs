//! Tests of one request body under several attempts, and of the losers' effect on the winner's body.

use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use reattempt::error::BoxedError;
use reattempt::hedge::{Hedge, HedgeLayer, HedgePolicy};
use reattempt::{Http, Report};
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory};
use tokio::sync::mpsc;
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_test::mock::{self, Mock};

use crate::hedge::policy;
use crate::hedge::support::{FedBody, ONE, With, fed, ms, of_frames, options};

type Upload = ReplayBody<FedBody>;
type Mocked = Response<FedBody>;
type Server = Mock<Request<Upload>, Mocked>;
type Handle = mock::Handle<Request<Upload>, Mocked>;
type Client = Hedge<Server, HedgePolicy<Http, reattempt_control::RetryBudget, BoxedError>>;

fn client(policy: HedgePolicy) -> (Client, Handle) {
    let (service, mut handle) = mock::pair();
    handle.allow(10);
    (HedgeLayer::new(policy.boxed_errors()).layer(service), handle)
}

fn upload(body: FedBody) -> Request<FedBody> {
    Request::post(ONE).body(body).unwrap().with(options().repeatable(true))
}

/// Returns the next attempt that has arrived.
fn arrived(handle: &mut Handle) -> Arrived {
    let (request, respond) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    (request.into_body(), respond)
}

/// Returns the next frame of an upload, if it has arrived.
fn read(upload: &mut Upload) -> Option<Result<Bytes, tower::BoxError>> {
    let frame = assert_ready!(task::spawn(upload.frame()).poll())?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

fn text(upload: &mut Upload) -> Bytes {
    read(upload).expect("a frame").unwrap()
}

/// Returns the next `length` bytes of an upload, in any number of frames.
fn text_of(upload: &mut Upload, length: usize) -> String {
    let mut read = String::new();
    while read.len() < length {
        read.push_str(std::str::from_utf8(&text(upload)).unwrap());
    }
    read
}

fn answer(status: u16) -> (mpsc::UnboundedSender<Bytes>, Mocked) {
    let (speak, spoken) = fed();
    (speak, Response::builder().status(status).body(spoken).unwrap())
}

type Arrived = (Upload, mock::SendResponse<Mocked>);
type Call = task::Spawn<<Client as Service<Request<FedBody>>>::Future>;

/// Returns a call whose first attempt and one hedge are in flight.
async fn two_in_flight(client: &mut Client, handle: &mut Handle, body: FedBody) -> (Call, Arrived, Arrived) {
    assert_ready_ok!(task::spawn(ServiceExt::<Request<FedBody>>::ready(client)).poll());
    let mut call = task::spawn(client.call(upload(body)));
    assert_pending!(call.poll());
    let first = arrived(handle);
    advance(ms(100)).await;
    assert_pending!(call.poll());
    (call, first, arrived(handle))
}

// BUF-11, HG-10
#[tokio::test(start_paused = true)]
async fn new_attempt_gets_what_was_sent_before() {
    let (mut client, mut handle) = client(policy());
    let (speak, body) = fed();
    speak.send("one".into()).unwrap();
    let (mut call, mut first, mut second) = two_in_flight(&mut client, &mut handle, body).await;
    assert_eq!(text(&mut first.0), "one");
    speak.send("two".into()).unwrap();
    assert_eq!(text(&mut first.0), "two");
    // Saved frames may have been merged.
    assert_eq!(text_of(&mut second.0, 6), "onetwo");
    advance(ms(100)).await;
    assert_pending!(call.poll());
    let mut third = arrived(&mut handle);
    drop(speak);
    assert_eq!(text_of(&mut third.0, 6), "onetwo");
    for upload in [&mut first.0, &mut second.0, &mut third.0] {
        assert!(read(upload).is_none(), "the end as well");
    }
    third.1.send_response(answer(200).1);
    assert_ready_ok!(call.poll());
}

// trap 27
#[tokio::test(start_paused = true)]
async fn losers_reader_does_not_stall_winner() {
    let (mut client, mut handle) = client(policy());
    let (speak, body) = fed();
    speak.send("one".into()).unwrap();
    let (mut call, mut first, mut second) = two_in_flight(&mut client, &mut handle, body).await;
    assert_eq!(text(&mut first.0), "one");
    assert_eq!(text(&mut second.0), "one");
    second.1.send_response(answer(200).1);
    assert_ready_ok!(call.poll());
    drop(call);
    // The first attempt's task has not noticed yet. The rest is more than the limit.
    for _ in 0..100 {
        speak.send(vec![7; 4096].into()).unwrap();
        assert_eq!(text(&mut second.0).len(), 4096);
    }
    drop(speak);
    assert!(read(&mut second.0).is_none());
    drop(first);
}

// trap 27
#[tokio::test(start_paused = true)]
async fn winner_streams_on_without_losers() {
    let (mut client, mut handle) = client(policy());
    let (_speak, body) = fed();
    let (mut call, first, second) = two_in_flight(&mut client, &mut handle, body).await;
    let (speak, response) = answer(200);
    second.1.send_response(response);
    let mut response = assert_ready_ok!(call.poll());
    assert_eq!(Report::of(&response).unwrap().winner().unwrap(), 2);
    drop(call);
    drop(first);
    advance(ms(10_000)).await;
    for part in ["one", "two"] {
        assert_pending!(task::spawn(response.body_mut().frame()).poll());
        speak.send(part.into()).unwrap();
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
    }
    drop(speak);
    assert!(response.body_mut().frame().await.is_none());
}

// BUF-8, HG-12
#[tokio::test(start_paused = true)]
async fn outgrown_body_is_sent_once_unhedged() {
    let (mut client, mut handle) = client(policy().protocol(|http| http.replay(ReplayLimits::default().per_call(64))));
    let (speak, body) = fed();
    assert_ready_ok!(task::spawn(ServiceExt::<Request<FedBody>>::ready(&mut client)).poll());
    let mut call = task::spawn(client.call(upload(body)));
    assert_pending!(call.poll());
    let mut first = arrived(&mut handle);
    speak.send(vec![1; 100].into()).unwrap();
    assert_eq!(text(&mut first.0).len(), 100);
    advance(ms(1000)).await;
    assert_pending!(call.poll());
    assert_pending!(task::spawn(handle.next_request()).poll());
    first.1.send_response(answer(200).1);
    let response = assert_ready_ok!(call.poll());
    assert!(Report::of(&response).is_none());
}

// BUF-8, HG-12
#[tokio::test(start_paused = true)]
async fn attempt_that_read_most_goes_on_alone() {
    let (mut client, mut handle) =
        client(policy().max_attempts(5).protocol(|http| http.replay(ReplayLimits::default().per_call(64))));
    let (speak, body) = fed();
    speak.send("one".into()).unwrap();
    let (mut call, mut first, mut second) = two_in_flight(&mut client, &mut handle, body).await;
    assert_eq!((text(&mut first.0), text(&mut second.0)), ("one".into(), "one".into()));
    speak.send(vec![1; 100].into()).unwrap();
    assert_eq!(text(&mut first.0).len(), 100);
    // The other is cut off, and its client reports this in its own way.
    let error = read(&mut second.0).unwrap().unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ReplayError::NotKept)));
    // As an error that cannot be distinguished from a server failure.
    drop(error);
    second.1.send_error(Box::new(io::Error::other("the stream was reset")) as tower::BoxError);
    assert_pending!(call.poll());
    advance(ms(1000)).await;
    assert_pending!(call.poll());
    assert_pending!(task::spawn(handle.next_request()).poll());
    first.1.send_response(answer(200).1);
    let response = assert_ready_ok!(call.poll());
    assert_eq!(Report::of(&response).unwrap().winner().unwrap(), 1);
}

// BUF-8
#[tokio::test(start_paused = true)]
async fn error_in_poll_of_cut_is_no_outcome() {
    // The client reads the body inside its own future, and reports nothing more about its error.
    let client = service_fn(|request: Request<Upload>| async move {
        let length = request.into_body().collect().await.map(|body| body.to_bytes().len());
        let length = length.map_err(|_| io::Error::other("the stream was reset"))?;
        tokio::time::sleep(ms(50)).await;
        Ok::<_, io::Error>(Response::builder().header("length", length).body(Empty::<Bytes>::new()).unwrap())
    });
    let policy = policy().max_attempts(2).protocol(|http| http.replay(ReplayLimits::default().per_call(64)));
    let client = HedgeLayer::new(policy).layer(client);
    let (speak, body) = fed();
    let mut call = task::spawn(client.oneshot(upload(body)));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    speak.send(vec![1; 100].into()).unwrap();
    drop(speak);
    assert_pending!(call.poll());
    advance(ms(100)).await;
    let answer = assert_ready_ok!(call.poll());
    assert_eq!(answer.headers()["length"], "100");
    assert_eq!(Report::of(&answer).unwrap().winner().unwrap(), 1);
}

// BUF-10, HG-12
#[tokio::test(start_paused = true)]
async fn real_failure_beats_waiting_for_cut_off() {
    let (mut client, mut handle) = client(policy().protocol(|http| http.replay(ReplayLimits::default().per_call(64))));
    let (speak, body) = fed();
    let (mut call, mut first, _second) = two_in_flight(&mut client, &mut handle, body).await;
    speak.send(vec![1; 100].into()).unwrap();
    assert_eq!(text(&mut first.0).len(), 100);
    first.1.send_response(answer(503).1);
    assert_eq!(assert_ready_ok!(call.poll()).status(), 503);
}

// BUF-10
#[tokio::test(start_paused = true)]
async fn all_cut_off_leaves_one_for_an_outcome() {
    let (mut client, mut handle) = client(policy());
    let (_speak, body) = fed();
    let (mut call, first, second) = two_in_flight(&mut client, &mut handle, body).await;
    // A client that takes the body away from all other readers.
    let own = first.0.try_clone().unwrap();
    own.cancel_others();
    assert_pending!(call.poll());
    second.1.send_error(ReplayError::Superseded);
    let error = assert_ready!(call.poll()).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ReplayError::Superseded)));
}

// BUF-9, HG-12
#[tokio::test(start_paused = true)]
async fn winner_gives_buffer_back() {
    let memory = ReplayMemory::new(1 << 20);
    let limits = ReplayLimits::default().memory(memory.clone());
    let (mut client, mut handle) = client(policy().protocol(|http| http.replay(limits)));
    let (speak, body) = fed();
    let (mut call, mut first, second) = two_in_flight(&mut client, &mut handle, body).await;
    speak.send(vec![1; 1000].into()).unwrap();
    assert_eq!(text(&mut first.0).len(), 1000);
    assert_eq!(memory.used(), 1000);
    drop(second);
    assert_eq!(memory.used(), 1000, "for a third attempt");
    first.1.send_response(answer(200).1);
    let _response = assert_ready_ok!(call.poll());
    assert_eq!(memory.used(), 0, "though the call and its winner are still held");
}

#[tokio::test(start_paused = true)]
async fn callers_body_error_ends_call() {
    // With two attempts allowed, nothing is kept once the second is in flight.
    for (most, in_flight) in [(3, 1), (3, 2), (2, 2)] {
        let (service, mut handle) = mock::pair::<Request<ReplayBody<_>>, Response<FedBody>>();
        handle.allow(10);
        let policy = policy().max_attempts(most).boxed_errors();
        let mut client = HedgeLayer::new(policy).layer(service);
        let body = of_frames([Ok("one"), Err(io::Error::from(io::ErrorKind::ConnectionReset))]);
        let request = Request::post(ONE).body(body).unwrap().with(options().repeatable(true));
        client.ready().await.unwrap();
        let mut call = task::spawn(client.call(request));
        assert_pending!(call.poll());
        let (first, respond) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
        let mut second = None;
        if in_flight > 1 {
            advance(ms(100)).await;
            assert_pending!(call.poll());
            second = assert_ready!(task::spawn(handle.next_request()).poll());
        }
        let error = assert_ready!(task::spawn(first.into_body().collect()).poll()).unwrap_err();
        respond.send_error(error);
        let error = assert_ready!(call.poll()).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(ReplayError::Source(_))), "{most}");
        assert_pending!(task::spawn(handle.next_request()).poll());
        drop(second);
    }
}
