//! Tests of `on_code` for codes that no server sent: of reset streams, lost connections and exceeded limits.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use h2::Reason;
use reattempt::grpc::Grpc;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, RetryLayer, RetryPolicy, Verdict};
use reattempt_core::{Failure, FailureKind};
use reattempt_grpc::Code;
use tower::{BoxError, Layer, ServiceExt};

use crate::grpc::reset::Resets;
use crate::grpc::support::{GrpcServer, call, call_with, ends_with, lost, ms, policy, trailers_only, unmarked};

/// Returns the number of sends of a call that is lost with this error, and may be carried out twice if it is `marked`.
async fn sends(policy: RetryPolicy<Grpc, Constant>, marked: bool, error: fn() -> BoxError) -> usize {
    let server = GrpcServer::by(move |_| (1, Err(lost(error()))));
    let options = CallOptions::new().repeatable(marked);
    let _ = RetryLayer::new(policy).layer(server.clone()).oneshot(call_with(options)).await;
    server.count()
}

fn reset_by_peer() -> BoxError {
    io::Error::from(ErrorKind::ConnectionReset).into()
}

fn refused() -> BoxError {
    io::Error::from(ErrorKind::ConnectionRefused).into()
}

// field 25
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn code_of_a_reset_is_retried() {
    for (marked, on_internal, expected) in [
        (true, Some(Verdict::transient()), 3),
        // A setting proves nothing about a stream that was reset.
        (false, Some(Verdict::transient()), 1),
        (false, Some(Verdict::not_processed()), 1),
        (true, None, 1),
    ] {
        let resets = Arc::new(Resets::new(Reason::INTERNAL_ERROR, 3).await);
        let server = GrpcServer::by(move |_| (1, Err(resets.next())));
        let mut policy = unmarked(1);
        if let Some(verdict) = on_internal {
            policy = policy.on_code(Code::Internal, verdict);
        }
        let options = CallOptions::new().repeatable(marked);
        let answer = RetryLayer::new(policy).layer(server.clone()).oneshot(call_with(options)).await.unwrap();
        assert_eq!(answer.headers()["grpc-status"], "13");
        assert_eq!(server.count(), expected, "{marked} {on_internal:?}");
    }
}

// field 25
#[tokio::test(start_paused = true)]
async fn code_of_a_loss_can_be_permanent() {
    let permanent = || policy(1).on_code(Code::Unavailable, Verdict::Permanent);
    for error in [reset_by_peer as fn() -> BoxError, refused] {
        assert_eq!(sends(policy(1), true, error).await, 3);
        assert_eq!(sends(permanent(), true, error).await, 1);
    }
}

/// A connection that was refused proves that nothing was sent, whatever is set for its code. No setting turns a lost
/// connection into such a proof, and none makes an attempt without an answer a success.
// field 25
#[tokio::test(start_paused = true)]
async fn setting_is_neither_more_nor_less_proof() {
    let failure = Failure::new(FailureKind::Server);
    for verdict in [Verdict::Transient(failure), Verdict::NotProcessed(failure), Verdict::Success] {
        let set = || unmarked(1).on_code(Code::Unavailable, verdict);
        assert_eq!(sends(set(), false, refused).await, 3, "{verdict:?}");
        assert_eq!(sends(set(), false, reset_by_peer).await, 1, "{verdict:?}");
    }
}

/// The code of an attempt that exceeded its limit is DEADLINE_EXCEEDED. The end of the call's own deadline stays final.
// field 25
#[tokio::test(start_paused = true)]
async fn code_of_a_time_limit_can_be_permanent() {
    let late = || {
        GrpcServer::by(|number| match number {
            1 => (10_000, Ok(trailers_only(Code::Ok))),
            _ => (0, Ok(ends_with(Code::Ok))),
        })
    };
    for (policy, expected) in [(policy(1), 2), (policy(1).on_code(Code::DeadlineExceeded, Verdict::Permanent), 1)] {
        let server = late();
        let client = RetryLayer::new(policy.boxed_errors().attempt_timeout(ms(50))).layer(server.clone());
        let _ = client.oneshot(call()).await;
        assert_eq!(server.count(), expected);
    }
    let server = late();
    let inner = RetryLayer::new(policy(1).protocol(|grpc| grpc.timeout(ms(50)))).layer(server.clone());
    let outer = policy(1).on_code(Code::DeadlineExceeded, Verdict::transient());
    RetryLayer::new(outer).layer(inner).oneshot(call_with(CallOptions::new().repeatable(true))).await.unwrap();
    assert_eq!(server.count(), 1);
}
