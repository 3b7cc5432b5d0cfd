//! Tests of responses that end with their head: deadlines written, pushback, codes.

use std::future::pending;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use reattempt::classify::Outcome;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Deadline, Report, RetryLayer, RetryPolicy};
use reattempt_core::{Failure, FailureKind, StopReason, Verdict};
use reattempt_grpc::Code;
use tonic::body::Body;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, ServiceExt, service_fn};

use super::support::{
    Answer, GrpcServer, Step, body, call, call_with, call_within, ms, policy, status, streaming, trailers_only, with,
};

/// The server receives the deadline only in the header.
#[tokio::test(start_paused = true)]
async fn options_deadline_is_written_for_server() {
    let server = GrpcServer::heads([Code::Unavailable, Code::Ok].map(trailers_only));
    let client = RetryLayer::new(policy(100)).layer(server.clone());
    let options = CallOptions::new().deadline(Deadline::after(ms(500)));
    client.clone().oneshot(call_with(options)).await.unwrap();
    assert_eq!(server.fields("grpc-timeout"), [Some("500000u".into()), Some("400000u".into())]);

    let handle = client.with_options(CallOptions::new().deadline(Deadline::after(ms(300))));
    handle.oneshot(call()).await.unwrap();
    assert_eq!(server.fields("grpc-timeout")[2..], [Some("300000u".into())]);
}

#[tokio::test(start_paused = true)]
async fn deadline_is_written_without_retries() {
    let server = GrpcServer::heads([Code::Ok].map(trailers_only));
    let single = RetryLayer::new(policy(100).max_attempts(1)).layer(server.clone());
    single.clone().oneshot(call_with(Deadline::after(ms(500)))).await.unwrap();
    let never = CallOptions::new().never_retry().deadline(Deadline::after(ms(300)));
    single.oneshot(call_with(never)).await.unwrap();
    assert_eq!(server.fields("grpc-timeout"), [Some("500000u".into()), Some("300000u".into())]);
}

#[tokio::test(start_paused = true)]
async fn callers_timeout_is_handed_on_whole() {
    let rows = [("259200S", "259200S"), ("900u", "900000n"), ("1n", "1n"), ("2H", "7200000m")];
    for (first, second) in rows {
        let server = GrpcServer::heads([Code::Unavailable, Code::Ok].map(trailers_only));
        let client = RetryLayer::new(policy(0)).layer(server.clone());
        client.oneshot(call_within(first)).await.unwrap();
        assert_eq!(server.fields("grpc-timeout"), [Some(first.into()), Some(second.into())]);
    }
}

// DL-1
#[tokio::test(start_paused = true)]
async fn server_gets_earlier_deadline() {
    for (field, told) in [("2S", "500000u"), ("100m", "100m")] {
        let server = GrpcServer::heads([Code::Ok].map(trailers_only));
        let mut call = call_within(field);
        call.extensions_mut().insert(Deadline::after(ms(500)));
        RetryLayer::grpc().layer(server.clone()).oneshot(call).await.unwrap();
        assert_eq!(server.fields("grpc-timeout"), [Some(told.into())]);
    }
}

// RET-3, DL-3
#[tokio::test(start_paused = true)]
async fn no_retry_past_timeout_of_call() {
    for (timeout, times) in [("50m", vec![0]), ("100m", vec![0]), ("150m", vec![0, 100])] {
        let server = GrpcServer::heads([Code::Unavailable].map(trailers_only));
        let slot = ReportSlot::default();
        let client = RetryLayer::new(policy(100)).layer(server.clone());
        let client = client.with_options(CallOptions::new().report_to(&slot));
        let answer = client.oneshot(call_within(timeout)).await.unwrap();
        assert_eq!(answer.headers()["grpc-status"], "4", "not the last attempt's error");
        let message = answer.headers()["grpc-message"].to_str().unwrap();
        assert!(message.contains("server (14)"), "but that is told: {message}");
        assert_eq!(server.times(), times, "{timeout}");
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
    }
}

/// A deadline that a server has read from its own inbound call.
#[tokio::test(start_paused = true)]
async fn no_retry_past_inbound_deadline() {
    let inbound = Deadline::from_headers(call_within("150m").headers()).unwrap();
    let server = GrpcServer::heads([Code::Unavailable].map(trailers_only));
    let client = RetryLayer::new(policy(100)).layer(server.clone());
    client.oneshot(call_with(inbound)).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
    assert_eq!(server.fields("grpc-timeout"), [Some("150000u".into()), Some("50000000n".into())]);
}

#[tokio::test(start_paused = true)]
async fn classifier_of_call_is_asked_before_table() {
    let server = GrpcServer::heads([Code::Unavailable].map(trailers_only));
    let options = CallOptions::new().classify(|_: Outcome<'_>| Some(Verdict::Permanent));
    RetryLayer::grpc().layer(server.clone()).oneshot(call_with(options)).await.unwrap();
    assert_eq!(server.count(), 1);
}

/// Pushback is exact: no jitter is added to it, and no cap cuts it off.
// PB-4
#[tokio::test(start_paused = true)]
async fn pushback_is_waited_for_exactly() {
    for (pushback, wait) in [("0", 0), ("10000", 10_000), ("600000", 600_000)] {
        let refused = with(trailers_only(Code::Unavailable), "grpc-retry-pushback-ms", pushback);
        let server = GrpcServer::heads([refused, trailers_only(Code::Ok)]);
        let policy = RetryPolicy::grpc().max_elapsed(None).max_server_delay(ms(60_000));
        RetryLayer::new(policy).layer(server.clone()).oneshot(call()).await.unwrap();
        assert_eq!(server.times(), [0, wait]);
    }
}

#[tokio::test(start_paused = true)]
async fn timed_out_call_gets_deadline_exceeded() {
    let silent = service_fn(|_: Request<Body>| pending::<Result<Answer, tonic::Status>>());
    let timeout = policy(100).attempt_timeout(ms(50));
    let error = RetryLayer::new(timeout).layer(silent).oneshot(call()).await.unwrap_err();
    assert_eq!(tonic::Status::from_error(error).code(), tonic::Code::DeadlineExceeded);

    let deadline = policy(100).boxed_errors();
    let call = call_with(Deadline::after(ms(50)));
    let error = RetryLayer::new(deadline).layer(silent).oneshot(call).await.unwrap_err();
    assert_eq!(tonic::Status::from_error(error).code(), tonic::Code::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_code_can_be_given_a_verdict_of_its_own() {
    let aborted = Failure::new(FailureKind::Server).with_code(Code::Aborted.number());
    let policy = policy(100).protocol(|grpc| {
        grpc.on_code(Code::Aborted, Verdict::NotProcessed(aborted)).on_code(Code::Unavailable, Verdict::Permanent)
    });
    let rows = [
        (trailers_only(Code::Aborted), 2),
        (trailers_only(Code::Unavailable), 1),
        // A response that is not gRPC counts as the corresponding code.
        (Response::builder().status(503).body(body([])).unwrap(), 1),
        (trailers_only(Code::ResourceExhausted), 2),
        (trailers_only(Code::Internal), 1),
    ];
    for (answer, attempts) in rows {
        let (status, headers) = (answer.status(), answer.headers().clone());
        let server = GrpcServer::heads([answer, trailers_only(Code::Ok)]);
        RetryLayer::new(policy.clone()).layer(server.clone()).oneshot(call()).await.unwrap();
        assert_eq!(server.count(), attempts, "{status} {headers:?}");
    }
}

/// Over a tonic channel, a generated client's requests contain a host only if the client has an origin.
#[tokio::test(start_paused = true)]
async fn destination_is_that_of_the_origin() {
    let destinations = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&destinations);
    let policy = RetryPolicy::grpc().max_attempts(1).observe(move |destination, _| {
        seen.lock().unwrap().push(destination.to_owned());
    });
    let channel = RetryLayer::new(policy).layer(GrpcServer::heads([Code::Unavailable].map(trailers_only)));
    HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await.unwrap_err();
    let origin = "http://stock.example:50051".parse().unwrap();
    let mut client = HealthClient::with_origin(channel, origin);
    client.check(HealthCheckRequest::default()).await.unwrap_err();
    let destinations = destinations.lock().unwrap();
    assert_eq!(destinations.first().unwrap(), "");
    assert_eq!(destinations.last().unwrap(), "stock.example:50051");
}

#[tokio::test(start_paused = true)]
async fn response_of_tonic_has_its_report() {
    let server = GrpcServer::at_once(|number| match number {
        1 => trailers_only(Code::Unavailable),
        _ => streaming([Step::Data("\0\0\0\0\0"), Step::Trailers(status(Code::Ok))]),
    });
    let mut client = HealthClient::new(RetryLayer::new(policy(0)).layer(server));
    let response = client.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(Report::of(&response).unwrap().attempts().len(), 2);
}
