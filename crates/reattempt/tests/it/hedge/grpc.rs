//! Tests of a tonic client's hedged calls, against a scripted server.

use std::future::poll_fn;

use http::Request;
use http_body_util::BodyExt;
use reattempt::grpc::Grpc;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::{Deadline, Report, TimedOut};
use reattempt_core::{Failure, FailureKind, Verdict};
use reattempt_grpc::{Code, CodeSet, MethodPolicy, RetryThrottle, RetryThrottling, ServiceConfig};
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tonic::body::Body;
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use crate::grpc::reset::Resets;
use crate::grpc::support::{Answer, GrpcServer, Reply, call, streaming, trailers_only, with};
use crate::hedge::support::{Log, With, ms, options};

/// Returns headers that are not the end: the status is still to come.
fn headers() -> Answer {
    streaming([])
}

fn pushed_back(code: Code, value: &str) -> Answer {
    with(trailers_only(code), "grpc-retry-pushback-ms", value)
}

fn policy() -> HedgePolicy<Grpc> {
    HedgePolicy::grpc().max_attempts(4).delay(ms(100))
}

async fn run(policy: HedgePolicy<Grpc>, server: &GrpcServer) -> Reply {
    HedgeLayer::new(policy).layer(server.clone()).oneshot(call()).await.unwrap()
}

fn status(answer: &Reply) -> Option<&str> {
    answer.headers().get("grpc-status").map(|value| value.to_str().unwrap())
}

// HG-3
#[tokio::test(start_paused = true)]
async fn hg_3_headers_that_are_not_the_end_win() {
    let server = GrpcServer::after(|arrival| match arrival {
        2 => (50, headers()),
        _ => (60_000, trailers_only(Code::Ok)),
    });
    let answer = run(policy(), &server).await;
    assert_eq!(status(&answer), None);
    assert_eq!(Report::of(&answer).unwrap().winner().unwrap(), 2);
}

// HG-4
#[tokio::test(start_paused = true)]
async fn non_fatal_code_sends_next_at_once() {
    for code in [Code::Unavailable, Code::ResourceExhausted, Code::DeadlineExceeded] {
        let server = GrpcServer::after(move |arrival| match arrival {
            1 => (30, trailers_only(code)),
            _ => (150, headers()),
        });
        run(policy(), &server).await;
        assert_eq!(server.times(), [0, 30, 130], "{code}");
    }
}

// HG-5
#[tokio::test(start_paused = true)]
async fn hg_5_any_other_code_ends_the_call() {
    for code in [Code::InvalidArgument, Code::Internal, Code::Unknown, Code::Cancelled] {
        let server = GrpcServer::after(move |arrival| match arrival {
            2 => (20, trailers_only(code)),
            _ => (60_000, headers()),
        });
        let answer = run(policy(), &server).await;
        assert_eq!(status(&answer), Some(&*code.number().to_string()));
        assert_eq!(server.times(), [0, 100]);
    }
}

// HG-5
#[tokio::test(start_paused = true)]
async fn codes_can_be_chosen_none_is_all_fatal() {
    let server = |code| GrpcServer::after(move |_| (30, trailers_only(code)));
    let chosen = policy().non_fatal_codes(CodeSet::from_iter([Code::Internal]));
    let rows = [(Code::Internal, 4), (Code::Unavailable, 1), (Code::Ok, 1)];
    for (code, sent) in rows {
        let server = server(code);
        run(chosen.clone(), &server).await;
        assert_eq!(server.times().len(), sent, "{code}");
    }
    let server = server(Code::Unavailable);
    run(policy().non_fatal_codes(CodeSet::default()), &server).await;
    assert_eq!(server.times(), [0]);
}

// HG-6, trap 29
#[tokio::test(start_paused = true)]
async fn stopping_pushback_leaves_those_in_flight() {
    for value in ["-1", "soon", ""] {
        let server = GrpcServer::after(move |arrival| match arrival {
            1 => (500, headers()),
            _ => (20, pushed_back(Code::Unavailable, value)),
        });
        let answer = run(policy(), &server).await;
        assert_eq!((status(&answer), server.times()), (None, vec![0, 100]), "{value:?}");
    }
}

// HG-7
#[tokio::test(start_paused = true)]
async fn hg_7_a_pushback_is_waited_for_exactly() {
    let rows = [("700", [0, 720, 820]), ("0", [0, 20, 120]), ("5", [0, 25, 125])];
    for (value, times) in rows {
        let server = GrpcServer::after(move |arrival| match arrival {
            1 => (20, pushed_back(Code::Unavailable, value)),
            _ => (150, headers()),
        });
        run(policy(), &server).await;
        assert_eq!(server.times(), times, "{value}");
    }
}

/// Returns UNAVAILABLE with a RetryInfo of 1.5 s.
fn retry_info() -> Answer {
    let details = "CA4aNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ==";
    let mut answer = trailers_only(Code::Unavailable);
    answer.headers_mut().insert("grpc-status-details-bin", details.parse().unwrap());
    answer
}

// HG-7, RI-4
#[tokio::test(start_paused = true)]
async fn hg_7_ri_4_retry_info_is_a_least_wait() {
    let server = || GrpcServer::after(|arrival| if arrival == 1 { (20, retry_info()) } else { (0, headers()) });
    let off = server();
    run(policy(), &off).await;
    assert_eq!(off.times(), [0, 20], "off by default");
    let on = server();
    run(policy().protocol(|grpc| grpc.retry_info(true)), &on).await;
    assert!((1520..=1671).contains(&on.times()[1]), "{:?}", on.times());
    let capped = server();
    let most = policy().protocol(|grpc| grpc.retry_info(true)).max_server_delay(ms(1000));
    assert_eq!(status(&run(most, &capped).await), Some("14"));
    assert_eq!(capped.times(), [0]);
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_late_call_is_not_sent() {
    for change in [|policy: HedgePolicy<Grpc>| policy, |policy: HedgePolicy<Grpc>| policy.max_attempts(1)] {
        let server = GrpcServer::after(|_| (0, headers()));
        let client = HedgeLayer::new(change(policy())).layer(server.clone());
        let late = call().with(Deadline::after(ms(0)));
        let answer = client.clone().oneshot(late).await.unwrap();
        assert_eq!((status(&answer), server.times()), (Some("4"), vec![]));
        let answer = client.oneshot(call().header("grpc-timeout", "0n")).await.unwrap();
        assert_eq!((status(&answer), server.times()), (Some("4"), vec![]));
    }
}

/// The response is gone when the wait for the service ends, but its head is not.
// HG-9
#[tokio::test(start_paused = true)]
async fn hg_9_refusal_is_outcome_without_its_body() {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Answer>();
    handle.allow(1);
    let policy = policy().boxed_errors().max_elapsed(ms(1000));
    let mut client = HedgeLayer::new(policy).layer(service);
    ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap();
    let mut call = tokio_test::task::spawn(client.call(call()));
    tokio_test::assert_pending!(call.poll());
    let (_, first) = handle.next_request().await.unwrap();
    first.send_response(trailers_only(Code::ResourceExhausted));
    tokio_test::assert_pending!(call.poll());
    tokio::time::advance(ms(1001)).await;
    let answer = tokio_test::assert_ready_ok!(call.poll());
    assert_eq!(status(&answer), Some("8"));
}

// HG-7
#[tokio::test(start_paused = true)]
async fn hg_7_a_plain_failure_does_not_shorten_it() {
    let server = GrpcServer::after(|arrival| match arrival {
        1 => (130, trailers_only(Code::Unavailable)),
        2 => (20, pushed_back(Code::Unavailable, "400")),
        _ => (0, headers()),
    });
    run(policy(), &server).await;
    assert_eq!(server.times(), [0, 100, 520]);
}

// THR-7, HG-8
#[tokio::test(start_paused = true)]
async fn hg_8_a_throttled_channel_sends_no_hedges() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(4.0, 0.5)));
    let server = GrpcServer::after(|_| (10, trailers_only(Code::Unavailable)));
    let client = HedgeLayer::new(policy().budget(throttle.clone())).layer(server.clone());
    let answer = client.clone().oneshot(call()).await.unwrap();
    // The second failure reduces the bucket to half.
    assert_eq!((status(&answer), server.times()), (Some("14"), vec![0, 10]));
    client.oneshot(call()).await.unwrap();
    assert_eq!(server.times().len(), 3, "a first attempt is always sent");
    assert_eq!(throttle.tokens_thousandths(), Some(1000));
}

// PB-8
#[tokio::test(start_paused = true)]
async fn stopping_pushback_costs_token() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(10.0, 0.001)));
    let server = GrpcServer::after(|_| (10, pushed_back(Code::Internal, "-1")));
    let client = HedgeLayer::new(policy().budget(throttle.clone())).layer(server.clone());
    client.oneshot(call()).await.unwrap();
    assert!(throttle.tokens_thousandths().unwrap() < 9_500);
}

// HG-11
#[tokio::test(start_paused = true)]
async fn deadline_ends_set_with_its_status() {
    let server = GrpcServer::after(|_| (60_000, headers()));
    let client = HedgeLayer::new(policy().boxed_errors()).layer(server.clone());
    let error = client.oneshot(call().with(Deadline::after(ms(150)))).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    let source = std::error::Error::source(timed_out).unwrap();
    let status = source.downcast_ref::<tonic::Status>().unwrap();
    assert_eq!((status.code(), server.times()), (tonic::Code::DeadlineExceeded, vec![0, 100]));
}

// HG-11
#[tokio::test(start_paused = true)]
async fn deadline_is_answered_with_own_errors() {
    let server = GrpcServer::after(|_| (60_000, headers()));
    let client = HedgeLayer::new(policy()).layer(server.clone());
    let answer = client.oneshot(call().with(Deadline::after(ms(150)))).await.unwrap();
    assert_eq!((status(&answer), server.times()), (Some("4"), vec![0, 100]));
}

// THR-4
#[tokio::test(start_paused = true)]
async fn winner_without_status_earns_nothing() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(10.0, 0.1)));
    throttle.failed();
    let server = GrpcServer::after(|arrival| match arrival {
        1 => (500, headers()),
        2 => (10, headers()),
        _ => (10, trailers_only(Code::NotFound)),
    });
    let client = HedgeLayer::new(policy().budget(throttle.clone())).layer(server);
    let won = client.clone().oneshot(call()).await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(9000));
    // The test's body is empty: it ends without a status, which is not a success.
    won.into_body().collect().await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(9000));
    client.oneshot(call()).await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(9000));
}

// THR-3
#[tokio::test(start_paused = true)]
async fn failed_head_is_not_charged_again_at_end() {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(10.0, 0.1)));
    let server = GrpcServer::after(|_| (10, headers()));
    // Without a classifier, a head without a status would commit the call; its end would be UNKNOWN.
    let busy = Verdict::Transient(Failure::new(FailureKind::Throttled));
    let policy = policy().max_attempts(2).budget(throttle.clone()).protocol(|grpc| grpc.classify(move |_| Some(busy)));
    let answer = HedgeLayer::new(policy).layer(server).oneshot(call()).await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(8000), "one for each attempt");
    answer.into_body().collect().await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(8000));
}

// DL-2
#[tokio::test(start_paused = true)]
async fn every_attempt_gets_the_time_left() {
    let server = GrpcServer::after(|_| (150, headers()));
    let client = HedgeLayer::new(policy()).layer(server.clone());
    client.oneshot(call().header("grpc-timeout", "1S")).await.unwrap();
    let told = server.fields("grpc-timeout");
    assert_eq!(told[0].as_deref(), Some("1S"));
    let left = reattempt_grpc::parse_grpc_timeout(told[1].as_deref().unwrap().as_bytes()).unwrap();
    assert_eq!(left, ms(900));
}

// RPH-3
#[tokio::test(start_paused = true)]
async fn rph_3_each_hedge_tells_its_index() {
    let server = GrpcServer::after(|_| (250, headers()));
    run(policy(), &server).await;
    let told = server.fields("grpc-previous-rpc-attempts");
    assert_eq!(told, [None, Some("1".into()), Some("2".into())]);
}

// HG-14
#[tokio::test(start_paused = true)]
async fn layer_opts_in_every_method() {
    let server = GrpcServer::after(|_| (1000, headers()));
    run(policy(), &server).await;
    assert_eq!(server.times(), [0, 100, 200, 300]);
}

// CALL-8
#[tokio::test(start_paused = true)]
async fn config_policy_is_used_and_capped() {
    let text = r#"{"methodConfig": [{"name": [{}], "hedgingPolicy": {
        "maxAttempts": 9, "hedgingDelay": "0.050s", "nonFatalStatusCodes": ["ABORTED"]}}]}"#;
    let config = ServiceConfig::parse(text).unwrap();
    let MethodPolicy::Hedging(hedging) = &config.for_method("/service/method").unwrap().policy else {
        panic!("another policy");
    };
    let server = GrpcServer::after(|arrival| match arrival {
        5 => (10, trailers_only(Code::Unavailable)),
        _ => (60_000, headers()),
    });
    let answer = run(HedgePolicy::from(hedging), &server).await;
    assert_eq!((status(&answer), server.times()), (Some("14"), vec![0, 50, 100, 150, 200]));
    let server = GrpcServer::after(|_| (10, trailers_only(Code::Aborted)));
    let answer = run(HedgePolicy::from(hedging), &server).await;
    assert_eq!((status(&answer), server.times().len()), (Some("10"), 5));
}

/// The failure of an attempt is logged once if its replacement waits for its service until the time is over.
#[tokio::test(start_paused = true)]
async fn late_replacement_is_logged_once() {
    let refused = Resets::new(h2::Reason::REFUSED_STREAM, 1).await;
    let (log, slot) = (Log::default(), ReportSlot::default());
    let policy = policy().boxed_errors().max_elapsed(ms(1000)).observe_with(log.clone());
    let (server, mut handle) = mock::pair::<Request<Body>, Answer>();
    handle.allow(1);
    let mut client = HedgeLayer::new(policy).layer(server);
    poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let mut running = task::spawn(client.call(call().with(options().report_to(&slot))));
    assert_pending!(running.poll());
    let (_, first) = assert_ready!(task::spawn(handle.next_request()).poll()).unwrap();
    first.send_error(refused.next());
    assert_pending!(running.poll());
    advance(ms(1001)).await;
    let error = assert_ready!(running.poll()).unwrap_err();
    assert!(error.to_string().contains("refused stream"), "{error}");
    let report = slot.take().unwrap();
    assert_eq!(report.attempts().len(), 1, "{report}");
    let lines = log.lines();
    assert_eq!(lines.iter().filter(|line| line.contains("attempt 1:")).count(), 1, "{lines:?}");
}
