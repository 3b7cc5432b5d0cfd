//! Tests of the opt-in peek at the first frame (rule ST-5).

use std::io;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryLayer};
use reattempt_core::Verdict;
use reattempt_grpc::Code;
use tokio::time::Instant;
use tokio_test::{assert_pending, task};
use tower::{Layer, ServiceExt};

use crate::grpc::reset::Resets;
use crate::grpc::support::{
    Answer, GrpcServer, Step, call, call_with, change, ends_with, field, lost, ms, policy, read, status, streaming,
    throttle, trailers_only, unmarked,
};

/// Returns the number of attempts of a call that first gets this response, and the time at which its final response
/// begins.
async fn attempts(answer: impl Fn() -> Answer + Send + Sync + 'static) -> (usize, u128) {
    let server = GrpcServer::at_once(move |number| match number {
        1 => answer(),
        _ => ends_with(Code::Ok),
    });
    let peeking = PeekTrailersLayer::new(ms(50)).layer(server.clone());
    let began = Instant::now();
    let reply = RetryLayer::new(policy(0)).layer(peeking).oneshot(call()).await.unwrap();
    let elapsed = began.elapsed().as_millis();
    drop(reply);
    (server.count(), elapsed)
}

// ST-5
#[tokio::test(start_paused = true)]
async fn headers_then_trailers_are_trailers_only() {
    let unavailable = || streaming([Step::Trailers(status(Code::Unavailable))]);
    assert_eq!(attempts(unavailable).await, (2, 0));
    let soon = || streaming([Step::Wait(40), Step::Trailers(status(Code::Unavailable))]);
    assert_eq!(attempts(soon).await, (2, 40));
    let not_found = || streaming([Step::Trailers(status(Code::NotFound))]);
    assert_eq!(attempts(not_found).await, (1, 0));
}

// ST-5
#[tokio::test(start_paused = true)]
async fn st_5_without_the_layer_they_commit() {
    let server = GrpcServer::at_once(|_| streaming([Step::Trailers(status(Code::Unavailable))]));
    let reply = RetryLayer::new(policy(0)).layer(server.clone()).oneshot(call()).await.unwrap();
    assert_eq!((read(reply).await.0, server.count()), (Some(Code::Unavailable), 1));
}

// ST-5
#[tokio::test(start_paused = true)]
async fn st_5_pushback_among_them_is_obeyed() {
    let server = GrpcServer::at_once(|number| {
        let mut trailers = status(Code::Unavailable);
        trailers.extend(field("grpc-retry-pushback-ms", "70"));
        match number {
            1 => streaming([Step::Trailers(trailers)]),
            _ => ends_with(Code::Ok),
        }
    });
    let peeking = PeekTrailersLayer::new(ms(50)).layer(server.clone());
    RetryLayer::new(policy(0)).layer(peeking).oneshot(call()).await.unwrap();
    assert_eq!(server.times(), [0, 70]);
}

// trap 06
#[tokio::test(start_paused = true)]
async fn no_frame_is_lost_and_no_head_held_longer() {
    // The first message arrives at once, late, or never within the time.
    for (first, begins) in [(0, 0), (40, 40), (60, 50), (5000, 50)] {
        let throttle = throttle();
        let server = GrpcServer::at_once(move |_| {
            streaming([
                Step::Wait(first),
                Step::Data("a"),
                Step::Wait(30),
                Step::Data("b"),
                Step::Trailers(status(Code::Ok)),
            ])
        });
        let peeking = PeekTrailersLayer::new(ms(50)).layer(server.clone());
        let began = Instant::now();
        let client = RetryLayer::new(policy(0).budget(throttle.clone())).layer(peeking);
        let reply = client.oneshot(call()).await.unwrap();
        assert_eq!(began.elapsed().as_millis(), begins, "{first}");
        assert_eq!(read(reply).await, (Some(Code::Ok), "ab".to_owned()), "{first}");
        assert_eq!((server.count(), change(&throttle)), (1, 100));
    }
}

// ST-5
#[tokio::test(start_paused = true)]
async fn early_end_or_error_is_the_readers() {
    let server = GrpcServer::at_once(|_| streaming([]));
    let reply = PeekTrailersLayer::new(ms(50)).layer(server).oneshot(call()).await.unwrap();
    assert!(reply.into_body().frame().await.is_none());
    let server = GrpcServer::at_once(|_| streaming([Step::Fail(lost("gone").into())]));
    let reply = PeekTrailersLayer::new(ms(50)).layer(server).oneshot(call()).await.unwrap();
    assert!(reply.into_body().frame().await.unwrap().is_err());
}

/// A proxy whose backend dies can send a head and nothing more.
// B-5, ST-5
#[tokio::test(start_paused = true)]
async fn break_before_the_first_frame_is_a_loss() {
    fn reset() -> Step {
        Step::Fail(io::Error::from(io::ErrorKind::ConnectionReset).into())
    }
    fn page() -> Answer {
        let mut answer = streaming([]);
        *answer.status_mut() = StatusCode::BAD_REQUEST;
        answer
    }
    let cases: [(fn() -> Answer, usize); 7] = [
        (|| streaming([]), 2),
        (|| streaming([Step::Wait(40)]), 2),
        (|| streaming([reset()]), 2),
        (|| streaming([Step::Fail("unknown".into())]), 1),
        (|| streaming([Step::Data("a"), reset()]), 1),
        (|| streaming([Step::Wait(60), reset()]), 1),
        // The head is an outcome of its own: INTERNAL.
        (page, 1),
    ];
    for (number, (first, marked)) in cases.into_iter().enumerate() {
        for (policy, attempts) in [(policy(0), marked), (unmarked(0), 1)] {
            let server = GrpcServer::at_once(move |number| if number == 1 { first() } else { ends_with(Code::Ok) });
            let client = RetryLayer::new(policy).layer(PeekTrailersLayer::new(ms(50)).layer(server.clone()));
            client.oneshot(call()).await.unwrap();
            assert_eq!(server.count(), attempts, "{number}");
        }
    }
}

/// The server has begun to respond, so the reason of the reset proves nothing.
// B-5, ST-5
#[tokio::test]
async fn refused_stream_after_a_head_is_no_proof() {
    for (policy, attempts) in [(policy(0), 2), (unmarked(0), 1)] {
        let resets = Resets::new(h2::Reason::REFUSED_STREAM, 1).await;
        let server = GrpcServer::at_once(move |number| match number {
            1 => streaming([Step::Fail(resets.next().0)]),
            _ => ends_with(Code::Ok),
        });
        let client = RetryLayer::new(policy).layer(PeekTrailersLayer::new(ms(50)).layer(server.clone()));
        client.oneshot(call()).await.unwrap();
        assert_eq!(server.count(), attempts);
    }
}

// B-8, ST-5
#[tokio::test(start_paused = true)]
async fn last_broken_response_is_the_callers() {
    let server = GrpcServer::at_once(|_| streaming([Step::Fail(io::Error::from(io::ErrorKind::BrokenPipe).into())]));
    let peeking = PeekTrailersLayer::new(ms(50)).layer(server.clone());
    let slot = ReportSlot::default();
    let call = call_with(CallOptions::new().report_to(&slot));
    let reply = RetryLayer::new(policy(0).max_attempts(2)).layer(peeking.clone()).oneshot(call).await.unwrap();
    let error = reply.into_body().frame().await.unwrap().unwrap_err();
    assert!(error.to_string().contains("broken pipe"), "{error}");
    let report = slot.take().unwrap();
    assert!(report.to_string().contains("attempt 2 at 0s: network (UNAVAILABLE)"), "{report}");
    // A code that is set applies, as to every lost connection.
    let never = policy(0).on_code(Code::Unavailable, Verdict::Permanent);
    RetryLayer::new(never).layer(peeking).oneshot(crate::grpc::support::call()).await.unwrap();
    assert_eq!(server.count(), 3);
}

// ST-5
#[tokio::test(start_paused = true)]
async fn st_5_head_with_status_is_not_held_back() {
    let server = GrpcServer::at_once(|_| {
        let mut answer = streaming([Step::Hang]);
        answer.headers_mut().extend(status(Code::NotFound));
        answer
    });
    let began = Instant::now();
    PeekTrailersLayer::new(ms(50)).layer(server).oneshot(call()).await.unwrap();
    assert_eq!(began.elapsed(), ms(0));
}

// ST-5
#[tokio::test(start_paused = true)]
async fn trailers_without_status_stay_trailers() {
    let server = GrpcServer::at_once(|_| streaming([Step::Trailers(field("x-own", "1"))]));
    let reply = PeekTrailersLayer::new(ms(50)).layer(server).oneshot(call()).await.unwrap();
    assert!(!reply.headers().contains_key("x-own"));
    let frame = reply.into_body().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_trailers().unwrap()["x-own"], "1");
}

/// If nothing can wait, nothing is delayed.
// ST-5
#[test]
fn st_5_it_works_without_a_runtime() {
    let server = GrpcServer::at_once(|_| streaming([Step::Hang]));
    let client = PeekTrailersLayer::new(ms(50)).layer(server);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut future = std::pin::pin!(client.oneshot(call()));
    assert!(future.as_mut().poll(&mut context).is_ready());
}

// COM-3
#[tokio::test(start_paused = true)]
async fn true_trailers_only_passes_through() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let reply = PeekTrailersLayer::new(ms(50)).layer(server).oneshot(call()).await.unwrap();
    assert_eq!(reply.headers()["grpc-status"], "14");
    let body: Bytes = reply.into_body().collect().await.unwrap().to_bytes();
    assert!(body.is_empty());
}

/// Clones and services share the switch, and a call continues as it started.
// ST-5
#[tokio::test(start_paused = true)]
async fn st_5_layer_is_switched_at_run_time() {
    let unavailable = || Step::Trailers(status(Code::Unavailable));
    let peeking = PeekTrailersLayer::new(ms(50));
    // The trailers arrive with the head, or a little later.
    let at_once = GrpcServer::at_once(move |_| streaming([unavailable()]));
    let server = GrpcServer::at_once(move |_| streaming([Step::Wait(40), unavailable()]));
    for server in [&at_once, &server] {
        let peeked = peeking.layer(server.clone());
        let client = RetryLayer::new(policy(0).max_attempts(2)).layer(peeked);
        for (enabled, attempts) in [(true, 2), (false, 1), (true, 2)] {
            peeking.clone().set_enabled(enabled);
            assert_eq!(peeking.is_enabled(), enabled);
            let before = server.count();
            let reply = client.clone().oneshot(call()).await.unwrap();
            assert_eq!((read(reply).await.0, server.count() - before), (Some(Code::Unavailable), attempts));
        }
    }
    let mut under_way = task::spawn(peeking.layer(server.clone()).oneshot(call()));
    assert_pending!(under_way.poll());
    peeking.set_enabled(false);
    let began = Instant::now();
    let reply = under_way.await.unwrap();
    assert_eq!(began.elapsed(), ms(40), "it goes on being held back");
    assert!(reply.headers().contains_key("grpc-status"));
}
