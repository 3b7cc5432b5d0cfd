//! Tests of response bodies: frame by frame what the server sent, and its status.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt;
use reattempt::RetryLayer;
use reattempt::observe::Event;
use reattempt_grpc::Code;
use tower::{Layer, ServiceExt};

use crate::grpc::support::{
    Answer, GrpcServer, Step, call, change, ends_with, field, lost, policy, read, status, streaming, throttle,
    trailers_only, with,
};

// ST-2
#[tokio::test(start_paused = true)]
async fn st_2_every_frame_comes_as_it_was_sent() {
    let answer = |_| {
        let mut trailers = status(Code::Ok);
        trailers.extend(field("x-own", "value"));
        streaming([Step::Data("a"), Step::Wait(50), Step::Data("b"), Step::Trailers(trailers)])
    };
    let client = RetryLayer::grpc().layer(GrpcServer::at_once(answer));
    let mut body = client.oneshot(call()).await.unwrap().into_body();
    assert!(!body.is_end_stream());
    let mut next = async || body.frame().await.map(Result::unwrap);
    assert_eq!(next().await.unwrap().into_data().unwrap(), Bytes::from("a"));
    assert_eq!(next().await.unwrap().into_data().unwrap(), Bytes::from("b"));
    let trailers = next().await.unwrap().into_trailers().unwrap();
    assert_eq!((trailers.len(), &trailers["x-own"]), (2, &"value".parse().unwrap()));
    assert!(next().await.is_none());
}

// ST-3
#[tokio::test(start_paused = true)]
async fn missing_status_is_unknown_to_budget() {
    for steps in [|| vec![Step::Data("a")], || vec![Step::Trailers(HeaderMap::new())], Vec::new] {
        let throttle = throttle();
        let failure = reattempt_core::Failure::new(reattempt_core::FailureKind::Server);
        let unknown = reattempt_core::Verdict::NotProcessed(failure);
        let policy = policy(0).protocol(|grpc| grpc.on_code(Code::Unknown, unknown)).budget(throttle.clone());
        let client = RetryLayer::new(policy).layer(GrpcServer::at_once(move |_| streaming(steps())));
        read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!(change(&throttle), -1000);
    }
}

// COM-1
#[tokio::test(start_paused = true)]
async fn failure_after_headers_goes_to_caller() {
    let ended: [(fn() -> Answer, _); 3] = [
        (|| ends_with(Code::Unavailable), Some(Code::Unavailable)),
        (|| streaming([Step::Trailers(status(Code::Unavailable))]), Some(Code::Unavailable)),
        (|| streaming([Step::Fail(lost("gone").into())]), None),
    ];
    for (answer, expected) in ended {
        let server = GrpcServer::at_once(move |_| answer());
        let client = RetryLayer::grpc().layer(server.clone());
        let (code, _) = read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!(code, expected);
        assert_eq!(server.count(), 1);
    }
}

// COM-7
#[tokio::test(start_paused = true)]
async fn caller_sees_frames_of_one_attempt() {
    let server = GrpcServer::at_once(|number| match number {
        1 => with(trailers_only(Code::Unavailable), "x-first", "1"),
        _ => ends_with(Code::Ok),
    });
    let reply = RetryLayer::new(policy(0)).layer(server).oneshot(call()).await.unwrap();
    assert!(!reply.headers().contains_key("x-first"));
    assert_eq!(read(reply).await, (Some(Code::Ok), "message".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn body_error_is_own_with_its_causes() {
    let client = RetryLayer::grpc().layer(GrpcServer::at_once(|_| streaming([Step::Fail(lost("the cable").into())])));
    let mut body = client.oneshot(call()).await.unwrap().into_body();
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(error.downcast_ref::<crate::grpc::support::Lost>().unwrap().0.to_string(), "the cable");
}

/// tonic would panic on such a field, in the head and in trailers.
// TN-7
#[tokio::test(start_paused = true)]
async fn details_not_in_base64_are_dropped() {
    for (value, stays) in [("CAUaAA", true), ("CAUaAA==", true), ("", true), ("not base64!", false)] {
        let in_trailers = move |_| {
            let mut trailers = status(Code::NotFound);
            trailers.extend(field("grpc-status-details-bin", value));
            streaming([Step::Trailers(trailers)])
        };
        let client = RetryLayer::grpc().layer(GrpcServer::at_once(in_trailers));
        let mut body = client.oneshot(call()).await.unwrap().into_body();
        let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(trailers.contains_key("grpc-status-details-bin"), stays, "{value}");
        assert_eq!(tonic::Status::from_header_map(&trailers).unwrap().code(), tonic::Code::NotFound);

        let in_head = move |_| with(trailers_only(Code::NotFound), "grpc-status-details-bin", value);
        let client = RetryLayer::grpc().layer(GrpcServer::at_once(in_head));
        let reply = client.oneshot(call()).await.unwrap();
        assert_eq!(reply.headers().contains_key("grpc-status-details-bin"), stays, "{value}");
        assert!(tonic::Status::from_header_map(reply.headers()).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn observers_hear_of_answer_that_breaks_off() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let policy = policy(0).observe(move |destination: &str, event: &Event<'_>| {
        events.lock().unwrap().push(format!("{destination}: {event}"));
    });
    let client = RetryLayer::new(policy);
    for code in [Code::Ok, Code::Internal] {
        let client = client.layer(GrpcServer::at_once(move |_| ends_with(code)));
        read(client.oneshot(call()).await.unwrap()).await;
    }
    let succeeded = "one.example: succeeded on attempt 1";
    let broken = "one.example: the answer to attempt 1 broke off with code 13";
    assert_eq!(*heard.lock().unwrap(), [succeeded, succeeded, broken]);
}

/// The only message of a call, which can be encoded only inside a runtime.
struct InRuntime(Option<Bytes>);

impl http_body::Body for InRuntime {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let _panics_outside = tokio::runtime::Handle::current();
        std::task::Poll::Ready(self.0.take().map(|data| Ok(http_body::Frame::data(data))))
    }
}

/// Outside of a runtime, which the body may need.
// trap 41
#[test]
fn message_is_not_encoded_by_call() {
    use std::task::{Context, Waker};
    use tower::Service;

    let ended = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ended);
    let inner = tower::service_fn(move |request: http::Request<tonic::body::Body>| {
        let noted = Arc::clone(&noted);
        async move {
            let mut body = request.into_body();
            let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
            noted.lock().unwrap().push((data, body.is_end_stream()));
            Ok::<_, crate::grpc::support::Lost>(trailers_only(Code::Unavailable))
        }
    });
    let mut client = RetryLayer::new(policy(0)).layer(inner);
    assert!(client.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    let message = Bytes::from_static(b"a message");
    let request = call().map(|_| tonic::body::Body::new(InRuntime(Some(message.clone()))));
    let call = client.call(request);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true);
    runtime.build().unwrap().block_on(call).unwrap();
    // The end is known with the message, so that no empty frame is sent after it.
    let ended = ended.lock().unwrap();
    assert!(ended.len() > 1);
    assert!(ended.iter().all(|(data, ended)| *data == message && *ended), "{ended:?}");
}

/// Inside a runtime, a unary message is encoded by `call`, once for all attempts.
// trap 41
#[tokio::test(start_paused = true)]
async fn message_is_encoded_in_a_runtime() {
    use std::task::{Context, Waker};
    use tower::Service;

    let inner = tower::service_fn(async |request: http::Request<tonic::body::Body>| {
        let data = request.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(data, "a message");
        Ok::<_, crate::grpc::support::Lost>(trailers_only(Code::Unavailable))
    });
    let mut client = RetryLayer::new(policy(0)).layer(inner);
    assert!(client.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    let polls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&polls);
    let body = InRuntime(Some(Bytes::from_static(b"a message"))).map_frame(move |frame| {
        *counted.lock().unwrap() += 1;
        frame
    });
    let attempts = client.call(call().map(|_| tonic::body::Body::new(body)));
    assert_eq!(*polls.lock().unwrap(), 1, "before the future is polled");
    attempts.await.unwrap();
    assert_eq!(*polls.lock().unwrap(), 1);
}
