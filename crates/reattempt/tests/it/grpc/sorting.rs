//! Tests of the classification of an attempt's end: statuses, responses that are not gRPC, and RetryInfo.

use http::{HeaderMap, Response, StatusCode};
use reattempt::classify::{Outcome, ServerHint};
use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
use reattempt::{CallOptions, RetryLayer, RetryPolicy};
use reattempt_core::{Failure, FailureKind, Verdict};
use reattempt_grpc::Code;
use tower::{Layer, ServiceExt};

use crate::grpc::support::{
    Answer, GrpcServer, Step, body, call, call_with, ends_with, ms, policy, read, status, streaming, trailers_only,
    unmarked, with,
};

fn http(status: u16, content_type: &str) -> Answer {
    let response = Response::builder().status(status).header("content-type", content_type);
    response.body(body([Step::Data("<html>")])).unwrap()
}

/// Returns the number of attempts of a call that first gets this response, and the status that the caller sees in a
/// head.
async fn attempts(answer: impl Fn() -> Answer + Send + Sync + 'static) -> usize {
    let server = GrpcServer::at_once(move |number| match number {
        1 => answer(),
        _ => ends_with(Code::Ok),
    });
    let client = RetryLayer::new(policy(0)).layer(server.clone());
    client.oneshot(call_with(CallOptions::new().repeatable(true))).await.unwrap();
    server.count()
}

// OUT-1, TN-8
#[tokio::test(start_paused = true)]
async fn http_status_maps_and_does_not_commit() {
    let rows = [
        (400, Code::Internal, 1),
        (401, Code::Unauthenticated, 1),
        (403, Code::PermissionDenied, 1),
        (404, Code::Unimplemented, 1),
        (429, Code::Unavailable, 2),
        (502, Code::Unavailable, 2),
        (503, Code::Unavailable, 2),
        (504, Code::Unavailable, 2),
        (500, Code::Unknown, 1),
        (302, Code::Unknown, 1),
        (200, Code::Unknown, 1),
    ];
    for (status, code, expected) in rows {
        assert_eq!(attempts(move || http(status, "text/html")).await, expected, "{status}");
        let server = GrpcServer::at_once(move |_| http(status, "text/html"));
        let client = RetryLayer::new(policy(0).max_attempts(1)).layer(server);
        let reply = client.oneshot(call()).await.unwrap();
        // A client's own conversion of the page differs, so the status is set explicitly.
        let seen = tonic::Status::from_header_map(reply.headers()).unwrap();
        assert_eq!(i32::from(seen.code()), i32::from(code.number()), "{status}");
        assert!(seen.message().contains(&status.to_string()), "{status}: {}", seen.message());
        assert_eq!(reply.status(), status, "and nothing is taken away");
    }
}

// OUT-1
#[tokio::test(start_paused = true)]
async fn out_1_the_content_types_of_grpc() {
    let ours = ["application/grpc", "application/grpc+proto", "application/grpc;a=b"];
    for content_type in ours.into_iter().chain(["Application/gRPC", "application/grpc-web+proto"]) {
        let server = GrpcServer::at_once(move |_| http(200, content_type));
        let reply = RetryLayer::grpc().layer(server).oneshot(call()).await.unwrap();
        assert!(!reply.headers().contains_key("grpc-status"), "{content_type}");
    }
    for content_type in ["application/json", "application/grpcs", "application/gr", ""] {
        let server = GrpcServer::at_once(move |_| http(200, content_type));
        let reply = RetryLayer::grpc().layer(server).oneshot(call()).await.unwrap();
        assert_eq!(reply.headers()["grpc-status"], "2", "{content_type}");
    }
}

// ST-1
#[tokio::test(start_paused = true)]
async fn status_among_headers_settles_it() {
    let rows: [fn() -> Answer; 3] = [
        || trailers_only(Code::Unavailable),
        // END_STREAM arrived in an empty frame of its own.
        || {
            let mut answer = streaming([Step::Data("")]);
            answer.headers_mut().extend(status(Code::Unavailable));
            answer
        },
        || {
            let mut answer = streaming([Step::Wait(10)]);
            answer.headers_mut().extend(status(Code::Unavailable));
            answer
        },
    ];
    for answer in rows {
        assert_eq!(attempts(answer).await, 2);
    }
}

// ST-4
#[tokio::test(start_paused = true)]
async fn status_field_decides_not_the_details() {
    // NOT_FOUND in the details.
    let details = |answer| with(answer, "grpc-status-details-bin", "CAU");
    assert_eq!(attempts(move || details(trailers_only(Code::Unavailable))).await, 2);
    assert_eq!(attempts(move || details(trailers_only(Code::NotFound))).await, 1);
}

// RET-4
#[tokio::test(start_paused = true)]
async fn ret_4_ok_is_never_retried() {
    let pushed = || with(trailers_only(Code::Ok), "grpc-retry-pushback-ms", "0");
    assert_eq!(attempts(pushed).await, 1);
}

/// An undefined number matches no list, not even one with UNKNOWN; an unreadable status is UNKNOWN.
// RET-5
#[tokio::test(start_paused = true)]
async fn status_out_of_range_is_on_no_list() {
    let rows = [("17", 1), ("300", 1), ("99999999999999999999", 1), ("-1", 2), ("", 2), ("x", 2)];
    for (value, expected) in rows {
        let unknown = Verdict::NotProcessed(Failure::new(FailureKind::Server));
        let server = GrpcServer::at_once(move |number| match number {
            1 => with(streaming([]), "grpc-status", value),
            _ => ends_with(Code::Ok),
        });
        let policy = policy(0).protocol(|grpc| grpc.on_code(Code::Unknown, unknown));
        let client = RetryLayer::new(policy.clone()).layer(server.clone());
        client.oneshot(call()).await.unwrap();
        assert_eq!(server.count(), expected, "{value}");
        let server = GrpcServer::at_once(move |_| with(streaming([]), "grpc-status", value));
        let reply = RetryLayer::new(policy).layer(server).oneshot(call()).await.unwrap();
        let seen = tonic::Status::from_header_map(reply.headers()).unwrap();
        assert_eq!(seen.code(), tonic::Code::Unknown, "{value}");
    }
}

// OUT-3
#[tokio::test(start_paused = true)]
async fn status_made_by_service_below_is_judged() {
    for (status, attempts) in [(tonic::Status::unavailable("no"), 3), (tonic::Status::invalid_argument("no"), 1)] {
        let server = GrpcServer::by(move |_| (0, Err(crate::grpc::support::lost(status.clone()))));
        let client = RetryLayer::new(policy(0)).layer(server.clone());
        assert!(client.oneshot(call()).await.is_err());
        assert_eq!(server.count(), attempts);
    }
}

/// UNAVAILABLE with a RetryInfo of this delay in milliseconds, in base64.
fn asks_for(milliseconds: &str) -> Answer {
    let details = match milliseconds {
        "1500" => "CA4aNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ==",
        other => other,
    };
    with(trailers_only(Code::Unavailable), "grpc-status-details-bin", details)
}

async fn waits(
    policy: RetryPolicy<reattempt::grpc::Grpc, reattempt_schedule_fixed::Constant>,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> Vec<u128> {
    let server = GrpcServer::at_once(move |number| match number {
        1 => answer(),
        _ => ends_with(Code::Ok),
    });
    RetryLayer::new(policy).layer(server.clone()).oneshot(call()).await.unwrap();
    server.times()
}

// RI-4
#[tokio::test(start_paused = true)]
async fn retry_info_is_a_minimum_where_read() {
    assert_eq!(waits(policy(100), || asks_for("1500")).await, [0, 100], "off by default");
    let read = || policy(100).protocol(|grpc| grpc.retry_info(true));
    let times = waits(read(), || asks_for("1500")).await;
    assert!((1500..=1650).contains(&times[1]), "{times:?}");
    let longer = policy(5000).protocol(|grpc| grpc.retry_info(true));
    assert_eq!(waits(longer, || asks_for("1500")).await, [0, 5000]);
    assert_eq!(waits(unmarked(100).retry_info(true), || asks_for("1500")).await, [0], "it asks for nothing");
    for garbage in ["", "!", "CA4a", "CA4aNgoo", "/////w=="] {
        assert_eq!(waits(read(), move || asks_for(garbage)).await, [0, 100], "{garbage}");
    }
}

// RI-4
#[tokio::test(start_paused = true)]
async fn pushback_beats_retry_info() {
    let read = || policy(100).protocol(|grpc| grpc.retry_info(true));
    let both = || with(asks_for("1500"), "grpc-retry-pushback-ms", "20");
    assert_eq!(waits(read(), both).await, [0, 20]);
    let stop = || with(asks_for("1500"), "grpc-retry-pushback-ms", "-1");
    assert_eq!(waits(read(), stop).await, [0]);
    let not_found = || {
        let mut answer = asks_for("1500");
        answer.headers_mut().extend(status(Code::NotFound));
        answer
    };
    assert_eq!(waits(read(), not_found).await, [0]);
    let capped = read().max_server_delay(ms(1000));
    assert_eq!(waits(capped, || asks_for("1500")).await, [0]);
}

/// The pushback also counts beside a code that the program has made retryable. It counts for nothing beside any other
/// code, and not under a service config without a policy for the method.
// PB-7, RET-7, C-12
#[tokio::test(start_paused = true)]
async fn pushback_asks_for_codes_retried() {
    let asks = |code| move || with(trailers_only(code), "grpc-retry-pushback-ms", "20");
    assert_eq!(waits(unmarked(100), || trailers_only(Code::Unavailable)).await, [0]);
    assert_eq!(waits(unmarked(100), asks(Code::Unavailable)).await, [0, 20]);
    let aborted = || unmarked(100).on_code(Code::Aborted, Verdict::transient());
    assert_eq!(waits(aborted(), || trailers_only(Code::Aborted)).await, [0]);
    assert_eq!(waits(aborted(), asks(Code::Aborted)).await, [0, 20]);
    assert_eq!(waits(unmarked(100), asks(Code::Aborted)).await, [0]);
    let server = GrpcServer::at_once(move |_| asks(Code::Unavailable)());
    let empty = ServiceConfigLayer::new(ServiceConfig::default());
    empty.layer(server.clone()).oneshot(call()).await.unwrap();
    assert_eq!(server.count(), 1);
}

// RPH-1, RPH-4
#[tokio::test(start_paused = true)]
async fn field_counts_attempts_before() {
    let server = GrpcServer::at_once(|number| match number {
        1 | 2 => trailers_only(Code::Unavailable),
        _ => ends_with(Code::Ok),
    });
    for own in [None, Some("7")] {
        let mut call = call();
        if let Some(own) = own {
            call.headers_mut().insert("grpc-previous-rpc-attempts", own.parse().unwrap());
        }
        let server = server.clone();
        let client = RetryLayer::new(policy(0)).layer(server.clone());
        client.oneshot(call).await.unwrap();
    }
    let told = server.fields("grpc-previous-rpc-attempts");
    assert_eq!(told[..3], [None, Some("1".into()), Some("2".into())]);
    assert_eq!(told[3..], [None], "also where nothing is retried");
}

/// Whatever the bytes, a call ends, and tonic's conversion of its status does not panic.
#[tokio::test(start_paused = true)]
async fn any_head_has_defined_outcome() {
    let names = [
        "grpc-status",
        "grpc-message",
        "grpc-status-details-bin",
        "grpc-retry-pushback-ms",
        "content-type",
        "grpc-encoding",
    ];
    let values: [&[u8]; 8] =
        [b"", b"14", b"\xff\xfe", b"%%%", b"-", b"application/grpc", b"99999999999999999999", b" "];
    for first in names {
        for second in names {
            for one in values {
                for other in values {
                    let head = HeaderMap::from_iter([
                        (first.parse().unwrap(), http::HeaderValue::from_bytes(one).unwrap()),
                        (second.parse().unwrap(), http::HeaderValue::from_bytes(other).unwrap()),
                    ]);
                    let kept = head.clone();
                    let server = GrpcServer::at_once(move |_| {
                        let mut answer = Response::new(body([Step::Trailers(kept.clone())]));
                        *answer.headers_mut() = kept.clone();
                        *answer.status_mut() = StatusCode::OK;
                        answer
                    });
                    let policy = policy(0).max_attempts(2).max_elapsed(None).protocol(|grpc| grpc.retry_info(true));
                    let reply = RetryLayer::new(policy).layer(server).oneshot(call()).await.unwrap();
                    let _ = tonic::Status::from_header_map(reply.headers());
                    read(reply).await;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn grpc_classifier_sees_path_and_gives_hint() {
    let server = GrpcServer::at_once(|number| match number {
        1 => trailers_only(Code::NotFound),
        _ => ends_with(Code::Ok),
    });
    let policy = policy(0).protocol(|grpc| {
        grpc.classify(|outcome: Outcome<'_>| {
            let known = outcome.request()?.path() == call().uri().path();
            let missing = outcome.headers()?.get("grpc-status")? == "5";
            let hint = ServerHint::Exactly(ms(1234));
            (known && missing).then(|| Verdict::not_processed().with_hint(hint))
        })
    });
    let began = tokio::time::Instant::now();
    RetryLayer::new(policy).layer(server.clone()).oneshot(call()).await.unwrap();
    assert_eq!((server.count(), began.elapsed()), (2, ms(1234)));
}

#[tokio::test(start_paused = true)]
async fn rule_of_grpc_chooses_options_by_path() {
    for (path, attempts) in [(call().uri().path().to_owned(), 2), ("/other/method".into(), 1)] {
        let server = GrpcServer::at_once(|_| trailers_only(Code::DeadlineExceeded));
        let policy = unmarked(0).protocol(|grpc| {
            grpc.options_for(move |request| {
                let ours = request.path() == path;
                ours.then(|| CallOptions::new().repeatable(true).max_attempts(2))
            })
        });
        RetryLayer::new(policy).layer(server.clone()).oneshot(call()).await.unwrap();
        assert_eq!(server.count(), attempts);
    }
}
