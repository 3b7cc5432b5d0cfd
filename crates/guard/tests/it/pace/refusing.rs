//! Tests of refused calls.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::guard::contract::GuardKind;
use reattempt::guard::{GuardLayer, Pace, Reason, Refused};
use reattempt::{CallOptions, Deadline, Report, RetryLayer, RetryPolicy};
use reattempt_control::RetryBudget;
use reattempt_schedule_fixed::Constant;
use tokio_test::{assert_pending, task};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::support::{Answer, Server, answer, call, ms, pace, request, secs};

fn refused(error: &BoxError) -> Refused {
    *error.downcast_ref().expect("it was turned away by the pace")
}

fn checked<S, B>(client: S) -> S
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = BoxError>,
{
    client
}

async fn send<S, B>(client: &mut S, request: Request<Empty<Bytes>>) -> Response<B>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = BoxError>,
{
    client.ready().await.unwrap().call(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_turns_calls_away() {
    let server = Server::statuses([429, 503]);
    let layer = GuardLayer::http(Pace::new(pace()).queue(2, secs(30)));
    let client = layer.layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let mut waiting: Vec<_> = (0..2).map(|_| task::spawn(client.clone().oneshot(request()))).collect();
    waiting.iter_mut().for_each(|call| assert_pending!(call.poll()));

    let error = client.clone().oneshot(request()).await.unwrap_err();
    assert_eq!(refused(&error).reason(), Reason::Full);
    assert_eq!(refused(&error).wait(), Some(ms(300)));
    let text = "not sent: the pace is full (try again in 300ms)";
    assert_eq!(error.to_string(), text);
    // trap 38
    assert_eq!(server.unused(), 3, "what was made ready for those that wait is let go of as well");

    drop(waiting.pop());
    assert_pending!(task::spawn(client.oneshot(request())).poll());
    assert_eq!(server.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn wait_that_is_too_long_is_refused_at_once() {
    let server = Server::statuses([429, 503]);
    let layer = GuardLayer::http(Pace::new(pace()).queue(1024, ms(99)));
    let mut client = layer.layer(server.watch());
    call(&mut client).await.unwrap();
    let error = call(&mut client).await.unwrap_err();
    assert_eq!(refused(&error).reason(), Reason::WaitTooLong);
    assert_eq!(server.unused(), 1);
    assert_eq!(refused(&error).wait(), Some(ms(100)));
    // Time brings the turn nearer, although no call was sent.
    tokio::time::advance(ms(1)).await;
    assert_eq!(call(&mut client).await.unwrap().status(), 503);
    assert_eq!(server.arrivals(), [0, 100].map(ms));
}

/// If a call's turn moves beyond the longest wait, the call ends as soon as that is known.
#[tokio::test(start_paused = true)]
async fn a_turn_that_moves_away_ends_the_wait() {
    let server = Server::statuses([429]);
    let layer = GuardLayer::http(Pace::new(pace()).queue(1024, ms(250)));
    let client = layer.layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let (first, second) = tokio::join!(client.clone().oneshot(request()), client.clone().oneshot(request()));
    assert_eq!(first.unwrap().status(), 429);
    // The turn came after 200 ms at first, and after 300 ms once the interval had doubled.
    assert_eq!(refused(&second.unwrap_err()).reason(), Reason::WaitTooLong);
}

#[tokio::test(start_paused = true)]
async fn deadline_before_turn_is_refused_at_once() {
    let server = Server::statuses([429, 503]);
    let client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
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
        assert_eq!(refused(&error).reason(), Reason::WaitTooLong);
    }
    let in_time = late(|request| {
        request.extensions_mut().insert(Deadline::after(ms(101)));
    });
    assert_eq!(in_time.await.unwrap().status(), 503);
    assert_eq!(server.arrivals(), [0, 100].map(ms));
}

/// gRPC responds with its own types, and the response is marked.
#[tokio::test(start_paused = true)]
async fn grpc_is_answered_by_the_layer() {
    let server = Server::<Answer>::by(|_| {
        let mut answer = answer(200);
        answer.headers_mut().insert("grpc-status", 8.into());
        Ok(answer)
    });
    let client = GuardLayer::grpc(Pace::new(pace()).no_queue()).layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    let full = client.clone().oneshot(request()).await.unwrap();
    assert_eq!(full.headers()["grpc-status"], "8");
    assert_eq!(full.headers()["reattempt-refused"], "pace");
    let mark: &Refused = full.extensions().get().unwrap();
    assert_eq!((mark.guard(), mark.reason()), (GuardKind::PACE, Reason::RateExceeded));

    let client = GuardLayer::grpc(Pace::new(client.guard().responsive().clone())).layer(server.watch());
    let mut late = request();
    late.headers_mut().insert("grpc-timeout", "99m".parse().unwrap());
    let late = client.oneshot(late).await.unwrap();
    assert_eq!(late.headers()["grpc-status"], "8");
    assert_eq!(server.arrivals().len(), 1);
}

/// Nothing of a refused call was sent, so it is retried whatever the request is.
#[tokio::test(start_paused = true)]
async fn a_retry_layer_sends_a_refused_call_again() {
    let server = Server::statuses([429, 200]);
    let pace = pace();
    let policy = RetryPolicy::http()
        .backoff(Constant::new(ms(60)))
        .budget(RetryBudget::unlimited())
        .max_attempts(3)
        .boxed_errors();
    let inner = GuardLayer::http(Pace::new(pace.clone()).queue(1024, ms(50)));
    let mut client = checked(RetryLayer::new(policy).layer(inner.layer(server.watch())));
    let mut post = request();
    *post.method_mut() = http::Method::POST;
    let answer = send(&mut client, post).await;
    assert_eq!(answer.status(), 200);
    let report: &Report = answer.extensions().get().unwrap();
    // The 429, a refused attempt, and the success.
    assert_eq!(report.attempts().len(), 3);
    assert_eq!((server.arrivals().len(), pace.metrics().times_up), (2, 1));
    assert!(server.arrivals()[1] < secs(1));
}
