//! Calls that are turned away, and handles that are not ready.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use reattempt::pace::{PaceLayer, PaceRefusal, PaceRefused};
use reattempt::{CallOptions, Deadline, Report, RetryLayer, RetryPolicy};
use reattempt_control::RetryBudget;
use reattempt_schedule_fixed::Constant;
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::support::{Answer, Server, answer, call, ms, pace, request, secs};

fn refused(error: &BoxError) -> PaceRefused {
    *error.downcast_ref().expect("it was turned away by the pace")
}

fn checked<S>(client: S) -> S
where
    S: Service<Request<Empty<Bytes>>, Response = Answer, Error = BoxError>,
{
    client
}

async fn send<S>(client: &mut S, request: Request<Empty<Bytes>>) -> Answer
where
    S: Service<Request<Empty<Bytes>>, Response = Answer, Error = BoxError>,
{
    client.ready().await.unwrap().call(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_turns_calls_away() {
    let server = Server::statuses([429, 503]);
    let layer = PaceLayer::http(pace()).boxed_errors().max_waiting(2);
    let client = layer.layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let mut waiting: Vec<_> =
        (0..2).map(|_| task::spawn(client.clone().oneshot(request()))).collect();
    waiting.iter_mut().for_each(|call| assert_pending!(call.poll()));

    let error = client.clone().oneshot(request()).await.unwrap_err();
    assert_eq!(refused(&error).reason(), PaceRefusal::QueueFull);
    assert_eq!(refused(&error).wait(), ms(300));
    let text = "the call was not sent: too many calls wait for their turns (300ms)";
    assert_eq!(error.to_string(), text);
    // trap 38
    assert_eq!(server.unused(), 1, "what was made ready for it is let go of");

    drop(waiting.pop());
    assert_pending!(task::spawn(client.oneshot(request())).poll());
    assert_eq!(server.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn wait_that_is_too_long_is_refused_at_once() {
    let server = Server::statuses([429, 503]);
    let layer = PaceLayer::http(pace()).boxed_errors().max_wait(ms(99));
    let mut client = layer.layer(server.watch());
    call(&mut client).await.unwrap();
    let error = call(&mut client).await.unwrap_err();
    assert_eq!(refused(&error).reason(), PaceRefusal::WaitTooLong);
    assert_eq!(server.unused(), 1);
    assert_eq!(refused(&error).wait(), ms(100));
    // Time brings the turn nearer, though no call was sent.
    tokio::time::advance(ms(1)).await;
    assert_eq!(call(&mut client).await.unwrap().status(), 503);
    assert_eq!(server.arrivals(), [0, 100].map(ms));
}

/// A turn that moves past the longest wait ends the call as soon as that is known.
#[tokio::test(start_paused = true)]
async fn a_turn_that_moves_away_ends_the_wait() {
    let server = Server::statuses([429]);
    let layer = PaceLayer::http(pace()).boxed_errors().max_wait(ms(250));
    let client = layer.layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let (first, second) =
        tokio::join!(client.clone().oneshot(request()), client.clone().oneshot(request()));
    assert_eq!(first.unwrap().status(), 429);
    // Due after 200 ms at first, and after 300 ms once the interval had doubled.
    assert_eq!(refused(&second.unwrap_err()).reason(), PaceRefusal::WaitTooLong);
}

#[tokio::test(start_paused = true)]
async fn deadline_before_turn_is_refused_at_once() {
    let server = Server::statuses([429, 503]);
    let client = PaceLayer::http(pace()).boxed_errors().layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let late = |add: fn(&mut Request<_>)| {
        let mut late = request();
        add(&mut late);
        client.clone().oneshot(late)
    };
    let by_extension = late(|request| {
        request.extensions_mut().insert(Deadline::after(ms(100)));
    });
    let by_options = late(|request| {
        let options = CallOptions::new().deadline(Deadline::after(ms(50)));
        request.extensions_mut().insert(options);
    });
    for call in [by_extension, by_options] {
        let error = call.await.unwrap_err();
        assert_eq!(refused(&error).reason(), PaceRefusal::DeadlineTooSoon);
    }
    let in_time = late(|request| {
        request.extensions_mut().insert(Deadline::after(ms(101)));
    });
    assert_eq!(in_time.await.unwrap().status(), 503);
    assert_eq!(server.arrivals(), [0, 100].map(ms));
}

/// gRPC answers in its own types, and the answer is marked.
#[tokio::test(start_paused = true)]
async fn grpc_is_answered_by_the_layer() {
    let server = Server::<Answer>::by(|_| {
        let mut answer = answer(200);
        answer.headers_mut().insert("grpc-status", 8.into());
        Ok(answer)
    });
    let client = PaceLayer::grpc(pace()).max_waiting(0).layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let full = client.clone().oneshot(request()).await.unwrap();
    assert_eq!(full.headers()["grpc-status"], "8");
    let mark: &PaceRefused = full.extensions().get().unwrap();
    assert_eq!(mark.reason(), PaceRefusal::QueueFull);

    let client = PaceLayer::grpc(client.pace().clone()).layer(server.watch());
    let mut late = request();
    late.headers_mut().insert("grpc-timeout", "99m".parse().unwrap());
    let late = client.oneshot(late).await.unwrap();
    assert_eq!(late.headers()["grpc-status"], "4");
    assert_eq!(server.arrivals().len(), 1);
}

/// The inner service's own error type has no room for a refusal, so handles are not ready instead.
#[tokio::test(start_paused = true)]
async fn own_errors_make_a_full_queue_not_ready() {
    let server = Server::statuses([429, 503]);
    let layer = PaceLayer::http(pace()).max_waiting(1);
    let client = layer.layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let mut waiting = task::spawn(client.clone().oneshot(request()));
    assert_pending!(waiting.poll());
    let mut blocked = client.clone();
    let mut ready = task::spawn(ServiceExt::<Request<Empty<Bytes>>>::ready(&mut blocked));
    assert!(ready.poll().is_pending());
    assert!(!ready.is_woken());
    tokio::time::advance(ms(101)).await;
    assert_ready_ok!(waiting.poll());
    assert!(ready.is_woken());
    let Poll::Ready(Ok(ready)) = ready.poll() else { panic!("there is room") };
    ready.call(request()).await.unwrap();
    assert_eq!(server.arrivals().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn blocked_handle_readies_as_waiters_drop() {
    let server = Server::statuses([429, 503]);
    let client = PaceLayer::http(pace()).max_waiting(1).layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let mut waiting = task::spawn(client.clone().oneshot(request()));
    assert_pending!(waiting.poll());
    let mut blocked = client.clone();
    let mut ready = task::spawn(ServiceExt::<Request<Empty<Bytes>>>::ready(&mut blocked));
    assert!(ready.poll().is_pending());
    drop(waiting);
    assert!(ready.is_woken());
    assert!(ready.poll().is_ready());
}

/// A waker that does nothing.
struct Still;

impl Wake for Still {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test(start_paused = true)]
async fn dropped_blocked_handle_leaves_no_waker() {
    let server = Server::statuses([429, 503]);
    let client = PaceLayer::http(pace()).max_waiting(1).layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let mut waiting = task::spawn(client.clone().oneshot(request()));
    assert_pending!(waiting.poll());
    let (mut blocked, still) = (client.clone(), Arc::new(Still));
    let waker = Waker::from(Arc::clone(&still));
    let mut context = Context::from_waker(&waker);
    let ready = Service::<Request<Empty<Bytes>>>::poll_ready(&mut blocked, &mut context);
    assert!(ready.is_pending());
    assert_eq!(Arc::strong_count(&still), 3);
    drop(blocked);
    assert_eq!(Arc::strong_count(&still), 2, "the queue has kept it");
    drop(waiting);
}

/// Nothing of a call that was turned away was sent, so it is retried whatever it is.
#[tokio::test(start_paused = true)]
async fn a_retry_layer_sends_a_refused_call_again() {
    let server = Server::statuses([429, 200]);
    let pace = pace();
    let policy = RetryPolicy::http()
        .backoff(Constant::new(ms(60)))
        .budget(RetryBudget::unlimited())
        .max_attempts(3)
        .boxed_errors();
    let inner = PaceLayer::http(pace.clone()).boxed_errors().max_wait(ms(50));
    let mut client = checked(RetryLayer::new(policy).layer(inner.layer(server.watch())));
    let mut post = request();
    *post.method_mut() = http::Method::POST;
    let answer = send(&mut client, post).await;
    assert_eq!(answer.status(), 200);
    let report: &Report = answer.extensions().get().unwrap();
    // The 429, one that was turned away, and the success.
    assert_eq!(report.attempts().len(), 3);
    assert_eq!((server.arrivals().len(), pace.metrics().times_up), (2, 1));
    assert!(server.arrivals()[1] < secs(1));
}
