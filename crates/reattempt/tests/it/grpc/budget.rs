//! Tests of a call's accounting: gRPC's throttle, and the events of any budget.

use reattempt::classify::Outcome;
use reattempt::{CallOptions, RetryLayer};
use reattempt_core::{Failure, FailureKind, Verdict};
use reattempt_grpc::{Code, RetryThrottle, RetryThrottling};
use tower::{Layer, ServiceExt};

use crate::grpc::support::{
    Diary, GrpcServer, Reply, Step, call, call_with, change, ends_with, field, policy, read, status, streaming,
    throttle, trailers_only, with,
};

/// Runs one call to its end. Returns its effect on the throttle.
async fn cost(answer: impl Fn(usize) -> crate::grpc::support::Answer + Send + Sync + 'static) -> i64 {
    let throttle = throttle();
    let client = RetryLayer::new(policy(0).max_attempts(2).budget(throttle.clone()));
    let reply = client.layer(GrpcServer::at_once(answer)).oneshot(call()).await.unwrap();
    read(reply).await;
    change(&throttle)
}

// THR-4
#[tokio::test(start_paused = true)]
async fn only_status_ok_is_credited_once() {
    assert_eq!(cost(|_| ends_with(Code::Ok)).await, 100);
    assert_eq!(cost(|_| trailers_only(Code::Ok)).await, 100, "an answer that is its head");
    assert_eq!(cost(|_| trailers_only(Code::NotFound)).await, 0);
    assert_eq!(cost(|_| ends_with(Code::NotFound)).await, 0);
    assert_eq!(cost(|_| streaming([Step::Data("no status")])).await, 0, "which is UNKNOWN");
}

// THR-4
#[tokio::test(start_paused = true)]
async fn status_is_credited_when_it_is_read() {
    let throttle = throttle();
    let client = RetryLayer::new(policy(0).budget(throttle.clone()));
    let client = client.layer(GrpcServer::at_once(|_| ends_with(Code::Ok)));
    let reply: Reply = client.clone().oneshot(call()).await.unwrap();
    assert_eq!(change(&throttle), 0);
    read(reply).await;
    assert_eq!(change(&throttle), 100);
    // The caller dropped the call, which counts as CANCELLED.
    drop(client.oneshot(call()).await.unwrap());
    assert_eq!(change(&throttle), 100);
}

// THR-4
#[tokio::test(start_paused = true)]
async fn call_not_to_be_retried_is_credited() {
    for (attempts, options) in [(1, CallOptions::new()), (3, CallOptions::new().never_retry())] {
        let throttle = throttle();
        let client = RetryLayer::new(policy(0).max_attempts(attempts).budget(throttle.clone()));
        let client = client.layer(GrpcServer::at_once(|_| ends_with(Code::Ok)));
        let reply = client.oneshot(call_with(options)).await.unwrap();
        read(reply).await;
        assert_eq!(change(&throttle), 100);
    }
}

// THR-3
#[tokio::test(start_paused = true)]
async fn failure_of_listed_code_costs_a_token() {
    assert_eq!(cost(|_| trailers_only(Code::Unavailable)).await, -2000);
    let once = |number| trailers_only([Code::ResourceExhausted, Code::Ok][number - 1]);
    assert_eq!(cost(once).await, -900);
    let other = |number| trailers_only([Code::Unavailable, Code::Internal][number - 1]);
    assert_eq!(cost(other).await, -1000);
    assert_eq!(cost(|_| trailers_only(Code::Unknown)).await, 0);
}

// CALL-7, RET-1
#[tokio::test(start_paused = true)]
async fn failure_of_last_attempt_costs_a_token() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let throttle = throttle();
    let client = RetryLayer::new(policy(0).max_attempts(3).budget(throttle.clone()));
    client.layer(server.clone()).oneshot(call()).await.unwrap();
    assert_eq!((server.count(), change(&throttle)), (3, -3000));
}

// THR-3
#[tokio::test(start_paused = true)]
async fn thr_3_failure_after_commit_costs_one_too() {
    assert_eq!(cost(|_| ends_with(Code::Unavailable)).await, -1000);
    let broken = || crate::grpc::support::lost(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
    assert_eq!(cost(move |_| streaming([Step::Fail(broken().into())])).await, -1000);
}

// PB-11
#[tokio::test(start_paused = true)]
async fn pushback_after_commit_is_ignored() {
    let answer = |code| {
        let mut trailers = status(code);
        trailers.extend(field("grpc-retry-pushback-ms", "-1"));
        streaming([Step::Data("message"), Step::Trailers(trailers)])
    };
    assert_eq!(cost(move |_| answer(Code::NotFound)).await, 0);
    assert_eq!(cost(move |_| answer(Code::Unavailable)).await, -1000);
    assert_eq!(cost(move |_| answer(Code::Ok)).await, 100);
}

// PB-8
#[tokio::test(start_paused = true)]
async fn stopping_pushback_costs_token() {
    for code in [Code::NotFound, Code::Internal, Code::Unavailable] {
        let stop = move |_| with(trailers_only(code), "grpc-retry-pushback-ms", "-1");
        assert_eq!(cost(stop).await, -1000, "{code}");
    }
}

// PB-8
#[tokio::test(start_paused = true)]
async fn pb_8_also_when_the_bucket_is_full() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(10.0, 0.1)));
    let client = RetryLayer::new(policy(0).budget(throttle.clone()));
    let stop = |_| with(trailers_only(Code::NotFound), "grpc-retry-pushback-ms", "soon");
    client.layer(GrpcServer::at_once(stop)).oneshot(call()).await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(9000));
}

// PB-7
#[tokio::test(start_paused = true)]
async fn wait_with_unlisted_code_retries_nothing() {
    let server = GrpcServer::at_once(|_| with(trailers_only(Code::NotFound), "grpc-retry-pushback-ms", "0"));
    let throttle = throttle();
    let client = RetryLayer::new(policy(0).budget(throttle.clone()));
    client.layer(server.clone()).oneshot(call()).await.unwrap();
    assert_eq!((server.count(), change(&throttle)), (1, 0));
}

/// Steps 1 and 2 of the decision: if nothing may be retried, no failure costs anything.
// CALL-1
#[tokio::test(start_paused = true)]
async fn without_retries_no_failure_costs_a_token() {
    for answer in [
        || trailers_only(Code::Unavailable),
        || with(trailers_only(Code::Unavailable), "grpc-retry-pushback-ms", "-1"),
        || with(trailers_only(Code::NotFound), "grpc-retry-pushback-ms", "-1"),
        || ends_with(Code::Unavailable),
    ] {
        for (attempts, options) in [(1, CallOptions::new()), (3, CallOptions::new().never_retry())] {
            let throttle = throttle();
            let client = RetryLayer::new(policy(0).max_attempts(attempts).budget(throttle.clone()));
            let client = client.layer(GrpcServer::at_once(move |_| answer()));
            read(client.oneshot(call_with(options)).await.unwrap()).await;
            assert_eq!(change(&throttle), 0);
        }
    }
}

// THR-5, THR-6, THR-7
#[tokio::test(start_paused = true)]
async fn half_of_the_tokens_is_too_few() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(4.0, 0.5)));
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let client = RetryLayer::new(policy(0).max_attempts(5).budget(throttle.clone()));
    let client = client.layer(server.clone());
    let reply = client.clone().oneshot(call()).await.unwrap();
    assert_eq!((read(reply).await.0, server.count()), (Some(Code::Unavailable), 2));
    // THR-7
    client.oneshot(call()).await.unwrap();
    assert_eq!((server.count(), throttle.tokens_thousandths()), (3, Some(1000)));
}

// THR-1
#[tokio::test(start_paused = true)]
async fn clones_and_methods_share_the_bucket() {
    let throttle = throttle();
    let client = RetryLayer::new(policy(0).max_attempts(2).budget(throttle.clone()));
    let client = client.layer(GrpcServer::at_once(|_| trailers_only(Code::Unavailable)));
    for path in ["/one/a", "/two/b"] {
        let mut call = call();
        *call.uri_mut() = format!("http://one.example{path}").parse().unwrap();
        client.clone().oneshot(call).await.unwrap();
    }
    assert_eq!(change(&throttle), -4000);
}

#[tokio::test(start_paused = true)]
async fn budget_gets_end_when_status_is_read() {
    let diary = Diary::default();
    let client = |answer: fn(usize) -> crate::grpc::support::Answer| {
        RetryLayer::new(policy(0).budget(diary.clone())).layer(GrpcServer::at_once(answer))
    };
    read(client(|_| ends_with(Code::Ok)).oneshot(call()).await.unwrap()).await;
    assert_eq!(diary.lines(), ["succeeded one.example 0"]);
    read(client(|_| ends_with(Code::NotFound)).oneshot(call()).await.unwrap()).await;
    assert_eq!(diary.lines(), ["failed for good one.example None 0"]);
    read(client(|_| trailers_only(Code::NotFound)).oneshot(call()).await.unwrap()).await;
    assert_eq!(diary.lines(), ["failed for good one.example None 0"]);
    let second = |number| match number {
        1 => trailers_only(Code::Unavailable),
        _ => ends_with(Code::Unavailable),
    };
    read(client(second).oneshot(call()).await.unwrap()).await;
    let failed = "failed one.example server (14)";
    assert_eq!(diary.lines(), [failed, "acquire one.example", failed]);
}

#[tokio::test(start_paused = true)]
async fn classifier_is_asked_about_trailers_too() {
    let aborted = Failure::new(FailureKind::Server).with_code(Code::Aborted.number());
    let throttle = throttle();
    let policy =
        policy(0).protocol(|grpc| grpc.on_code(Code::Aborted, Verdict::NotProcessed(aborted))).budget(throttle.clone());
    let client = RetryLayer::new(policy).layer(GrpcServer::at_once(|_| ends_with(Code::Aborted)));
    read(client.clone().oneshot(call()).await.unwrap()).await;
    assert_eq!(change(&throttle), -1000);
    let own = CallOptions::new()
        .classify(|outcome: Outcome<'_>| outcome.headers()?.contains_key("grpc-status").then_some(Verdict::Permanent));
    read(client.oneshot(call_with(own)).await.unwrap()).await;
    assert_eq!(change(&throttle), -1000);
}

// trap 39
#[tokio::test(start_paused = true)]
async fn answer_that_ends_with_error_earns_none() {
    let diary = Diary::default();
    let client = RetryLayer::new(policy(0).budget(diary.clone()))
        .layer(GrpcServer::at_once(|_| streaming([Step::Data("message"), Step::Fail("of an unknown type".into())])));
    // The classifier sees the code for the error.
    let sorted = |outcome: Outcome<'_>| outcome.headers()?.get("grpc-status").map(|_| Verdict::Permanent);
    let call = call_with(CallOptions::new().classify(sorted));
    read(client.oneshot(call).await.unwrap()).await;
    assert_eq!(diary.lines(), [""; 0]);
}
