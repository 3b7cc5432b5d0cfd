//! Tests of hedged calls to their very end: the effect of their winner's status on the throttle, and the time limit of
//! its response.

use reattempt::CallOptions;
use reattempt::grpc::Grpc;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_grpc::{Code, RetryThrottle, ServiceConfig};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::grpc::support::{
    Answer, GrpcServer, Step, call, call_with, call_within, change, ends_with, ms, read, streaming, throttle,
    trailers_only,
};

fn policy() -> HedgePolicy<Grpc> {
    HedgePolicy::grpc().max_attempts(3).delay(ms(100))
}

/// Runs a call whose first attempt is slow, so that the second wins with this response. Returns its effect on the
/// throttle.
async fn cost(policy: HedgePolicy<Grpc>, answer: fn() -> Answer) -> i64 {
    let server = GrpcServer::by(move |number| (if number == 1 { 1000 } else { 10 }, Ok(answer())));
    let throttle = throttle();
    let client = HedgeLayer::new(policy.budget(throttle.clone())).layer(server);
    let reply = client.oneshot(call()).await.unwrap();
    read(reply).await;
    change(&throttle)
}

// THR-3, THR-4
#[tokio::test(start_paused = true)]
async fn winners_status_is_credited_or_charged() {
    assert_eq!(cost(policy(), || ends_with(Code::Ok)).await, 100);
    assert_eq!(cost(policy(), || trailers_only(Code::Ok)).await, 100);
    assert_eq!(cost(policy(), || ends_with(Code::Unavailable)).await, -1000);
    assert_eq!(cost(policy(), || ends_with(Code::NotFound)).await, 0);
}

/// Whatever prevents a call from being hedged, its success is recorded.
// THR-4
#[tokio::test(start_paused = true)]
async fn call_not_to_be_hedged_is_credited() {
    for answer in [|| ends_with(Code::Ok), || trailers_only(Code::Ok)] {
        assert_eq!(cost(policy().max_attempts(1), answer).await, 100);

        let throttle = throttle();
        let client = HedgeLayer::new(policy().budget(throttle.clone()));
        let client = client.layer(GrpcServer::at_once(move |_| answer()));
        let never = call_with(CallOptions::new().never_retry());
        read(client.oneshot(never).await.unwrap()).await;
        assert_eq!(change(&throttle), 100);

        let text = r#"{
            "methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 2}}],
            "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
        }"#;
        let layer = ServiceConfigLayer::new(ServiceConfig::parse(text).unwrap()).max_attempts(1);
        let throttle: RetryThrottle = layer.handle().throttle().clone();
        throttle.failed();
        let client = layer.layer(GrpcServer::at_once(move |_| answer()));
        read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!(change(&throttle), 100);
    }
}

// CALL-5, HG-11
#[tokio::test(start_paused = true)]
async fn deadline_ends_winners_answer() {
    let server = GrpcServer::at_once(|_| streaming([Step::Data("a"), Step::Hang]));
    let began = Instant::now();
    let client = HedgeLayer::new(policy()).layer(server);
    let reply = client.oneshot(call_within("250m")).await.unwrap();
    assert_eq!(read(reply).await, (Some(Code::DeadlineExceeded), "a".to_owned()));
    assert_eq!(began.elapsed(), ms(250));
}

/// Every call through a hedge layer may be hedged, so the setting is reported.
// HG-14
#[test]
fn hedging_reports_repeatable_as_unused() {
    let warnings = |grpc: Grpc| HedgePolicy::with(grpc).validate();
    assert_eq!(warnings(Grpc::new()), []);
    let [warning] = &warnings(Grpc::new().repeatable(true))[..] else { panic!("one warning") };
    assert_eq!(warning.field(), "repeatable");
}
