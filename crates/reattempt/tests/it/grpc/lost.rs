//! Tests of a lost connection, and of a time limit below. The caller gets a gRPC status, and no outer layer mistakes it
//! for a server's own.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use h2::Reason;
use http::{Request, Response};
use http_body_util::BodyExt;
use reattempt::classify::Outcome;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Report, RetryLayer, RetryPolicy};
use reattempt_core::{StopReason, Verdict};
use reattempt_grpc::{Code, ServiceConfig};
use tonic::body::Body;
use tower::{BoxError, Layer, ServiceExt};

use crate::grpc::reset::Resets;
use crate::grpc::support::{
    GrpcServer, Lost, Step, call, call_with, change, lost, ms, policy, read, streaming, throttle, trailers_only,
    unmarked,
};
use crate::hedge::budget::Sent;

type Make = fn() -> BoxError;

/// Returns errors, each with the code that the caller gets.
fn errors() -> [(Make, Option<Code>); 9] {
    fn io(kind: ErrorKind) -> BoxError {
        io::Error::from(kind).into()
    }
    [
        (|| io(ErrorKind::ConnectionReset), Some(Code::Unavailable)),
        (|| io(ErrorKind::BrokenPipe), Some(Code::Unavailable)),
        (|| io(ErrorKind::UnexpectedEof), Some(Code::Unavailable)),
        (|| io(ErrorKind::ConnectionRefused), Some(Code::Unavailable)),
        (|| io(ErrorKind::TimedOut), Some(Code::Unavailable)),
        (|| tonic::TimeoutExpired(()).into(), Some(Code::DeadlineExceeded)),
        (|| status_of_reset(ErrorKind::ConnectionReset), Some(Code::Unavailable)),
        // These are unchanged: an unknown error, and a status from the service below.
        (|| fmt::Error.into(), None),
        (|| tonic::Status::permission_denied("no").into(), None),
    ]
}

/// Returns the status that tonic creates for a lost connection, with the error as its source.
fn status_of_reset(kind: ErrorKind) -> BoxError {
    let mut status = tonic::Status::unknown("made by tonic");
    status.metadata_mut().insert("authorization", "secret".parse().unwrap());
    status.set_source(std::sync::Arc::new(io::Error::from(kind)));
    status.into()
}

/// Returns the head's status and text; `None` for an error.
fn head<B, E>(reply: Result<Response<B>, E>) -> Option<(Code, String)> {
    let headers = reply.ok()?.headers().clone();
    let code = Code::from_bytes(headers.get("grpc-status")?.as_bytes());
    Some((code, headers["grpc-message"].to_str().unwrap().to_owned()))
}

fn config(codes: &str) -> ServiceConfig {
    let policy = match codes {
        "" => String::new(),
        codes => format!(
            r#", "retryPolicy": {{"maxAttempts": 2, "initialBackoff": "0.1s", "maxBackoff": "1s",
            "backoffMultiplier": 2, "retryableStatusCodes": {codes}}}"#
        ),
    };
    ServiceConfig::parse(&format!(r#"{{"methodConfig": [{{"name": [{{}}]{policy}}}]}}"#)).unwrap()
}

// OUT-2, trap 29
#[tokio::test(start_paused = true)]
async fn out_2_lost_connection_is_unavailable() {
    for (make, expected) in errors() {
        let server = || GrpcServer::by(move |_| (1, Err(lost(make()))));
        let one = || CallOptions::new().max_attempts(1);
        let never = || CallOptions::new().never_retry();
        let hedged = HedgeLayer::new(HedgePolicy::grpc().delay(ms(1000)));
        let replies = [
            head(RetryLayer::grpc().layer(server()).oneshot(call_with(one())).await),
            head(RetryLayer::grpc().layer(server()).oneshot(call_with(never())).await),
            head(RetryLayer::grpc().layer(server()).with_options(never()).oneshot(call()).await),
            head(RetryLayer::new(policy(1)).layer(server()).oneshot(call()).await),
            head(hedged.layer(server()).oneshot(call()).await),
            head(hedged.layer(server()).oneshot(call_with(never())).await),
            head(ServiceConfigLayer::new(config("")).layer(server()).oneshot(call()).await),
            head(ServiceConfigLayer::new(config("[14]")).layer(server()).oneshot(call()).await),
        ];
        for (row, reply) in replies.into_iter().enumerate() {
            let code = reply.as_ref().map(|(code, _)| *code);
            assert_eq!(code, expected, "{:?} {row}", make());
            let text = reply.map(|(_, text)| text).unwrap_or_default();
            let cause = make().source().map_or_else(|| make().to_string(), ToString::to_string);
            assert!(expected.is_none() || text.ends_with(&cause), "{row}: {text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

// OUT-2
#[tokio::test(start_paused = true)]
async fn out_2_boxed_error_is_the_status() {
    for (make, expected) in errors() {
        let boxed = RetryPolicy::grpc().boxed_errors().max_attempts(1);
        let server = GrpcServer::by(move |_| (1, Err(lost(make()))));
        let error = RetryLayer::new(boxed).layer(server).oneshot(call()).await.err().unwrap();
        let mut causes = std::iter::successors(Some(&*error as &dyn Error), |&one| one.source());
        assert!(causes.any(|one| one.is::<Lost>()), "the error is still there");
        let status = tonic::Status::from_error(error);
        match expected {
            Some(code) => assert_eq!(i32::from(status.code()), i32::from(code.number())),
            None => assert_ne!(status.code(), tonic::Code::Unavailable),
        }
    }
}

/// During a response it is the body's error, because the trailers have not arrived.
// OUT-2
#[tokio::test(start_paused = true)]
async fn out_2_lost_in_the_body_is_unavailable() {
    for (make, expected) in errors() {
        let server = GrpcServer::at_once(move |_| streaming([Step::Data("a"), Step::Wait(1), Step::Fail(make())]));
        let client = RetryLayer::new(policy(1)).layer(server.clone());
        let mut body = client.oneshot(call()).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        let error = body.frame().await.unwrap().unwrap_err();
        let kind = make().downcast_ref::<io::Error>().map(io::Error::kind);
        let status = tonic::Status::from_error(error);
        let own = status.source().and_then(|one| one.downcast_ref::<io::Error>());
        assert!(kind.is_none() || own.map(io::Error::kind) == kind, "{status:?}");
        match expected {
            Some(code) => assert_eq!(i32::from(status.code()), i32::from(code.number())),
            None => assert_ne!(status.code(), tonic::Code::Unavailable),
        }
        assert_eq!(server.count(), 1);
        assert!(body.frame().await.is_none());
    }
}

// RET-5
#[tokio::test(start_paused = true)]
async fn ret_5_reset_has_its_code_for_the_caller() {
    for (reason, code) in [
        (Reason::CANCEL, Code::Cancelled),
        (Reason::INTERNAL_ERROR, Code::Internal),
        (Reason::NO_ERROR, Code::Internal),
        (Reason::ENHANCE_YOUR_CALM, Code::ResourceExhausted),
        (Reason::REFUSED_STREAM, Code::Unavailable),
    ] {
        let resets = std::sync::Arc::new(Resets::new(reason, 2).await);
        let first = std::sync::Arc::clone(&resets);
        let policy = || policy(1).max_attempts(1).protocol(|grpc| grpc.transparent_retries(false));
        let server = GrpcServer::by(move |_| (1, Err(first.next())));
        let reply = RetryLayer::new(policy()).layer(server).oneshot(call()).await;
        assert_eq!(head(reply).map(|(code, _)| code), Some(code));
        let server = GrpcServer::at_once(move |_| streaming([Step::Fail(resets.next().0)]));
        let reply = RetryLayer::new(policy()).layer(server).oneshot(call()).await.unwrap();
        let error = reply.into_body().frame().await.unwrap().unwrap_err();
        assert_eq!(i32::from(tonic::Status::from_error(error).code()), i32::from(code.number()));
    }
}

/// The outer of two layers sees that no server has responded, so a call that must not be carried out twice is sent
/// once.
// OUT-2
#[tokio::test(start_paused = true)]
async fn out_2_outer_layer_does_not_repeat_a_loss() {
    for (make, _) in errors().into_iter().filter(|(make, code)| {
        let refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
        code.is_some() && !make().downcast_ref().is_some_and(refused)
    }) {
        let server = || GrpcServer::by(move |_| (1, Err(lost(make()))));
        let inner = |server: &GrpcServer| RetryLayer::new(unmarked(1)).layer(server.clone());
        let one = server();
        let client = RetryLayer::new(unmarked(1)).layer(inner(&one));
        head(client.oneshot(call()).await).unwrap();
        assert_eq!(one.count(), 1, "{:?}", make());

        // Not even if the server's own responses with that code are repeated.
        let not_processed = reattempt_core::Failure::new(reattempt_core::FailureKind::Server);
        let repeats =
            unmarked(1).protocol(|grpc| grpc.on_code(Code::Unavailable, Verdict::NotProcessed(not_processed)));
        let repeats = repeats.protocol(|grpc| {
            grpc.classify(move |outcome: Outcome<'_>| outcome.headers().map(|_| Verdict::NotProcessed(not_processed)))
        });
        let one = server();
        head(RetryLayer::new(repeats).layer(inner(&one)).oneshot(call()).await).unwrap();
        assert_eq!(one.count(), 1, "{:?}", make());

        // A call that the caller allows to be repeated is repeated.
        let one = server();
        let client = RetryLayer::new(unmarked(1)).layer(inner(&one));
        let repeatable = CallOptions::new().repeatable(true).max_attempts(2);
        head(client.oneshot(call_with(repeatable)).await).unwrap();
        assert!(one.count() > 1, "{:?}", make());

        // A service config's list is checked for its code, as for the error itself.
        for (codes, sent) in [(r#"["ABORTED"]"#, 1), (r#"[14, 4]"#, 2)] {
            let one = server();
            let client = ServiceConfigLayer::new(config(codes)).layer(inner(&one));
            head(client.oneshot(call()).await).unwrap();
            assert_eq!(one.count(), sent, "{:?}", make());
        }
    }
}

/// The inner layer's own deadline is not a server's DEADLINE_EXCEEDED either: it ends the call.
// DL-4
#[tokio::test(start_paused = true)]
async fn dl_4_outer_layer_does_not_repeat_it() {
    for boxed in [false, true] {
        let server = GrpcServer::by(|_| (10_000, Ok(trailers_only(Code::Ok))));
        let inner = policy(1).protocol(|grpc| grpc.timeout(ms(100)));
        let repeatable = call_with(CallOptions::new().repeatable(true));
        let listing = ServiceConfigLayer::new(config(r#"["DEADLINE_EXCEEDED"]"#));
        if boxed {
            let inner = RetryLayer::new(inner.boxed_errors());
            let outer = RetryLayer::new(policy(1).boxed_errors());
            let client = outer.layer(inner.layer(server.clone()));
            let status = tonic::Status::from_error(client.oneshot(repeatable).await.err().unwrap());
            assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
        } else {
            let inner = RetryLayer::new(inner).layer(server.clone());
            let client = RetryLayer::new(policy(1)).layer(inner.clone());
            assert_eq!(read(client.oneshot(repeatable).await.unwrap()).await.0, Some(Code::DeadlineExceeded));
            assert_eq!(server.count(), 1);
            let client = listing.layer(inner);
            assert_eq!(read(client.oneshot(call()).await.unwrap()).await.0, Some(Code::DeadlineExceeded));
        }
        assert_eq!(server.count(), if boxed { 1 } else { 2 });
    }
}

/// An unknown error is UNKNOWN to a service config, not UNAVAILABLE.
// OUT-3
#[tokio::test(start_paused = true)]
async fn out_3_unknown_error_is_unknown_to_a_list() {
    for (codes, sent) in [(r#"["UNAVAILABLE"]"#, 1), (r#"["UNKNOWN"]"#, 2)] {
        let server = GrpcServer::by(|_| (1, Err(lost(fmt::Error))));
        let client = ServiceConfigLayer::new(config(codes)).layer(server.clone());
        assert!(client.oneshot(call()).await.is_err());
        assert_eq!(server.count(), sent, "{codes}");
    }
    // It does not count as a failure during a response either.
    let throttle = throttle();
    let server = GrpcServer::at_once(|_| streaming([Step::Fail(fmt::Error.into())]));
    let client = RetryLayer::new(policy(1).budget(throttle.clone())).layer(server);
    client.oneshot(call()).await.unwrap().into_body().frame().await.unwrap().unwrap_err();
    assert_eq!(change(&throttle), 0);
}

/// The response has the report of its call, as a server's response would.
#[tokio::test(start_paused = true)]
async fn lost_answer_has_its_report() {
    let server = GrpcServer::by(|_| (1, Err(lost(io::Error::from(ErrorKind::ConnectionReset)))));
    let slot = ReportSlot::default();
    let options = CallOptions::new().repeatable(true).report_to(&slot);
    let mut request: Request<Body> = call();
    request.extensions_mut().insert(options);
    let reply = RetryLayer::new(policy(1)).layer(server).oneshot(request).await.unwrap();
    let report = reply.extensions().get::<Report>().unwrap();
    assert_eq!((report.attempts().len(), report.stop_reason()), (3, StopReason::AttemptsExhausted));
    assert_eq!(slot.take().unwrap().attempts().len(), 3);
}

/// A response that is lost after its head is evidence about the attempt that it belongs to.
// C-4
#[tokio::test(start_paused = true)]
async fn lost_body_has_its_attempts_time() {
    let sent = Sent::default();
    let server = GrpcServer::after(|arrival| match arrival {
        1 => (5, trailers_only(Code::Unavailable)),
        _ => {
            let lost = io::Error::from(ErrorKind::ConnectionReset).into();
            (5, streaming([Step::Data("a"), Step::Wait(20), Step::Fail(lost)]))
        }
    });
    let client = RetryLayer::new(policy(100).budget(sent.clone())).layer(server);
    let mut body = client.oneshot(call()).await.unwrap().into_body();
    while let Some(Ok(_)) = body.frame().await {}
    drop(body);
    assert_eq!(sent.times(), [ms(0), ms(106)]);
}
