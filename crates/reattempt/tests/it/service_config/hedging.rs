//! Tests of methods that a config hedges.

use std::time::Duration;

use reattempt::Report;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt_grpc::Code;
use tokio::time::{Instant, timeout};
use tower::{Layer, ServiceExt};

use super::server::{ABORTED, OK, Server, Step, UNAVAILABLE};
use super::{call, client, code_of, end_of, hedged, parse, throttled};

// HG-1
#[tokio::test(start_paused = true)]
async fn hedged_method_follows_config_delay() {
    let server = Server::of([Step::Hang, Step::Hang, OK]);
    let client = client(&hedged(4, "0.25s", "[]"), &server);
    let answer = client.oneshot(call()).await.unwrap();
    let report = Report::of(&answer).unwrap();
    assert_eq!((report.retries() + 1, report.winner()), (3, Some(3)));
    assert_eq!(server.times(), [0, 250, 500]);
    assert_eq!(code_of(answer).await, Code::Ok);
}

// HG-4, HG-5
#[tokio::test(start_paused = true)]
async fn config_codes_leave_others_running() {
    // (how the first attempt fails, when the attempts are sent)
    let rows = [(ABORTED, vec![0, 0]), (UNAVAILABLE, vec![0]), (Step::Lost, vec![0])];
    for (step, times) in rows {
        let server = Server::of([step, OK]);
        let code = end_of(&client(&hedged(3, "1s", r#"["ABORTED"]"#), &server), call()).await.0;
        assert_eq!(code.is_ok_and(|code| code == Code::Ok), times.len() == 2);
        assert_eq!(server.times(), times);
    }
}

// CALL-8, HG-2
#[tokio::test(start_paused = true)]
async fn delay_of_0_sends_all_up_to_cap() {
    for (cap, count) in [(5, 5), (2, 2), (1, 1)] {
        let server = Server::of([Step::Hang]);
        let layer = ServiceConfigLayer::new(parse(&hedged(9, "0s", "[]"))).max_attempts(cap);
        let call = layer.layer(server.clone()).oneshot(call());
        assert!(tokio::time::timeout(Duration::from_secs(60), call).await.is_err());
        assert_eq!(server.count(), count);
    }
}

// HG-8, HG-11
#[tokio::test(start_paused = true)]
async fn hedges_share_bucket_and_timeout() {
    let text = throttled(&hedged(5, "0.1s", "[14]"), 4.0, 0.5);
    let text = text.replacen(r#""name""#, r#""timeout": "2s", "name""#, 1);
    let server = Server::of([UNAVAILABLE, UNAVAILABLE, Step::Hang]);
    let client = client(&text, &server);
    let began = Instant::now();
    let (code, _) = end_of(&client, call()).await;
    assert_eq!(server.count(), 2, "half of the tokens is too few for a third");
    assert_eq!(client.handle().throttle().tokens_thousandths(), Some(2_000));
    assert_eq!(code.unwrap(), Code::Unavailable);
    assert_eq!(began.elapsed(), Duration::ZERO);
    let (code, _) = end_of(&client, call()).await;
    assert_eq!((code.unwrap(), server.count()), (Code::DeadlineExceeded, 3));
    assert_eq!(began.elapsed().as_secs(), 2);
}

// CALL-8
#[tokio::test(start_paused = true)]
async fn call_8_cap_of_hedges_is_raised() {
    for (attempts, cap, count) in [(9, None, 5), (9, Some(7), 7), (3, Some(7), 3), (9, Some(2), 2)] {
        let server = Server::of([Step::Hang]);
        let text = hedged(attempts, "0.01s", "[]");
        let mut layer = ServiceConfigLayer::new(parse(&text));
        if let Some(cap) = cap {
            layer = layer.max_attempts(cap);
        }
        let hangs = layer.layer(server.clone()).oneshot(call());
        timeout(Duration::from_secs(1), hangs).await.unwrap_err();
        assert_eq!(server.count(), count, "{attempts}, {cap:?}");
    }
}
