//! Tests of the measurements of a call and of each attempt.

use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{Deadline, RetryLayer};
use reattempt_grpc::{Code, ServiceConfig};
use reattempt_testing_layers::grpc::{
    GrpcServer, Step, call, call_with, ends_with, ms, policy, read, status, streaming, trailers_only,
};
use reattempt_testing_layers::metrics::{Reader, line};
use tower::{Service, ServiceBuilder, ServiceExt};

// OBS-2
#[tokio::test(start_paused = true)]
async fn call_and_attempt_last_until_status() {
    let reader = Reader::new();
    let end = || [Step::Data("text"), Step::Wait(50), Step::Trailers(status(Code::Ok))];
    let server = GrpcServer::by(move |_| (200, Ok(streaming(end()))));
    let layer = reader.metrics().around(RetryLayer::new(policy(1)));
    let mut client = ServiceBuilder::new().layer(layer).service(server);
    let answer = client.ready().await.unwrap().call(call()).await.unwrap();
    assert_eq!(reader.of("attempt.started"), [line("", 1, 1)]);
    assert_eq!(reader.of("attempt.duration"), []);
    assert_eq!(reader.of("call.duration"), []);
    assert_eq!(read(answer).await, (Some(Code::Ok), "text".to_owned()));
    assert_eq!(reader.of("attempt.duration"), [line("OK", 1, 250)]);
    assert_eq!(reader.of("call.duration"), [line("OK", 1, 250)]);
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn each_attempt_is_measured_call_once() {
    let reader = Reader::new();
    let server = GrpcServer::by(|number| match number {
        1 => (10, Ok(trailers_only(Code::Unavailable))),
        2 => (20, Ok(trailers_only(Code::ResourceExhausted))),
        _ => (40, Ok(ends_with(Code::Ok))),
    });
    let layer = reader.metrics().around(RetryLayer::new(policy(100)));
    let client = ServiceBuilder::new().layer(layer).service(server);
    read(client.oneshot(call()).await.unwrap()).await;
    assert_eq!(reader.of("attempt.started"), [line("", 3, 3)]);
    let ends = [line("OK", 1, 40), line("RESOURCE_EXHAUSTED", 1, 20), line("UNAVAILABLE", 1, 10)];
    assert_eq!(reader.of("attempt.duration"), ends);
    assert_eq!(reader.of("call.duration"), [line("OK", 1, 270)]);
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn unsent_call_has_no_attempt() {
    let reader = Reader::new();
    let server = GrpcServer::at_once(|_| ends_with(Code::Ok));
    let layer = reader.metrics().around(RetryLayer::new(policy(1)));
    let client = ServiceBuilder::new().layer(layer).service(server.clone());
    read(client.oneshot(call_with(Deadline::after(ms(0)))).await.unwrap()).await;
    assert_eq!(server.count(), 0);
    assert_eq!(reader.names(), ["grpc.client.call.duration"]);
    assert_eq!(reader.of("call.duration"), [line("DEADLINE_EXCEEDED", 1, 0)]);
}

// OBS-6
#[tokio::test(start_paused = true)]
async fn obs_6_hedges_that_lose_end_as_cancelled() {
    let reader = Reader::new();
    let server = GrpcServer::by(|number| match number {
        2 => (100, Ok(ends_with(Code::Ok))),
        _ => (1000, Ok(ends_with(Code::Ok))),
    });
    let policy = HedgePolicy::grpc().delay(ms(40)).max_attempts(3);
    let layer = reader.metrics().around(HedgeLayer::new(policy));
    let client = ServiceBuilder::new().layer(layer).service(server);
    let answer = client.oneshot(call()).await.unwrap();
    // The losers have ended before the winner is read: the first after 140 ms, the third after 60 ms.
    assert_eq!(reader.of("attempt.duration"), [line("CANCELLED", 2, 200)]);
    read(answer).await;
    assert_eq!(reader.of("attempt.started"), [line("", 3, 3)]);
    assert_eq!(reader.of("attempt.duration"), [line("CANCELLED", 2, 200), line("OK", 1, 100)]);
    assert_eq!(reader.of("call.duration"), [line("OK", 1, 140)]);
}

// OBS-2, OBS-6
#[tokio::test(start_paused = true)]
async fn calls_by_config_are_measured() {
    let config = |policy: &str| {
        let text = format!(r#"{{ "methodConfig": [{{ "name": [{{}}] {policy} }}] }}"#);
        ServiceConfigLayer::new(ServiceConfig::parse(&text).unwrap())
    };
    let retried = r#", "retryPolicy": { "maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s",
        "backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"] }"#;
    let hedged = r#", "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "0.01s" }"#;
    for (policy, started, ends) in [
        (retried, 2, vec![line("ABORTED", 1, 30), line("OK", 1, 30)]),
        (hedged, 2, vec![line("ABORTED", 1, 30), line("CANCELLED", 1, 20)]),
        ("", 1, vec![line("ABORTED", 1, 30)]),
    ] {
        let reader = Reader::new();
        let server = GrpcServer::by(|number| match number {
            1 => (30, Ok(trailers_only(Code::Aborted))),
            _ => (30, Ok(ends_with(Code::Ok))),
        });
        let layer = reader.metrics().around(config(policy));
        let client = ServiceBuilder::new().layer(layer).service(server);
        read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!(reader.of("attempt.started"), [line("", started, started)], "{policy}");
        assert_eq!(reader.of("attempt.duration"), ends, "{policy}");
    }
}

// ST-5, OBS-2
#[tokio::test(start_paused = true)]
async fn trailers_made_head_end_the_attempt() {
    let script = |number| match number {
        1 => streaming([Step::Trailers(status(Code::Unavailable))]),
        _ => ends_with(Code::Ok),
    };
    let peeking = || PeekTrailersLayer::new(ms(5));
    // Inside the attempt, and around it.
    let within = Reader::new();
    let client = ServiceBuilder::new()
        .layer(within.metrics().around(RetryLayer::new(policy(1))))
        .layer(peeking())
        .service(GrpcServer::at_once(script));
    read(client.oneshot(call()).await.unwrap()).await;
    let around = Reader::new();
    let both = ServiceBuilder::new().layer(RetryLayer::new(policy(1))).layer(peeking());
    let client = ServiceBuilder::new().layer(around.metrics().around(both));
    read(client.service(GrpcServer::at_once(script)).oneshot(call()).await.unwrap()).await;
    for reader in [within, around] {
        assert_eq!(reader.of("attempt.duration"), [line("OK", 1, 0), line("UNAVAILABLE", 1, 0)]);
        assert_eq!(reader.of("call.duration"), [line("OK", 1, 1)]);
    }
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn two_providers_measure_apart() {
    let (inner, outer) = (Reader::new(), Reader::new());
    let server = GrpcServer::at_once(|number| match number {
        1 => trailers_only(Code::Unavailable),
        _ => ends_with(Code::Ok),
    });
    let enabled = |reader: &Reader| reader.metrics().enable(reattempt::grpc::metrics::RetryMetric::ALL);
    let layer = enabled(&inner).around(RetryLayer::new(policy(100)));
    let layer = enabled(&outer).around(layer);
    let client = ServiceBuilder::new().layer(layer).service(server);
    read(client.oneshot(call()).await.unwrap()).await;
    for reader in [inner, outer] {
        assert_eq!(reader.of("attempt.started"), [line("", 2, 2)]);
        assert_eq!(reader.of("call.duration"), [line("OK", 1, 100)]);
        assert_eq!(reader.of("call.retries"), [line("", 1, 1)]);
        assert_eq!(reader.of("call.retry_delay"), [line("", 1, 100)]);
    }
}
