//! Connections that are lost, and resets before the headers.

use std::sync::Arc;

use h2::Reason;
use reattempt::grpc::GrpcCode as Code;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::schedule::FailureKind;
use reattempt::{CallOptions, RetryLayer};
use tokio::net::TcpSocket;
use tokio::sync::Notify;
use tonic::transport::Endpoint;
use tower::{Layer, ServiceExt};

use super::{
    EMPTY, Ended, OK, Server, Step, UNAVAILABLE, call, change, echo, head, previous, read, repeatable, reset,
    reset_later, run, throttle, unmarked,
};

/// The connection is cut once the request has been read.
fn cut() -> Vec<Step> {
    vec![Step::Read, Step::Cut]
}

/// The server takes one stream at a time. The second call lies in h2, the third in hyper, when the connection is cut.
// TR-1, TR-9
#[tokio::test]
async fn undispatched_is_replaced() {
    let go_on = Arc::new(Notify::new());
    let script = vec![Step::Read, Step::Wait(Arc::clone(&go_on)), Step::Cut];
    let server = Server::start([script]).await;
    server.allow(1);
    let channel = server.channel();
    let slot = ReportSlot::default();
    let client = RetryLayer::new(unmarked().max_attempts(1)).layer(channel);
    let mut calls = Vec::new();
    for number in 0..3 {
        let options = CallOptions::new();
        let options = if number == 2 { options.report_to(&slot) } else { options };
        let client = client.with_options(options);
        calls.push(tokio::spawn(client.oneshot(call())));
        // One after the other, and each as far as it comes.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        while server.calls() == 0 {
            tokio::task::yield_now().await;
        }
    }
    go_on.notify_one();
    let third = calls.pop().unwrap().await.unwrap().unwrap();
    assert_eq!(read(third).await, OK);
    let report = slot.take().unwrap();
    assert_eq!((report.retries(), report.replacements()), (0, 1), "{report}");
    // That one may have been carried out, and of the one in h2 nobody can tell.
    for _ in 0..2 {
        let lost = calls.remove(0).await.unwrap().unwrap();
        assert_eq!(read(lost).await, UNAVAILABLE);
    }
    assert!(previous(&server).iter().all(Option::is_none));
}

// TR-1, trap 31
#[tokio::test]
async fn absent_server_is_retried_on_schedule() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let slot = ReportSlot::default();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let throttle = throttle();
    let client = RetryLayer::new(unmarked().budget(throttle.clone())).layer(channel);
    let client = client.with_options(CallOptions::new().report_to(&slot));
    client.oneshot(call()).await.unwrap_err();
    let report = slot.take().unwrap();
    assert_eq!((report.attempts().len(), report.replacements()), (3, 0));
    let AttemptOutcome::Failed { failure, .. } = &report.attempts()[0].outcome else {
        panic!("{report}");
    };
    assert_eq!((failure.kind(), failure.code()), (FailureKind::Connect, Some(14)));
    assert_eq!(change(&throttle), -3000, "an ordinary UNAVAILABLE");
}

// OUT-2
#[tokio::test]
async fn lost_connection_is_unavailable() {
    for (call, streams) in [(call(), 1), (repeatable(), 2)] {
        let server = Server::start([cut(), echo()]).await;
        let (_, report) = run(&server, unmarked(), call).await;
        assert_eq!(server.calls(), streams);
        let AttemptOutcome::Failed { failure, .. } = &report.attempts()[0].outcome else {
            panic!("{report}");
        };
        assert_eq!((failure.kind(), failure.code()), (FailureKind::Network, Some(14)));
    }
}

/// The status is the same with and without tonic's feature `server`, before the headers and in the response.
// OUT-2, trap 29
#[tokio::test]
async fn out_2_lost_is_unavailable_everywhere() {
    let cut_later = vec![Step::Read, Step::Head(head(&[])), Step::Data(EMPTY), Step::Cut];
    for (script, expected) in [
        (cut(), UNAVAILABLE),
        (cut_later, Ended::BodyError(tonic::Code::Unavailable)),
        (reset(Reason::CANCEL), Ended::Status(Code::Cancelled)),
        (reset(Reason::INTERNAL_ERROR), Ended::Status(Code::Internal)),
        (reset_later(Reason::INTERNAL_ERROR), Ended::BodyError(tonic::Code::Internal)),
    ] {
        let server = Server::start([script.clone()]).await;
        let (ended, _) = run(&server, unmarked(), call()).await;
        assert_eq!((ended, server.calls()), (expected, 1), "{script:?}");
    }
}

/// For two nested layers, a call without a server's response is no refusal to the outer one. So a call that must not be
/// processed twice is sent once.
// OUT-2, trap 28
#[tokio::test]
async fn out_2_two_layers_send_a_lost_call_once() {
    let server = Server::start([cut()]).await;
    let inner = RetryLayer::new(unmarked()).layer(server.channel());
    let reply = RetryLayer::new(unmarked()).layer(inner).oneshot(call()).await.unwrap();
    assert_eq!((reply.headers()["grpc-status"].as_bytes(), server.calls()), (&b"14"[..], 1));
}

// RET-5, TN-10
#[tokio::test]
async fn reset_before_header_has_code_of_reason() {
    let rows = [
        (Reason::NO_ERROR, 1),
        (Reason::INTERNAL_ERROR, 1),
        (Reason::CANCEL, 1),
        (Reason::PROTOCOL_ERROR, 1),
        (Reason::INADEQUATE_SECURITY, 1),
        // RESOURCE_EXHAUSTED
        (Reason::ENHANCE_YOUR_CALM, 2),
    ];
    for (reason, streams) in rows {
        let server = Server::start([reset(reason)]).await;
        let (_, report) = run(&server, unmarked(), repeatable()).await;
        assert_eq!(server.calls(), streams, "{reason}: {report}");
    }
    let server = Server::start([reset(Reason::ENHANCE_YOUR_CALM)]).await;
    run(&server, unmarked(), call()).await;
    assert_eq!(server.calls(), 1, "which it may have been served before");
}
