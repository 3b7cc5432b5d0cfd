//! Tests that every way in which an attempt or a call can end has its status.

use std::fmt;
use std::io;
use std::sync::Arc;

use http_body::Body;
use http_body_util::BodyExt;
use reattempt::{Deadline, RetryLayer, RetryPolicy};
use reattempt_grpc::Code;
use reattempt_testing_layers::grpc::{
    Answer, GrpcServer, Lost, Step, call, call_with, call_within, field, lost, ms, read, status, streaming,
    trailers_only,
};
use reattempt_testing_layers::metrics::{Reader, line};
use reattempt_testing_layers::resets::Resets;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// Returns a layer that makes one attempt per call.
fn one_attempt() -> RetryLayer<RetryPolicy<reattempt::grpc::Grpc>> {
    RetryLayer::new(RetryPolicy::grpc().max_attempts(1).protocol(|grpc| grpc.transparent_retries(false)))
}

/// Returns the status of the attempt and of the call, which must be the same.
fn ended(reader: &Reader) -> String {
    let (attempts, calls) = (reader.of("attempt.duration"), reader.of("call.duration"));
    let [(attempt, 1, _)] = &attempts[..] else { panic!("{attempts:?}") };
    let [(call, 1, _)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(attempt, call);
    assert_eq!(reader.of("attempt.started"), [line("", 1, 1)]);
    attempt.clone()
}

/// Reads the response to its end.
async fn end_of(answer: impl Fn() -> Result<Answer, Lost> + Send + Sync + 'static) -> String {
    let reader = Reader::new();
    let server = GrpcServer::by(move |_| (1, answer()));
    let client = ServiceBuilder::new().layer(reader.metrics().around(one_attempt()));
    if let Ok(answer) = client.service(server).oneshot(call()).await {
        read(answer).await;
    }
    ended(&reader)
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn obs_2_trailers_end_with_their_status() {
    for number in 0..=16 {
        let code = Code::from_number(number);
        let end = end_of(move || Ok(streaming([Step::Trailers(status(code))]))).await;
        assert_eq!(end, code.name());
        let end = end_of(move || Ok(trailers_only(code))).await;
        assert_eq!(end, code.name(), "trailers-only");
    }
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn unreadable_status_is_unknown() {
    let silent = end_of(|| Ok(streaming([Step::Data("message")]))).await;
    let without = end_of(|| Ok(streaming([Step::Trailers(http::HeaderMap::new())]))).await;
    let garbage = field("grpc-status", "seventeen");
    let unreadable = end_of(move || Ok(streaming([Step::Trailers(garbage.clone())]))).await;
    assert_eq!([silent, without, unreadable], ["UNKNOWN"; 3]);
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn empty_answer_is_read_to_its_end() {
    let reader = Reader::new();
    let empty = service_fn(async |_: http::Request<tonic::body::Body>| {
        Ok::<_, Lost>(http::Response::new(http_body_util::Empty::<bytes::Bytes>::new()))
    });
    let client = ServiceBuilder::new().layer(reader.metrics().around(one_attempt()));
    let mut answer = client.service(empty).oneshot(call()).await.unwrap().into_body();
    assert!(!answer.is_end_stream());
    assert!(answer.frame().await.is_none());
    assert!(answer.is_end_stream());
    assert_eq!(ended(&reader), "UNKNOWN");
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn http_status_is_mapped_to_code() {
    for (http, name) in [(503, "UNAVAILABLE"), (404, "UNIMPLEMENTED"), (302, "UNKNOWN")] {
        let end = end_of(move || {
            let mut answer = streaming([Step::Data("<html>")]);
            *answer.status_mut() = http::StatusCode::from_u16(http).unwrap();
            Ok(answer)
        });
        assert_eq!(end.await, name);
    }
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn reset_has_code_of_its_reason() {
    for (reason, name) in [
        (h2::Reason::REFUSED_STREAM, "UNAVAILABLE"),
        (h2::Reason::CANCEL, "CANCELLED"),
        (h2::Reason::INTERNAL_ERROR, "INTERNAL"),
        (h2::Reason::ENHANCE_YOUR_CALM, "RESOURCE_EXHAUSTED"),
    ] {
        let resets = Arc::new(Resets::new(reason, 2).await);
        let head = Arc::clone(&resets);
        assert_eq!(end_of(move || Err(head.next())).await, name);
        let broken = move || Ok(streaming([Step::Data("mess"), Step::Fail(resets.next().0)]));
        assert_eq!(end_of(broken).await, name, "in the answer");
    }
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn error_has_code_of_its_origin() {
    let gone = || io::Error::from(io::ErrorKind::ConnectionReset);
    assert_eq!(end_of(move || Err(lost(gone()))).await, "UNAVAILABLE");
    let broken = move || Ok(streaming([Step::Data("message"), Step::Fail(gone().into())]));
    assert_eq!(end_of(broken).await, "UNAVAILABLE");
    let own = || tonic::Status::permission_denied("by an interceptor");
    assert_eq!(end_of(move || Err(lost(own()))).await, "PERMISSION_DENIED");
    assert_eq!(end_of(|| Err(lost(fmt::Error))).await, "UNKNOWN");
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn obs_2_what_is_dropped_is_cancelled() {
    let answer = || (100, Ok(streaming([Step::Data("message"), Step::Hang])));
    // Before it is polled, during the wait for the head, and while the body is read.
    for after in [0, 50, 200] {
        let reader = Reader::new();
        let client = ServiceBuilder::new().layer(reader.metrics().around(one_attempt()));
        let mut client = client.service(GrpcServer::by(move |_| answer()));
        let future = client.call(call());
        if after > 0 {
            let end = tokio::time::timeout(ms(after), async { read(future.await.unwrap()).await });
            assert!(end.await.is_err());
        } else {
            drop(future);
        }
        assert_eq!(ended(&reader), "CANCELLED", "after {after} ms");
        assert_eq!(reader.of("call.duration"), [line("CANCELLED", 1, after)]);
    }
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn deadline_ends_attempt_and_call_as_such() {
    // The deadline of the caller, of its client's header, and of the policy; during the wait for the head and during
    // the response.
    for wait in [100, 0] {
        for by in 0..3 {
            let reader = Reader::new();
            let policy = RetryPolicy::grpc().protocol(|grpc| grpc.transparent_retries(false)).max_attempts(1);
            let (request, policy) = match by {
                0 => (call_with(Deadline::after(ms(50))), policy),
                1 => (call_within("50m"), policy),
                _ => (call(), policy.protocol(|grpc| grpc.timeout(ms(50)))),
            };
            let layer = reader.metrics().around(RetryLayer::new(policy));
            let server = GrpcServer::by(move |_| (wait, Ok(streaming([Step::Data("message"), Step::Hang]))));
            let client = ServiceBuilder::new().layer(layer).service(server);
            let (code, _) = read(client.oneshot(request).await.unwrap()).await;
            assert_eq!(code, Some(Code::DeadlineExceeded));
            assert_eq!(ended(&reader), "DEADLINE_EXCEEDED", "{wait} {by}");
        }
    }
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn drop_before_deadline_is_cancelled() {
    let reader = Reader::new();
    let client = ServiceBuilder::new().layer(reader.metrics().around(one_attempt()));
    let mut client = client.service(GrpcServer::by(|_| (100, Ok(trailers_only(Code::Ok)))));
    drop(client.call(call_with(Deadline::after(ms(50)))));
    assert_eq!(ended(&reader), "CANCELLED");
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn limits_of_other_layers_are_deadlines() {
    // A tower timeout inside the measured attempt, whose error is a `BoxError`.
    let reader = Reader::new();
    let metrics = reader.metrics().boxed_errors();
    let policy = RetryPolicy::grpc().boxed_errors().max_attempts(1);
    let client = ServiceBuilder::new()
        .layer(metrics.around(RetryLayer::new(policy)))
        .layer(tower::timeout::TimeoutLayer::new(ms(10)))
        .service(GrpcServer::by(|_| (100, Ok(trailers_only(Code::Ok)))));
    let error: BoxError = client.oneshot(call()).await.map(drop).unwrap_err();
    let status = tonic::Status::from_error(error);
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
    assert!(std::error::Error::source(&status).unwrap().is::<tower::timeout::error::Elapsed>());
    assert_eq!(ended(&reader), "DEADLINE_EXCEEDED");
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn attempt_past_its_own_limit_is_cancelled() {
    let reader = Reader::new();
    let metrics = reader.metrics().boxed_errors();
    let policy = RetryPolicy::grpc().attempt_timeout(ms(10)).max_attempts(1);
    let layer = metrics.around(RetryLayer::new(policy));
    let client = layer.layer(GrpcServer::by(|_| (100, Ok(trailers_only(Code::Ok)))));
    assert!(client.oneshot(call()).await.is_err());
    assert_eq!(reader.of("attempt.duration"), [line("CANCELLED", 1, 10)]);
    assert_eq!(reader.of("call.duration"), [line("DEADLINE_EXCEEDED", 1, 10)]);
}
