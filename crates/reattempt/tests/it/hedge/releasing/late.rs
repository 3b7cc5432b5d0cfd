//! Tests of calls whose deadline passes, and of services that do not become ready for a hedge.

use std::future::poll_fn;
use std::io::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::error::TimeLimit;
use reattempt::hedge::HedgeLayer;
use reattempt::observe::Event;
use reattempt::{Deadline, TimedOut};
use reattempt_core::StopReason;
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use super::{Attempt, Bulkhead, refuses_first};
use crate::hedge::budget::Heard;
use crate::hedge::policy;
use crate::hedge::support::{Body, Log, Server, With, get, ms, options, tokens};

/// A call whose first attempt was refused, and whose hedge waits for its service.
macro_rules! waiting {
    ($policy:expr, $request:expr, $service:ident, $handle:ident, $call:ident) => {
        let ($service, mut $handle) = mock::pair::<Attempt, Response<Full<Bytes>>>();
        $handle.allow(1);
        let mut client = HedgeLayer::new($policy).layer($service);
        poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
        let mut $call = task::spawn(client.call($request));
        assert_pending!($call.poll());
        let (_, first) = assert_ready!(task::spawn($handle.next_request()).poll()).unwrap();
        let refusal = Response::builder().status(503).body(Full::from("busy")).unwrap();
        first.send_response(refusal);
        assert_pending!($call.poll());
    };
}

#[tokio::test(start_paused = true)]
async fn readiness_error_after_refusal_is_end() {
    waiting!(policy().boxed_errors(), get(), service, handle, call);
    handle.send_error("closed");
    let error = assert_ready!(call.poll()).unwrap_err();
    assert_eq!(error.to_string(), "closed");
}

#[tokio::test(start_paused = true)]
async fn deadline_while_readying_names_refusal() {
    let request = get().with(Deadline::after(ms(500)));
    waiting!(policy().boxed_errors(), request, service, handle, call);
    advance(ms(501)).await;
    let error = assert_ready!(call.poll()).unwrap_err();
    let error = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!((error.limit(), error.refused().unwrap().status.as_u16()), (TimeLimit::Deadline, 503));
}

/// With the service's own error type, only the next attempt can end the call.
#[tokio::test(start_paused = true)]
async fn limit_without_error_waits_for_service() {
    for limited in [false, true] {
        let deadline = limited.then(|| Deadline::after(ms(500)));
        let request = deadline.into_iter().fold(get(), With::with);
        let server = refuses_first();
        let bulkhead = Bulkhead::new(2, &server);
        let other = Arc::clone(&bulkhead.places);
        let policy = policy().max_elapsed(ms(1000)).budget(tokens(5.0));
        let mut client = HedgeLayer::new(policy.clone()).layer(bulkhead);
        poll_fn(|cx| Service::<Request<Body>>::poll_ready(&mut client, cx)).await.unwrap();
        let others = other.try_acquire_owned().unwrap();
        // Another call is ahead in the queue, and keeps the place that the refusal had.
        let queued = Arc::clone(&client.get_ref().places).acquire_owned();
        let mut queued = task::spawn(queued);
        assert_pending!(queued.poll());
        let mut call = task::spawn(client.call(request));
        assert_pending!(call.poll());
        let place = assert_ready!(queued.poll()).unwrap();
        for _ in 0..5 {
            advance(ms(700)).await;
            assert_pending!(call.poll());
        }
        assert_eq!(server.count(), 1);
        drop((others, place));
        assert!(call.is_woken());
        assert_eq!(assert_ready!(call.poll()).unwrap().status(), 200);
        assert!((policy.budget_ref().balance("one.example") - 4.1).abs() < 1e-6);
    }
}

// trap 38
#[tokio::test(start_paused = true)]
async fn late_call_is_unsent_and_frees_its_place() {
    let late = || get().with(Deadline::after(ms(0)));
    for request in
        [late(), late().with(options().max_attempts(1)), crate::hedge::support::post().with(Deadline::after(ms(0)))]
    {
        let server = Server::statuses([200]);
        let (heard, log) = (Heard::default(), Log::default());
        let policy = policy().boxed_errors().budget(heard.clone()).observe_with(log.clone());
        let mut client = HedgeLayer::new(policy).layer(server.clone());
        poll_fn(|cx| Service::<Request<Body>>::poll_ready(&mut client, cx)).await.unwrap();
        let call = client.call(request);
        assert_eq!((server.count(), server.unused()), (0, 1), "the idle handle holds no place");
        let error = call.await.unwrap_err();
        assert_eq!(error.downcast_ref::<TimedOut>().unwrap().limit(), TimeLimit::Deadline);
        assert!(heard.lines().is_empty());
        assert!(log.lines().len() <= 1, "{:?}", log.lines());
        // The handle still works.
        assert!(ServiceExt::<Request<Body>>::ready(&mut client).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn late_call_is_told_to_observers_once() {
    let server = Server::statuses([200]);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let policy = policy().boxed_errors().observe(move |_, event| {
        if let Event::GaveUp { attempts, reason } = event {
            log.lock().unwrap().push((*attempts, *reason));
        }
    });
    let client = HedgeLayer::new(policy).layer(server);
    client.oneshot(get().with(Deadline::after(ms(0)))).await.unwrap_err();
    assert_eq!(*seen.lock().unwrap(), [(0, StopReason::DeadlineExceeded)]);
}

/// If the error type cannot express a passed deadline, the call is sent, but no hedge.
#[tokio::test(start_paused = true)]
async fn late_call_with_own_errors_is_sent_once() {
    let server = Server::statuses([503]);
    let client = HedgeLayer::new(policy()).layer(server.clone());
    let answer = client.oneshot(get().with(Deadline::after(ms(0)))).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.count()), (503, 1));
}

#[tokio::test(start_paused = true)]
async fn replacement_never_ready_ends_the_call() {
    let (server, mut handle) = mock::pair::<Attempt, Response<Full<Bytes>>>();
    handle.allow(1);
    // Another call has taken the only place, and an attempt in flight holds no token either.
    let policy = policy().boxed_errors().max_elapsed(ms(1000)).budget(tokens(5.0));
    let mut client = HedgeLayer::new(policy.clone()).layer(server);
    poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let mut call = task::spawn(client.call(get()));
    assert_pending!(call.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    first.send_error(Error::from(std::io::ErrorKind::ConnectionRefused));
    assert_pending!(call.poll());
    advance(ms(1001)).await;
    let error = assert_ready!(call.poll()).unwrap_err();
    assert!(error.is::<Error>(), "what there is: {error}");
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0);
}
